/*
title = "A GPU is in a fault state and needs a reset or replacement"
belief = "vLLM crashed; it is a bug in the server."
cause = "gpu-faulty-state"
severity = "critical"
needs = ["source"]
missing = ["the kernel log (dmesg, journalctl -k) with Xid lines", "nvidia-smi -q or --query-gpu with ecc.errors.uncorrected.volatile.total, clocks.sm, clocks.max.sm and clocks_event_reasons.active"]
message = "{subject}: {measured_sign}, seen {measured_sign_count} times."
verdict = "{subject} reports a hardware fault ({measured_sign}): take it out, reset it (nvidia-smi --gpu-reset, else power off) and run dcgmi diag before restarting the server."

[params]
max_stuck_clock_ratio = 0.5
max_stuck_temp_c = 75.0
min_stuck_count = 3

[[remedy]]
kind = "config"
text = "Watch Xid and uncorrected ECC errors, and restart the server on another GPU when they rise."
moves = "time to recover"
next_limit = "spare capacity"

[[remedy]]
kind = "hardware"
text = "Drain the node, reset the GPU, run dcgmi diag -r 3; replace it if uncorrected errors or Xid 48, 63, 64, 74, 79, 94, 95 come back."
moves = "availability"
---
## What people assume
That a crash or a slow server is software.

## What the data shows
The driver reports hardware faults as Xid numbers and uncorrected ECC errors; a GPU can also be stuck at a fraction of its clock until it is reset.

## How it is detected
Any of: a line that names an Xid of the hardware kind (13, 31, 43, 45 and 68 are usually the application's and do not count), an uncorrectable ECC error, a lost GPU or one that needs a reset; an uncorrected ECC count above zero, a pending row remap or page retirement in a GPU file; an SM clock at most `max_stuck_clock_ratio` of the card's maximum, or of its peers, in all busy readings (`min_stuck_count` or more) below `max_stuck_temp_c` with no thermal or power reason.

## What to do
Reset, test, replace.

## Known limits
An error is often only in the kernel's log, which clears the GPUs only where it goes from before the server's log until after it. Corrected ECC errors alone mean nothing.
*/
WITH said AS (
    SELECT
        run_id,
        source_id,
        line_no,
        event_ts,
        coalesce(
            'GPU at ' || nullif(regexp_extract(message, '\b([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})\b', 1), ''),
            nullif(regexp_extract(message, '(?i)\b(GPU ?[0-9]{1,2})\b', 1), ''),
            'A GPU'
        ) AS gpu,
        CASE
            WHEN
                regexp_matches(message, '\bX(?:id|ID)\b')
                -- What follows from another error names that one.
                AND coalesce(
                    try_cast(regexp_extract(message, 'previous Xid (\d+)', 1) AS INTEGER),
                    try_cast(regexp_extract(message, '(?i)\bxid\b(?:\s*\([^)]*\))?\D{0,12}(\d+)', 1) AS INTEGER),
                    0
                )
                NOT IN (13, 31, 43, 45, 68, 69)
                THEN 'an Xid error'
            WHEN regexp_matches(message, '\bSXid\b[^,]*,? ?(?:\d+, )?Fatal') THEN 'a fatal NVSwitch error (SXid)'
            WHEN regexp_matches(message, '(?i)uncorrectable ECC|double.bit ECC|ECC uncorrect|uncorrected ECC')
                THEN 'an uncorrectable ECC error'
            WHEN
                regexp_matches(message, '(?i)GPU is lost|fallen off the bus|Unable to determine the device handle')
                THEN 'a lost GPU'
            WHEN
                regexp_matches(
                    message, '(?i)GPU (requires|needs|in need)[^.]{0,20}reset|requires (a )?reset|reset required|GPU recovery action'
                )
                THEN 'a GPU that needs a reset'
        END AS sign
    FROM log_event
    WHERE kind IN ('error', 'warning', 'traceback', 'gpu', 'dead', 'notice', 'stall')
),

counted_errors AS (
    SELECT
        run_id,
        source_id,
        line_no,
        sample_ts AS event_ts,
        coalesce('GPU ' || gpu_index, gpu_uuid, 'A GPU') AS gpu,
        CASE
            WHEN ecc_double_bit_count > 0 THEN 'uncorrected ECC errors counted'
            WHEN
                lower(coalesce(
                    json_extract_string(other, '$."remapped_rows.pending"'),
                    json_extract_string(other, '$."retired_pages.pending"'),
                    json_extract_string(other, '$."remapped_rows.failure"')
                )) IN ('yes', '1', 'true')
                THEN 'a row remap or page retirement that is pending or failed'
            WHEN
                coalesce(try_cast(json_extract_string(other, '$.xid_last') AS INTEGER), 0) > 0
                AND try_cast(json_extract_string(other, '$.xid_last') AS INTEGER) NOT IN (13, 31, 43, 45, 68, 69)
                THEN 'an Xid error'
        END AS sign
    FROM (
        -- Reading JSON takes long: only where one of the keys can be in it.
        SELECT
            * REPLACE (
                CASE
                    WHEN contains(other, 'remapped_rows') OR contains(other, 'retired_pages') OR contains(other, 'xid_last') THEN other
                END AS other
            )
        FROM gpu_sample
    )
    WHERE ecc_double_bit_count > 0 OR other IS NOT NULL
),

reasoned AS (
    SELECT
        run_id,
        coalesce(host || ' ', '') || coalesce('GPU ' || gpu_index, gpu_uuid, 'GPU') AS gpu,
        bool_or(
            regexp_matches(lower(coalesce(clock_reasons, '')), 'thermal|slowdown|power|applications?_clock')
            OR coalesce(try_cast(clock_reasons AS BIGINT) & 238, 0) > 0
        ) AS has_reason
    FROM gpu_sample
    WHERE coalesce(sm_ratio, gr_active_ratio) >= 0.8
    GROUP BY ALL
),

peered AS (
    SELECT
        *,
        coalesce(
            clock_max_mhz,
            CASE WHEN count(*) OVER peers >= 3 THEN quantile_cont(busy_clock_p95_mhz, 0.5) OVER peers END
        ) AS reference_mhz
    FROM gpu_load
    WINDOW peers AS (PARTITION BY run_id)
),

stuck AS (
    SELECT
        peered.run_id,
        peered.evidence[1].source_id AS source_id,
        peered.evidence[1].line_no AS line_no,
        peered.first_ts AS event_ts,
        peered.gpu,
        format(
            'the SM clock stands at {:.0f} of {:.0f} MHz under load with no reason', busy_clock_p95_mhz, reference_mhz
        ) AS sign
    FROM peered
    INNER JOIN reasoned ON peered.run_id = reasoned.run_id AND peered.gpu = reasoned.gpu
    WHERE
        busy_count >= $min_stuck_count AND NOT has_reason
        AND busy_clock_p95_mhz <= $max_stuck_clock_ratio * reference_mhz
        AND coalesce(busy_temp_max_c, 0) <= $max_stuck_temp_c
),

found AS (
    SELECT * FROM said WHERE sign IS NOT NULL
    UNION ALL
    SELECT * FROM counted_errors WHERE sign IS NOT NULL
    UNION ALL
    SELECT * FROM stuck
),

counted AS (
    SELECT
        run_id,
        count(*) AS sign_count,
        arg_min(sign, (source_id, line_no)) AS sign,
        string_agg(DISTINCT gpu, ', ' ORDER BY gpu) AS gpus,
        min(event_ts) AS from_ts,
        max(event_ts) AS to_ts,
        min({'source_id': source_id, 'line_no': line_no}, 5) AS evidence
    FROM found
    GROUP BY run_id
),

able AS (
    -- Only a file that would carry such a sign can be clear.
    SELECT DISTINCT run_id
    FROM gpu_sample
    WHERE
        ecc_double_bit_count IS NOT NULL
        OR (sm_clock_mhz IS NOT NULL AND sm_clock_max_mhz IS NOT NULL)
        OR (other LIKE '%xid_last%' AND json_extract_string(other, '$.xid_last') IS NOT NULL)
    UNION
    -- So can a kernel log that goes from before the server's log until after it.
    SELECT kernel.run_id
    FROM source AS kernel
    INNER JOIN source AS server ON kernel.run_id = server.run_id AND server.side = 'server' AND NOT _is_of_host(server.format)
    WHERE kernel.format = 'kernel_log'
    GROUP BY kernel.run_id, kernel.source_id
    HAVING any_value(kernel.first_ts) <= min(server.first_ts) AND any_value(kernel.last_ts) >= max(server.last_ts)
)

SELECT
    run.run_id,
    coalesce(gpus, '') AS subject,
    CASE
        WHEN sign_count > 0 THEN 'fired'
        WHEN able.run_id IS NOT NULL THEN 'clear'
        ELSE 'not_evaluated'
    END AS outcome,
    CASE WHEN sign LIKE 'the SM clock%' THEN 'medium' ELSE 'high' END AS confidence,
    CASE WHEN sign_count > 0 THEN 0.95 ELSE 0.0 END AS weight,
    from_ts,
    to_ts,
    evidence,
    sign AS measured_sign,
    sign_count AS measured_sign_count
FROM (SELECT DISTINCT run_id FROM source) AS run
LEFT JOIN counted ON run.run_id = counted.run_id
LEFT JOIN able ON run.run_id = able.run_id
