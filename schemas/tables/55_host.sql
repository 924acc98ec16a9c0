CREATE TABLE host_sample (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    sample_ts TIMESTAMP,
    error_s DOUBLE,
    host VARCHAR,
    cpu_ratio DOUBLE,
    cpu_busy_ticks DOUBLE,
    cpu_total_ticks DOUBLE,
    load_1m DOUBLE,
    memory_ratio DOUBLE,
    memory_used_bytes BIGINT,
    memory_available_bytes BIGINT,
    memory_total_bytes BIGINT,
    disk_read_bps DOUBLE,
    disk_write_bps DOUBLE,
    net_rx_bps DOUBLE,
    net_tx_bps DOUBLE,
    disk_read_bytes BIGINT,
    disk_write_bytes BIGINT,
    net_rx_bytes BIGINT,
    net_tx_bytes BIGINT,
    other VARCHAR
);
COMMENT ON TABLE host_sample IS 'One row per tick of a log of a host''s load: CPU, memory, disk and network. A value that the file does not give is NULL, never 0.';
COMMENT ON COLUMN host_sample.run_id IS 'Run of the source.';
COMMENT ON COLUMN host_sample.source_id IS 'Source that stated it.';
COMMENT ON COLUMN host_sample.line_no IS 'Line of it, from 1.';
COMMENT ON COLUMN host_sample.sample_ts IS 'End of the interval that the row describes, UTC; NULL where the file has no time.';
COMMENT ON COLUMN host_sample.error_s IS 'Resolution of the stamp, seconds.';
COMMENT ON COLUMN host_sample.host IS 'Name of the host, where the file says it.';
COMMENT ON COLUMN host_sample.cpu_ratio IS 'Share of the time of all CPUs that was not idle, 0 to 1: as stated, else from the counters since the row before. Waiting for disks counts as idle.';
COMMENT ON COLUMN host_sample.cpu_busy_ticks IS 'Counter of busy CPU time in the file''s unit (jiffies of /proc/stat, or seconds), summed over all CPUs since boot.';
COMMENT ON COLUMN host_sample.cpu_total_ticks IS 'Counter of all CPU time, busy and idle, in the same unit.';
COMMENT ON COLUMN host_sample.load_1m IS 'Load average of one minute: processes running, ready or waiting for disks.';
COMMENT ON COLUMN host_sample.memory_ratio IS 'Share of the host''s memory in use, 0 to 1.';
COMMENT ON COLUMN host_sample.memory_used_bytes IS 'Host memory in use, bytes.';
COMMENT ON COLUMN host_sample.memory_available_bytes IS 'Host memory that could be given out, bytes.';
COMMENT ON COLUMN host_sample.memory_total_bytes IS 'Host memory, bytes.';
COMMENT ON COLUMN host_sample.disk_read_bps IS 'Bytes per second read from disks, as stated.';
COMMENT ON COLUMN host_sample.disk_write_bps IS 'Bytes per second written to disks, as stated.';
COMMENT ON COLUMN host_sample.net_rx_bps IS 'Bytes per second received, as stated.';
COMMENT ON COLUMN host_sample.net_tx_bps IS 'Bytes per second sent, as stated.';
COMMENT ON COLUMN host_sample.disk_read_bytes IS 'Bytes read from disks as stated; most tools write a counter since boot.';
COMMENT ON COLUMN host_sample.disk_write_bytes IS 'Bytes written to disks as stated; most tools write a counter since boot.';
COMMENT ON COLUMN host_sample.net_rx_bytes IS 'Bytes received as stated; most tools write a counter since boot.';
COMMENT ON COLUMN host_sample.net_tx_bytes IS 'Bytes sent as stated; most tools write a counter since boot.';
COMMENT ON COLUMN host_sample.other IS 'Columns of the file that no column here holds, as a JSON object; with GPUs in the same rows it stands in gpu_sample alone.';


CREATE TABLE host_process_sample (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    sample_ts TIMESTAMP,
    error_s DOUBLE,
    host VARCHAR,
    position INTEGER,
    pid BIGINT,
    process VARCHAR,
    cpu_s DOUBLE,
    cpu_cores DOUBLE,
    memory_used_bytes BIGINT
);
COMMENT ON TABLE host_process_sample IS 'One row per tick and process of a log of a host''s load: what the server''s own processes took.';
COMMENT ON COLUMN host_process_sample.run_id IS 'Run of the source.';
COMMENT ON COLUMN host_process_sample.source_id IS 'Source that stated it.';
COMMENT ON COLUMN host_process_sample.line_no IS 'Line of it, from 1.';
COMMENT ON COLUMN host_process_sample.sample_ts IS 'End of the interval that the row describes, UTC; NULL where the file has no time.';
COMMENT ON COLUMN host_process_sample.error_s IS 'Resolution of the stamp, seconds.';
COMMENT ON COLUMN host_process_sample.host IS 'Name of the host, where the file says it.';
COMMENT ON COLUMN host_process_sample.position IS 'Place of the process among those of its line, from 0: several may have one name.';
COMMENT ON COLUMN host_process_sample.pid IS 'Process id, where the file says it.';
COMMENT ON COLUMN host_process_sample.process IS 'Name of the process; Linux cuts it at 15 characters.';
COMMENT ON COLUMN host_process_sample.cpu_s IS 'CPU seconds since the process began, a counter.';
COMMENT ON COLUMN host_process_sample.cpu_cores IS 'CPU cores in use: as stated, else from the counter since the line before.';
COMMENT ON COLUMN host_process_sample.memory_used_bytes IS 'Resident memory, bytes.';
