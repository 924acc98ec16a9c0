/*
title = "The engine holds requests and makes no step"
belief = "The server answers /health, so it is only slow or the network is."
cause = "engine-hung"
severity = "critical"
needs = []
missing = ["engine stats lines of the vLLM log (do not run with --disable-log-stats)", "the log up to the moment it was stopped", "VLLM_LOGGING_LEVEL=DEBUG, since stats lines without tokens are written at DEBUG"]
message = "No step is made: {form}{load_text}; {lasting}."
verdict = "The engine hangs: {form}{load_text}. Take the stacks of its processes (py-spy dump) before the restart; its queue and cache numbers are frozen."

[params]
min_interval_count = 3
max_kv_change_ratio = 0.0015
min_open_s = 30.0
min_failed_count = 2

[[remedy]]
kind = "config"
text = "Let the liveness probe ask for one generated token instead of /health, so that a hung engine is restarted; take the stacks first (py-spy dump of the engine and worker processes)."
moves = "time to detect"
next_limit = "the cause of the hang, which stays"

[[remedy]]
kind = "config"
text = "With several GPUs: exclude the link between them (NCCL_P2P_DISABLE=1 for one run, NCCL_DEBUG=INFO); with one: run the same requests with --enforce-eager."
moves = "hang"
next_limit = "slower collectives or launches while the test lasts"
---
## What people assume
HTTP answers and the process lives, so requests are only slow.
## What the data shows
The engine took requests and then made no step: throughputs are 0.0 while Running is above 0, or the stats lines stop although
requests are in flight.  V1 writes stats lines without tokens at DEBUG, so that a hang is silence at the usual level.
## How it is detected
One of eight signs, per engine.  Zeros: `min_interval_count` stats lines in a row with Running above 0, 0.0 and 0.0, and the
same KV-cache usage (a long prefill is without tokens too, but its usage grows).  Gap: between two stats lines that both have
running requests as many lines are missing, the line after it counts no prompt (a long prefill ends with its prompt), and the
KV cache has not grown as it does while tokens come (then lines were left out of the file).
Tail: the same up to the last stamp of the log, or up to a line that the engine died or was stopped.  Untimed tail: after the
last stats line only failed POSTs.  No stats line at all: a request was received and nothing answered in `min_open_s`.  Or the
engine says `min_interval_count` times in a row that its workers take nothing from it (a line a minute), and nothing but
access lines stands between: an answered POST for each of these minutes rules that out, not one, since a stream is answered before
its first token.  Or requests wait for KV blocks of a connector while nothing runs and no token comes.  Or PyTorch's watchdog says that a collective of the GPUs was not done in its time, minutes by default, or SGLang's that a batch was not.
As many requests ended or POSTs answered with 2xx as were running rule a silence out, a single answered POST the others.  Three intervals are the least
that neither one long step nor one lost line explains.
## What to do
Take the stacks, then restart.  Do not read queue or cache numbers from the frozen lines.
## Known limits
Gauges stay frozen when a client aborts the last request (V1): without request lines that looks like a hang.  Stats lines of
several API servers are not written at all.  Loading and compiling keep workers busy for minutes too, and mostly write lines
meanwhile: the engine's word alone has medium confidence.  An SGLang log writes only while it decodes: its silence proves nothing.
*/
WITH spaced AS (
    SELECT
        s.run_id,
        s.source_id,
        s.engine_index,
        s.line_no,
        s.sample_ts,
        -- What V0 has put out to host memory and never brings back is held like what runs.
        s.running_count + coalesce(s.swapped_count, 0) AS running_count,
        coalesce(s.waiting_count, 0) AS waiting_count,
        -- With a connector a request waits for its KV blocks before it runs.
        s.external_prefix_cache_hit_ratio IS NOT NULL AND s.running_count = 0 AND s.waiting_count > 0 AS is_fetching,
        s.kv_cache_usage_ratio,
        coalesce(s.prompt_tps, 0) AS prompt_tps,
        -- Scrapes without times have no rates: then nothing says that no token came.
        coalesce(
            (
                s.running_count + coalesce(s.swapped_count, 0) > 0
                OR (s.external_prefix_cache_hit_ratio IS NOT NULL AND s.waiting_count > 0)
            )
            AND coalesce(s.prompt_tps, s.generation_tps) IS NOT NULL
            AND coalesce(s.prompt_tps, 0) = 0
            AND coalesce(s.generation_tps, 0) = 0,
            FALSE
        ) AS is_stuck,
        coalesce(s.prompt_tps, s.generation_tps) IS NOT NULL
        OR s.running_count IS NULL
        OR s.running_count + coalesce(s.swapped_count, 0) = 0 AS is_told,
        lag(s.line_no) OVER engine AS earlier_line,
        lead(s.line_no) OVER engine AS later_line,
        lead(s.sample_ts) OVER engine AS later_ts,
        lead(s.running_count + coalesce(s.swapped_count, 0)) OVER engine AS later_running_count,
        lead(coalesce(s.prompt_tps, 0)) OVER engine AS later_prompt_tps,
        s.kv_cache_usage_ratio - lag(s.kv_cache_usage_ratio) OVER engine AS kv_growth_ratio,
        lead(s.kv_cache_usage_ratio) OVER engine - s.kv_cache_usage_ratio AS later_kv_growth_ratio
    FROM engine_state AS s
    INNER JOIN source ON s.source_id = source.source_id AND source.format <> 'sglang_log'
    WINDOW engine AS (PARTITION BY s.source_id, s.engine_index ORDER BY s.line_no, s.sample_ts)
),

sample AS (
    SELECT
        *,
        coalesce(
            median(CASE WHEN later_ts > sample_ts THEN epoch(later_ts - sample_ts) END) OVER (PARTITION BY source_id, engine_index),
            10.0
        ) AS interval_s,
        median(kv_growth_ratio) OVER (PARTITION BY source_id, engine_index) AS usual_kv_growth_ratio,
        count(CASE WHEN NOT is_stuck THEN 1 END) OVER (PARTITION BY source_id, engine_index ORDER BY line_no, sample_ts) AS stretch
    FROM spaced
),

-- What stands in each source besides stats lines: work that ended, and lines that end a silence.
sign AS NOT MATERIALIZED (
    SELECT
        run_id,
        source_id,
        line_no,
        NULL::TIMESTAMP AS sign_ts,
        CASE
            WHEN method = 'POST' AND status BETWEEN 200 AND 299 THEN 'answered'
            WHEN method = 'POST' AND status >= 500 THEN 'refused'
        END AS kind
    FROM access_line
    UNION ALL
    SELECT
        run_id,
        source_id,
        line_no,
        event_ts AS sign_ts,
        'ended' AS kind
    FROM request_event
    WHERE event IN ('finished', 'aborted', 'failed', 'first_token')
    UNION ALL
    SELECT
        run_id,
        source_id,
        line_no,
        event_ts AS sign_ts,
        CASE WHEN kind = 'stall' THEN 'stall' ELSE 'over' END AS kind
    FROM log_event
    WHERE kind IN ('dead', 'stop', 'start', 'stall')
),

zeros AS (
    SELECT
        run_id,
        source_id,
        CASE
            WHEN bool_and(is_fetching) THEN 'nothing runs, and what waits for KV blocks of a connector never gets them'
            ELSE 'stats lines with requests and without a token'
        END AS form,
        min(earlier_line) AS after_line,
        min(line_no) AS first_line,
        max(line_no) AS until_line,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        coalesce(epoch(max(sample_ts) - min(sample_ts)), 0) + any_value(interval_s) AS silence_s,
        count(*) AS interval_count,
        max(running_count) AS running_count,
        max(waiting_count) AS waiting_count,
        CASE WHEN count(*) >= 2 * $min_interval_count THEN 'high' ELSE 'medium' END AS confidence,
        1 AS answers_needed,
        0 AS failed_needed
    FROM sample
    WHERE is_stuck
    GROUP BY run_id, source_id, engine_index, stretch
    HAVING
        count(*) >= $min_interval_count
        -- Scrapes can be a second apart: then it takes as long as with stats lines, which come every five or ten.
        AND (any_value(interval_s) >= 4 OR count(*) * any_value(interval_s) >= 10 * $min_interval_count)
        AND coalesce(max(kv_cache_usage_ratio) - min(kv_cache_usage_ratio), 0) <= $max_kv_change_ratio
        AND coalesce(arg_max(later_prompt_tps, line_no), 0) = 0
),

gap AS (
    SELECT
        run_id,
        source_id,
        'stats lines stop while requests run, and go on with the same requests' AS form,
        line_no AS first_line,
        later_line - 1 AS until_line,
        sample_ts AS from_ts,
        later_ts AS to_ts,
        epoch(later_ts - sample_ts) AS silence_s,
        round(epoch(later_ts - sample_ts) / interval_s) AS interval_count,
        running_count,
        waiting_count,
        'high' AS confidence,
        running_count AS answers_needed,
        0 AS failed_needed
    FROM sample
    WHERE
        running_count > 0 AND later_running_count > 0 AND later_prompt_tps = 0
        AND epoch(later_ts - sample_ts) >= ($min_interval_count + 1) * interval_s
        AND coalesce(later_kv_growth_ratio, 0) <= 2 * greatest(coalesce(usual_kv_growth_ratio, 0), 0) + $max_kv_change_ratio
),

-- The last stats line of each engine, if requests were running, and where the log goes on to.
final AS (
    SELECT
        sample.run_id,
        sample.source_id,
        sample.line_no,
        sample.sample_ts,
        sample.interval_s,
        sample.running_count,
        sample.waiting_count,
        source.line_count,
        count(*) FILTER (WHERE sign.kind = 'over') > 0 AS is_over,
        coalesce(min(sign.sign_ts) FILTER (WHERE sign.kind = 'over'), any_value(source.last_ts)) AS over_ts
    FROM sample
    INNER JOIN source ON sample.source_id = source.source_id
    LEFT JOIN sign ON sample.source_id = sign.source_id AND sample.line_no < sign.line_no AND sign.kind = 'over'
    WHERE sample.later_line IS NULL AND sample.running_count > 0
    GROUP BY ALL
),

tail AS (
    SELECT
        run_id,
        source_id,
        'stats lines stop while requests run, and do not come back' AS form,
        line_no AS first_line,
        line_count AS until_line,
        sample_ts AS from_ts,
        over_ts AS to_ts,
        epoch(over_ts - sample_ts) AS silence_s,
        round(epoch(over_ts - sample_ts) / interval_s) AS interval_count,
        running_count,
        waiting_count,
        CASE WHEN epoch(over_ts - sample_ts) >= 4 * $min_interval_count * interval_s THEN 'high' ELSE 'medium' END AS confidence,
        running_count AS answers_needed,
        0 AS failed_needed
    FROM final
    WHERE epoch(over_ts - sample_ts) >= ($min_interval_count + 1) * interval_s
),

untimed AS (
    SELECT
        run_id,
        source_id,
        'after the last stats line only failed requests' AS form,
        line_no AS first_line,
        line_count AS until_line,
        sample_ts AS from_ts,
        running_count,
        waiting_count,
        'medium' AS confidence,
        1 AS answers_needed,
        $min_failed_count AS failed_needed
    FROM final
    WHERE NOT is_over
),

-- Logs with neither stats lines nor anything that ended.
without_stats AS (
    SELECT
        source_id,
        line_count,
        last_ts
    FROM source
    WHERE
        format = 'vllm_log'
        AND source_id NOT IN (SELECT engine_sample.source_id FROM engine_sample)
        AND source_id NOT IN (SELECT log_event.source_id FROM log_event WHERE log_event.kind IN ('dead', 'stop'))
),

alive AS (
    SELECT DISTINCT sign.source_id
    FROM sign
    INNER JOIN without_stats ON sign.source_id = without_stats.source_id
    WHERE sign.kind IN ('answered', 'ended')
),

mute AS (
    SELECT *
    FROM without_stats
    WHERE source_id NOT IN (SELECT alive.source_id FROM alive)
),

unseen AS (
    SELECT
        opened.run_id,
        opened.source_id,
        'a request was taken, and neither a token nor a stats line followed' AS form,
        min(opened.line_no) AS first_line,
        any_value(source.line_count) AS until_line,
        min(opened.event_ts) AS from_ts,
        any_value(source.last_ts) AS to_ts,
        epoch(any_value(source.last_ts) - min(opened.event_ts)) AS silence_s,
        count(DISTINCT opened.request_id) AS running_count,
        'low' AS confidence,
        1 AS answers_needed,
        0 AS failed_needed
    FROM request_event AS opened
    INNER JOIN mute AS source ON opened.source_id = source.source_id
    WHERE
        opened.event = 'received'
        -- Without stats lines by choice, or with several API servers, their absence says nothing.
        AND opened.run_id NOT IN (
            SELECT run_id
            FROM run_setting
            WHERE key IN ('disable_log_stats', 'api_server_count') AND value NOT IN ('False', '1')
        )
    GROUP BY opened.run_id, opened.source_id
    HAVING epoch(any_value(source.last_ts) - min(opened.event_ts)) >= $min_open_s
),

-- The engine's word that its workers take nothing; lines of one stretch have nothing but access lines between them.
pleading AS (
    SELECT
        *,
        line_no - access_count - row_number() OVER (PARTITION BY source_id ORDER BY line_no) AS stretch
    FROM (
        SELECT
            stalled.run_id,
            stalled.source_id,
            stalled.line_no,
            stalled.event_ts,
            any_value(stalled.process) AS process,
            count(a.line_no) AS access_count
        FROM log_event AS stalled
        LEFT JOIN access_line AS a ON stalled.source_id = a.source_id AND stalled.line_no > a.line_no
        WHERE stalled.kind = 'stall' AND stalled.message LIKE 'No available %block found%'
        GROUP BY stalled.run_id, stalled.source_id, stalled.line_no, stalled.event_ts
    )
),

plea AS (
    SELECT
        run_id,
        source_id,
        'the engine says each minute that its workers take nothing' AS form,
        min(line_no) AS first_line,
        max(line_no) AS until_line,
        min(event_ts) AS from_ts,
        max(event_ts) AS to_ts,
        epoch(max(event_ts) - min(event_ts)) AS silence_s,
        count(DISTINCT coalesce(event_ts::VARCHAR, line_no::VARCHAR)) AS interval_count,
        'medium' AS confidence,
        -- Workers say the same while they wait for work: then requests are answered all along.
        CASE WHEN bool_and(process LIKE 'EngineCore%') THEN count(*) ELSE 1 END AS answers_needed,
        0 AS failed_needed
    FROM pleading
    GROUP BY run_id, source_id, stretch
    HAVING count(DISTINCT coalesce(event_ts::VARCHAR, line_no::VARCHAR)) >= $min_interval_count
),

-- A collective that some rank never joined or left, or a batch that never ended; the watchdog says how long it waited.
watchdog AS (
    SELECT
        run_id,
        source_id,
        CASE
            WHEN is_batch THEN 'the scheduler''s watchdog saw no batch done in its time'
            ELSE 'a collective of the GPUs timed out'
        END AS form,
        line_no AS first_line,
        line_no AS until_line,
        event_ts - to_milliseconds(waited_ms) AS from_ts,
        event_ts AS to_ts,
        waited_ms / 1000 AS silence_s,
        'high' AS confidence,
        1 AS answers_needed,
        0 AS failed_needed
    FROM (
        SELECT
            run_id,
            source_id,
            line_no,
            event_ts,
            message LIKE '%atchdog timeout (self.watchdog_timeout=%' AS is_batch,
            coalesce(
                try_cast(regexp_extract(message, 'ran for (\d+) milliseconds', 1) AS BIGINT),
                1000 * try_cast(regexp_extract(message, 'self\.watchdog_timeout=(\d+)', 1) AS BIGINT)
            ) AS waited_ms
        FROM log_event
        WHERE
            message LIKE '%Watchdog caught collective operation timeout%'
            OR (kind IN ('stall', 'dead') AND message LIKE '%atchdog timeout (self.watchdog_timeout=%')
    )
    QUALIFY row_number() OVER (PARTITION BY source_id ORDER BY line_no) = 1
),

candidate AS (
    SELECT * FROM zeros
    UNION ALL BY NAME
    SELECT * FROM gap
    UNION ALL BY NAME
    SELECT * FROM tail
    UNION ALL BY NAME
    SELECT * FROM untimed
    UNION ALL BY NAME
    SELECT * FROM unseen
    UNION ALL BY NAME
    SELECT * FROM plea
    UNION ALL BY NAME
    SELECT * FROM watchdog
),

silent AS (
    SELECT DISTINCT source_id
    FROM candidate
),

sign_near AS (
    SELECT sign.*
    FROM sign
    INNER JOIN silent ON sign.source_id = silent.source_id
),

judged AS (
    SELECT
        candidate.run_id,
        candidate.source_id,
        candidate.form,
        candidate.first_line,
        candidate.until_line,
        candidate.from_ts,
        candidate.to_ts,
        candidate.silence_s,
        candidate.interval_count,
        candidate.running_count,
        candidate.waiting_count,
        candidate.confidence,
        candidate.answers_needed,
        candidate.failed_needed,
        count(*) FILTER (WHERE sign.kind = 'stall') AS stall_count,
        coalesce(
            list({'source_id': sign.source_id, 'line_no': sign.line_no} ORDER BY sign.line_no) FILTER (
                WHERE sign.kind IN ('stall', 'refused')
            ),
            []
        )[:3] AS sign_lines
    FROM candidate
    LEFT JOIN sign_near AS sign
        ON
            candidate.source_id = sign.source_id
            AND sign.line_no > coalesce(candidate.after_line, candidate.first_line) AND candidate.until_line >= sign.line_no
    GROUP BY ALL
    HAVING
        count(*) FILTER (WHERE sign.kind = 'answered' AND sign.line_no > candidate.first_line) < candidate.answers_needed
        AND count(*) FILTER (WHERE sign.kind = 'ended') < coalesce(nullif(candidate.running_count, 0), 1)
        AND count(*) FILTER (WHERE sign.kind = 'refused') >= candidate.failed_needed
),

worst AS (
    SELECT *
    FROM judged
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY silence_s DESC NULLS LAST, first_line ASC) = 1
),

able AS (
    SELECT run_id
    FROM sample
    GROUP BY run_id
    HAVING count(*) FILTER (WHERE is_told) > $min_interval_count
)

SELECT
    runs.run_id,
    '' AS subject,
    CASE WHEN worst.run_id IS NOT NULL THEN 'fired' WHEN able.run_id IS NOT NULL THEN 'clear' ELSE 'not_evaluated' END AS outcome,
    CASE WHEN worst.stall_count > 0 AND worst.running_count IS NOT NULL THEN 'high' ELSE coalesce(worst.confidence, 'medium') END
        AS confidence,
    CASE WHEN worst.run_id IS NOT NULL THEN 0.98 ELSE 0.0 END AS weight,
    worst.from_ts,
    worst.to_ts,
    CASE
        WHEN worst.run_id IS NULL THEN []
        ELSE list_concat(
                [{'source_id': worst.source_id, 'line_no': worst.first_line}],
                worst.sign_lines,
                CASE WHEN worst.until_line > worst.first_line THEN [{'source_id': worst.source_id, 'line_no': worst.until_line}] ELSE [] END
            )
    END AS evidence,
    coalesce(worst.form, '') AS form,
    CASE
        WHEN worst.waiting_count IS NOT NULL THEN format(' (running {}, waiting {})', worst.running_count, worst.waiting_count)
        WHEN worst.running_count IS NOT NULL THEN format(' (running {})', worst.running_count)
        ELSE ''
    END AS load_text,
    CASE
        WHEN worst.silence_s IS NULL THEN 'for how long is not in the log'
        ELSE 'no token for ' || round(worst.silence_s)::INTEGER || ' s'
    END AS lasting,
    worst.silence_s AS measured_silence_s,
    worst.interval_count AS measured_interval_count,
    worst.running_count AS measured_running_count,
    worst.waiting_count AS measured_waiting_count,
    $min_interval_count AS threshold_interval_count
FROM (SELECT DISTINCT run_id FROM source) AS runs
LEFT JOIN worst ON runs.run_id = worst.run_id
LEFT JOIN able ON runs.run_id = able.run_id
