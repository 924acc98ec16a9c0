CREATE TABLE gpu_sample (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    sample_ts TIMESTAMP,
    error_s DOUBLE,
    tick BIGINT,
    segment INTEGER,
    host VARCHAR,
    gpu_index INTEGER,
    gpu_uuid VARCHAR,
    gpu_name VARCHAR,
    sm_ratio DOUBLE,
    mem_ratio DOUBLE,
    enc_ratio DOUBLE,
    dec_ratio DOUBLE,
    power_w DOUBLE,
    power_limit_w DOUBLE,
    temp_c DOUBLE,
    mem_temp_c DOUBLE,
    sm_clock_mhz DOUBLE,
    sm_clock_max_mhz DOUBLE,
    mem_clock_mhz DOUBLE,
    memory_used_bytes BIGINT,
    memory_total_bytes BIGINT,
    pcie_rx_bps DOUBLE,
    pcie_tx_bps DOUBLE,
    nvlink_rx_bps DOUBLE,
    nvlink_tx_bps DOUBLE,
    gr_active_ratio DOUBLE,
    sm_active_ratio DOUBLE,
    sm_occupancy_ratio DOUBLE,
    tensor_active_ratio DOUBLE,
    dram_active_ratio DOUBLE,
    power_violation_ratio DOUBLE,
    thermal_violation BOOLEAN,
    clock_reasons VARCHAR,
    ecc_single_bit_count BIGINT,
    ecc_double_bit_count BIGINT,
    other VARCHAR
);
COMMENT ON TABLE gpu_sample IS 'One row per tick and GPU. A value that the tool did not give (-, N/A, a sentinel) is NULL, never 0.';
COMMENT ON COLUMN gpu_sample.run_id IS 'Run of the source.';
COMMENT ON COLUMN gpu_sample.source_id IS 'Source that stated it.';
COMMENT ON COLUMN gpu_sample.line_no IS 'Line of it, from 1.';
COMMENT ON COLUMN gpu_sample.sample_ts IS 'End of the interval that the row describes, UTC; NULL where the file has no time.';
COMMENT ON COLUMN gpu_sample.error_s IS 'Resolution of the stamp, seconds.';
COMMENT ON COLUMN gpu_sample.tick IS 'Number of the tick in its source, from 0: rows of several GPUs belong together. NULL where lines do not tell.';
COMMENT ON COLUMN gpu_sample.segment IS 'Run of the tool in its source, from 0: another begins where the columns change, time jumps back or stands still for over an hour.';
COMMENT ON COLUMN gpu_sample.host IS 'Host of the GPU, where the file says it.';
COMMENT ON COLUMN gpu_sample.gpu_index IS 'Index of the GPU on its host; NULL for a MIG instance, which is named in other.';
COMMENT ON COLUMN gpu_sample.gpu_uuid IS 'UUID of the GPU.';
COMMENT ON COLUMN gpu_sample.gpu_name IS 'Product name.';
COMMENT ON COLUMN gpu_sample.sm_ratio IS 'Share of time in which any kernel ran, 0 to 1 (nvidia-smi: sm, utilization.gpu). A sign of life, not of work.';
COMMENT ON COLUMN gpu_sample.mem_ratio IS 'Share of time in which device memory was touched, 0 to 1. Not a share of bandwidth.';
COMMENT ON COLUMN gpu_sample.enc_ratio IS 'Video encoder, 0 to 1.';
COMMENT ON COLUMN gpu_sample.dec_ratio IS 'Video decoder, 0 to 1.';
COMMENT ON COLUMN gpu_sample.power_w IS 'Board power, watts.';
COMMENT ON COLUMN gpu_sample.power_limit_w IS 'Power limit in force, watts.';
COMMENT ON COLUMN gpu_sample.temp_c IS 'GPU temperature, Celsius.';
COMMENT ON COLUMN gpu_sample.mem_temp_c IS 'Memory temperature, Celsius.';
COMMENT ON COLUMN gpu_sample.sm_clock_mhz IS 'SM clock (dmon: pclk), MHz.';
COMMENT ON COLUMN gpu_sample.sm_clock_max_mhz IS 'Highest SM clock the card allows, MHz.';
COMMENT ON COLUMN gpu_sample.mem_clock_mhz IS 'Memory clock (dmon: mclk), MHz.';
COMMENT ON COLUMN gpu_sample.memory_used_bytes IS 'Device memory in use (dmon: fb), bytes.';
COMMENT ON COLUMN gpu_sample.memory_total_bytes IS 'Device memory, bytes.';
COMMENT ON COLUMN gpu_sample.pcie_rx_bps IS 'PCIe bytes per second into the GPU.';
COMMENT ON COLUMN gpu_sample.pcie_tx_bps IS 'PCIe bytes per second out of the GPU.';
COMMENT ON COLUMN gpu_sample.nvlink_rx_bps IS 'NVLink bytes per second into the GPU.';
COMMENT ON COLUMN gpu_sample.nvlink_tx_bps IS 'NVLink bytes per second out of the GPU.';
COMMENT ON COLUMN gpu_sample.gr_active_ratio IS 'Share of time a graphics or compute engine was active, 0 to 1.';
COMMENT ON COLUMN gpu_sample.sm_active_ratio IS 'Share of cycles an SM had a warp, mean over SMs (DCGM 1002, GPM smutil), 0 to 1.';
COMMENT ON COLUMN gpu_sample.sm_occupancy_ratio IS 'Resident warps over the maximum (DCGM 1003), 0 to 1.';
COMMENT ON COLUMN gpu_sample.tensor_active_ratio IS 'Share of cycles the tensor pipe was active (DCGM 1004, GPM mmaact), 0 to 1.';
COMMENT ON COLUMN gpu_sample.dram_active_ratio IS 'Share of cycles device memory moved data (DCGM 1005, GPM dram), 0 to 1; about 0.8 is the top in practice.';
COMMENT ON COLUMN gpu_sample.power_violation_ratio IS 'Share of time the clocks were held down by power (dmon: pviol), 0 to 1.';
COMMENT ON COLUMN gpu_sample.thermal_violation IS 'Clocks were held down by heat (dmon: tviol).';
COMMENT ON COLUMN gpu_sample.clock_reasons IS 'Why the clock is below its maximum: the bit mask or the active reasons'' names, as the file has them.';
COMMENT ON COLUMN gpu_sample.ecc_single_bit_count IS 'Corrected memory errors, a counter.';
COMMENT ON COLUMN gpu_sample.ecc_double_bit_count IS 'Uncorrected memory errors, a counter.';
COMMENT ON COLUMN gpu_sample.other IS 'Columns of the file that no column here holds, as a JSON object.';


CREATE TABLE gpu_process_sample (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    sample_ts TIMESTAMP,
    error_s DOUBLE,
    host VARCHAR,
    gpu_index INTEGER,
    gpu_uuid VARCHAR,
    pid BIGINT,
    kind VARCHAR,
    command VARCHAR,
    sm_ratio DOUBLE,
    mem_ratio DOUBLE,
    enc_ratio DOUBLE,
    dec_ratio DOUBLE,
    memory_used_bytes BIGINT,
    other VARCHAR
);
COMMENT ON TABLE gpu_process_sample IS 'One row per tick, GPU and process on it: who else used the GPU. A row without a pid says that no process ran on that GPU.';
COMMENT ON COLUMN gpu_process_sample.run_id IS 'Run of the source.';
COMMENT ON COLUMN gpu_process_sample.source_id IS 'Source that stated it.';
COMMENT ON COLUMN gpu_process_sample.line_no IS 'Line of it, from 1.';
COMMENT ON COLUMN gpu_process_sample.sample_ts IS 'End of the interval that the row describes, UTC; NULL where the file has no time.';
COMMENT ON COLUMN gpu_process_sample.error_s IS 'Resolution of the stamp, seconds.';
COMMENT ON COLUMN gpu_process_sample.host IS 'Host of the GPU, where the file says it.';
COMMENT ON COLUMN gpu_process_sample.gpu_index IS 'Index of the GPU on its host.';
COMMENT ON COLUMN gpu_process_sample.gpu_uuid IS 'UUID of the GPU.';
COMMENT ON COLUMN gpu_process_sample.pid IS 'Process on the host; NULL where none ran.';
COMMENT ON COLUMN gpu_process_sample.kind IS 'What the process uses: C compute, G graphics, C+G both, as the tool writes it.';
COMMENT ON COLUMN gpu_process_sample.command IS 'Name of the program as the tool gives it; pmon cuts it at about 15 characters.';
COMMENT ON COLUMN gpu_process_sample.sm_ratio IS 'Share of time in which a kernel of this process ran, 0 to 1.';
COMMENT ON COLUMN gpu_process_sample.mem_ratio IS 'Share of time in which this process touched device memory, 0 to 1.';
COMMENT ON COLUMN gpu_process_sample.enc_ratio IS 'Video encoder, 0 to 1.';
COMMENT ON COLUMN gpu_process_sample.dec_ratio IS 'Video decoder, 0 to 1.';
COMMENT ON COLUMN gpu_process_sample.memory_used_bytes IS 'Device memory that this process holds, bytes.';
COMMENT ON COLUMN gpu_process_sample.other IS 'Columns of the file that no column here holds, as a JSON object.';
