-- GPU samples out of one source's scrapes of dcgm-exporter.  Names and units are those of DCGM's field list (2.0 to 4.6, and
-- the names of 2026 that end in _RATIO, _WATTS and _CELSIUS); values that mean "no value" are NULL already.
CREATE OR REPLACE TEMP TABLE gpu_value AS
WITH field (name, place, factor) AS (
    VALUES
    ('DCGM_FI_DEV_GPU_UTIL', 'sm_ratio', 0.01),
    ('DCGM_FI_DEV_GPU_UTIL_RATIO', 'sm_ratio', NULL),
    ('DCGM_FI_DEV_MEM_COPY_UTIL', 'mem_ratio', 0.01),
    ('DCGM_FI_DEV_MEM_COPY_UTIL_RATIO', 'mem_ratio', NULL),
    ('DCGM_FI_DEV_ENC_UTIL', 'enc_ratio', 0.01),
    ('DCGM_FI_DEV_DEC_UTIL', 'dec_ratio', 0.01),
    ('DCGM_FI_DEV_POWER_USAGE', 'power_w', 1),
    ('DCGM_FI_DEV_BOARD_POWER_WATTS', 'power_w', 1),
    ('DCGM_FI_DEV_POWER_MGMT_LIMIT', 'power_limit_w', 1),
    ('DCGM_FI_DEV_GPU_TEMP', 'temp_c', 1),
    ('DCGM_FI_DEV_GPU_TEMP_CELSIUS', 'temp_c', 1),
    ('DCGM_FI_DEV_MEMORY_TEMP', 'mem_temp_c', 1),
    ('DCGM_FI_DEV_SM_CLOCK', 'sm_clock_mhz', 1),
    ('DCGM_FI_DEV_MAX_SM_CLOCK', 'sm_clock_max_mhz', 1),
    ('DCGM_FI_DEV_MEM_CLOCK', 'mem_clock_mhz', 1),
    ('DCGM_FI_DEV_FB_USED', 'memory_used_bytes', 1048576),
    ('DCGM_FI_DEV_FB_TOTAL', 'memory_total_bytes', 1048576),
    ('DCGM_FI_DEV_ECC_SBE_VOL_TOTAL', 'ecc_single_bit_count', 1),
    ('DCGM_FI_DEV_ECC_DBE_VOL_TOTAL', 'ecc_double_bit_count', 1),
    ('DCGM_FI_DEV_CLOCK_THROTTLE_REASONS', 'clock_reasons', 1),
    ('DCGM_FI_DEV_CLOCKS_EVENT_REASONS', 'clock_reasons', 1),
    ('DCGM_FI_DEV_POWER_VIOLATION', 'power_violation', 1),
    ('DCGM_FI_PROF_GR_ENGINE_ACTIVE', 'gr_active_ratio', 1),
    ('DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO', 'gr_active_ratio', NULL),
    ('DCGM_FI_PROF_SM_ACTIVE', 'sm_active_ratio', 1),
    ('DCGM_FI_PROF_SM_UTIL_RATIO', 'sm_active_ratio', NULL),
    ('DCGM_FI_PROF_SM_OCCUPANCY', 'sm_occupancy_ratio', 1),
    ('DCGM_FI_PROF_PIPE_TENSOR_ACTIVE', 'tensor_active_ratio', 1),
    ('DCGM_FI_PROF_TENSOR_UTIL_RATIO', 'tensor_active_ratio', NULL),
    ('DCGM_FI_PROF_DRAM_ACTIVE', 'dram_active_ratio', 1),
    ('DCGM_FI_PROF_DRAM_UTIL_RATIO', 'dram_active_ratio', NULL),
    ('DCGM_FI_PROF_PCIE_RX_BYTES', 'pcie_rx_bps', 1),
    ('DCGM_FI_PROF_PCIE_TX_BYTES', 'pcie_tx_bps', 1),
    ('DCGM_FI_PROF_NVLINK_RX_BYTES', 'nvlink_rx_bps', 1),
    ('DCGM_FI_PROF_NVLINK_TX_BYTES', 'nvlink_tx_bps', 1)
),

named AS (
    SELECT
        m.*,
        field.place,
        field.factor
    FROM metric_sample AS m
    LEFT JOIN field ON m.name = field.name
    WHERE m.source_id = $source AND starts_with(m.name, 'DCGM_FI_') AND NOT contains(m.labels, '"over":')
),

labelled AS (
    SELECT
        labels,
        coalesce(labels ->> 'Hostname', labels ->> 'hostname', labels ->> 'node', labels ->> 'instance') AS host,
        try_cast(labels ->> 'gpu' AS INTEGER) AS gpu_index,
        coalesce(labels ->> 'UUID', labels ->> 'uuid') AS gpu_uuid,
        labels ->> 'modelName' AS gpu_name,
        nullif(labels ->> 'GPU_I_ID', '') AS mig_instance
    FROM (SELECT DISTINCT labels FROM named)
)

SELECT
    named.scrape_index,
    named.line_no,
    named.sample_ts,
    named.error_s,
    named.name,
    named.place,
    -- Whether the renamed shares are 0 to 1 or still per cent is told by their size.
    named.measured
    * CASE
        WHEN named.place IS NULL THEN 1
        WHEN named.factor IS NOT NULL THEN named.factor
        WHEN max(named.measured) OVER (PARTITION BY named.name) > 2 THEN 0.01
        ELSE 1
    END AS measured,
    labelled.host,
    CASE WHEN labelled.mig_instance IS NULL THEN labelled.gpu_index END AS gpu_index,
    labelled.gpu_uuid,
    labelled.gpu_name,
    CASE WHEN labelled.mig_instance IS NOT NULL THEN concat('GPU ', labelled.gpu_index, ' GPU-I ', labelled.mig_instance) END AS entity
FROM named
INNER JOIN labelled ON named.labels = labelled.labels;

-- Time that a GPU was held back by power: a counter, in nanoseconds or microseconds by the exporter's configuration.  No
-- second has more than a second in it, which tells nanoseconds; a counter that stands still is 0 in either; else unknown.
CREATE OR REPLACE TEMP TABLE gpu_violation AS
WITH step AS (
    SELECT
        scrape_index,
        host,
        gpu_index,
        gpu_uuid,
        entity,
        (measured - lag(measured) OVER gpu) / nullif(epoch(sample_ts - lag(sample_ts) OVER gpu), 0) AS per_s
    FROM gpu_value
    WHERE place = 'power_violation'
    WINDOW gpu AS (PARTITION BY host, gpu_index, gpu_uuid, entity ORDER BY scrape_index)
)

SELECT
    * EXCLUDE (per_s),
    CASE
        WHEN per_s IS NULL OR per_s < 0 THEN NULL
        WHEN max(per_s) OVER () > 1.01e6 THEN least(per_s / 1e9, 1)
        WHEN max(per_s) OVER () = 0 THEN 0.0
    END AS power_violation_ratio
FROM step;

INSERT INTO gpu_sample BY NAME
WITH wide AS (
    SELECT
        scrape_index,
        host,
        gpu_index,
        gpu_uuid,
        entity,
        min(line_no) AS line_no,
        min(sample_ts) AS sample_ts,
        max(error_s) AS error_s,
        min(gpu_name) AS gpu_name,
        max(measured) FILTER (WHERE place = 'sm_ratio') AS sm_ratio,
        max(measured) FILTER (WHERE place = 'mem_ratio') AS mem_ratio,
        max(measured) FILTER (WHERE place = 'enc_ratio') AS enc_ratio,
        max(measured) FILTER (WHERE place = 'dec_ratio') AS dec_ratio,
        max(measured) FILTER (WHERE place = 'power_w') AS power_w,
        max(measured) FILTER (WHERE place = 'power_limit_w') AS power_limit_w,
        max(measured) FILTER (WHERE place = 'temp_c') AS temp_c,
        -- DCGM writes 0 for a memory sensor that is not there.
        nullif(max(measured) FILTER (WHERE place = 'mem_temp_c'), 0) AS mem_temp_c,
        max(measured) FILTER (WHERE place = 'sm_clock_mhz') AS sm_clock_mhz,
        max(measured) FILTER (WHERE place = 'sm_clock_max_mhz') AS sm_clock_max_mhz,
        max(measured) FILTER (WHERE place = 'mem_clock_mhz') AS mem_clock_mhz,
        max(measured) FILTER (WHERE place = 'memory_used_bytes')::BIGINT AS memory_used_bytes,
        max(measured) FILTER (WHERE place = 'memory_total_bytes')::BIGINT AS memory_total_bytes,
        max(measured) FILTER (WHERE place = 'pcie_rx_bps') AS pcie_rx_bps,
        max(measured) FILTER (WHERE place = 'pcie_tx_bps') AS pcie_tx_bps,
        max(measured) FILTER (WHERE place = 'nvlink_rx_bps') AS nvlink_rx_bps,
        max(measured) FILTER (WHERE place = 'nvlink_tx_bps') AS nvlink_tx_bps,
        max(measured) FILTER (WHERE place = 'gr_active_ratio') AS gr_active_ratio,
        max(measured) FILTER (WHERE place = 'sm_active_ratio') AS sm_active_ratio,
        max(measured) FILTER (WHERE place = 'sm_occupancy_ratio') AS sm_occupancy_ratio,
        max(measured) FILTER (WHERE place = 'tensor_active_ratio') AS tensor_active_ratio,
        max(measured) FILTER (WHERE place = 'dram_active_ratio') AS dram_active_ratio,
        format('0x{:016x}', (max(measured) FILTER (WHERE place = 'clock_reasons'))::BIGINT) AS clock_reasons,
        max(measured) FILTER (WHERE place = 'ecc_single_bit_count')::BIGINT AS ecc_single_bit_count,
        max(measured) FILTER (WHERE place = 'ecc_double_bit_count')::BIGINT AS ecc_double_bit_count,
        to_json(
            map(list(name ORDER BY name) FILTER (WHERE place IS NULL), list(measured ORDER BY name) FILTER (WHERE place IS NULL))
        )::VARCHAR AS rest
    FROM (
        SELECT *
        FROM gpu_value
        QUALIFY
            place IS NOT NULL
            OR row_number() OVER (PARTITION BY scrape_index, host, gpu_index, gpu_uuid, entity, name ORDER BY line_no) = 1
    )
    GROUP BY scrape_index, host, gpu_index, gpu_uuid, entity
)

SELECT
    $run AS run_id,
    $source AS source_id,
    wide.* EXCLUDE (scrape_index, entity, rest),
    wide.scrape_index AS tick,
    0 AS segment,
    violation.power_violation_ratio,
    CASE
        WHEN wide.entity IS NOT NULL THEN json_merge_patch(coalesce(wide.rest, '{}'), json_object('entity', wide.entity))::VARCHAR
        ELSE nullif(wide.rest, '{}')
    END AS other
FROM wide
LEFT JOIN gpu_violation AS violation
    ON
        wide.scrape_index = violation.scrape_index
        AND wide.host IS NOT DISTINCT FROM violation.host
        AND wide.gpu_index IS NOT DISTINCT FROM violation.gpu_index
        AND wide.gpu_uuid IS NOT DISTINCT FROM violation.gpu_uuid
        AND wide.entity IS NOT DISTINCT FROM violation.entity
ORDER BY wide.scrape_index, wide.host, wide.gpu_index, wide.entity;
