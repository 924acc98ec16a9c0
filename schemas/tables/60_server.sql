CREATE TABLE server_setting (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    key VARCHAR NOT NULL,
    value VARCHAR,
    basis VARCHAR NOT NULL
);
COMMENT ON TABLE server_setting IS 'One row per setting that the server ran with, and how that is known.';
COMMENT ON COLUMN server_setting.run_id IS 'Run of the source.';
COMMENT ON COLUMN server_setting.source_id IS 'Source that stated it, or whose version the default is of.';
COMMENT ON COLUMN server_setting.line_no IS 'Line that stated it, or that stated the version.';
COMMENT ON COLUMN server_setting.key IS 'Name of the setting, in vLLM''s own spelling (max_num_seqs); vllm_version, model and gpu_blocks beside them.';
COMMENT ON COLUMN server_setting.value IS 'The value, as the source wrote it.';
COMMENT ON COLUMN server_setting.basis IS 'stated, or the default of which version and why; a default is an assumption.';

CREATE TABLE log_event (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    last_line_no BIGINT NOT NULL,
    event_ts TIMESTAMP,
    error_s DOUBLE,
    level VARCHAR,
    kind VARCHAR NOT NULL,
    process VARCHAR,
    origin VARCHAR,
    message VARCHAR,
    repeat_count BIGINT
);
COMMENT ON TABLE log_event IS 'One row per warning, error, start, stop, compilation or traceback; the lines of one record are one row.';
COMMENT ON COLUMN log_event.run_id IS 'Run of the source.';
COMMENT ON COLUMN log_event.source_id IS 'Source that stated it.';
COMMENT ON COLUMN log_event.line_no IS 'First line of it, from 1.';
COMMENT ON COLUMN log_event.last_line_no IS 'Last line of it.';
COMMENT ON COLUMN log_event.event_ts IS 'Stamp of its first line, UTC; of the line before, where it has none.';
COMMENT ON COLUMN log_event.error_s IS 'Resolution of the stamp, seconds.';
COMMENT ON COLUMN log_event.level IS 'Log level.';
COMMENT ON COLUMN log_event.kind IS 'warning, error, traceback, start, ready, stop, dead, stall, compile, oom, preemption, gpu or notice.';
COMMENT ON COLUMN log_event.process IS 'Process that wrote it.';
COMMENT ON COLUMN log_event.origin IS 'File and line of the source code that wrote it.';
COMMENT ON COLUMN log_event.message IS 'The text, lines joined; at most 8192 characters.';
COMMENT ON COLUMN log_event.repeat_count IS 'Lines that Ray put into this one ("[repeated 5x across cluster]"); NULL where it says nothing.';

CREATE TABLE access_line (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    logged_after_ts TIMESTAMP,
    process VARCHAR,
    client_addr VARCHAR,
    method VARCHAR,
    path VARCHAR,
    status INTEGER
);
COMMENT ON TABLE access_line IS 'One row per HTTP access line. vLLM writes it when the response headers go out: the beginning of a stream, the end of any other answer. It has no stamp of its own.';
COMMENT ON COLUMN access_line.run_id IS 'Run of the source.';
COMMENT ON COLUMN access_line.source_id IS 'Source that stated it.';
COMMENT ON COLUMN access_line.line_no IS 'Line of it, from 1.';
COMMENT ON COLUMN access_line.logged_after_ts IS 'Stamp of the last stamped line before it, UTC: a lower bound of its time.';
COMMENT ON COLUMN access_line.process IS 'Process that wrote it.';
COMMENT ON COLUMN access_line.client_addr IS 'Peer address and port.';
COMMENT ON COLUMN access_line.method IS 'HTTP method.';
COMMENT ON COLUMN access_line.path IS 'Path, without its query.';
COMMENT ON COLUMN access_line.status IS 'HTTP status.';
