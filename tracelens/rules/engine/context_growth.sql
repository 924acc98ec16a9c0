/*
title = "Throughput falls a little because the contexts grow"
belief = "Throughput declines steadily, so there is a leak, or the GPU throttles."
cause = "no-fault"
severity = "info"
needs = ["engine_sample"]
missing = ["ten or more stats lines in a row while the same requests decode"]
message = "Over {measured_held_s} the same {measured_running_count} requests decoded: throughput fell by {measured_fall_ratio} while their KV cache grew by {measured_growth_ratio}."
verdict = "No fault: throughput falls by {measured_fall_ratio} while the same requests' contexts grow by {measured_growth_ratio}; attention over a longer context costs more."

[params]
min_sample_count = 10
max_correlation = -0.5
---
## What people assume
A steady decline is a leak or throttling.
## What the data shows
The same requests decode all the time.  Each token looks at a longer context, so a step takes longer.
## How it is detected
At least `min_sample_count` stats lines in a row with a constant number running, nothing waiting and a growing KV cache; throughput falls with
time (correlation at most `max_correlation`), and by no more than the cache grows: attention is a part of a step, so its cost cannot
raise the step by more than the context rises.
## What to do
Nothing.
## Known limits
A slow decline of another cause of the same size hides behind it; GPU clocks would show throttling.
*/
WITH spaced AS (
    SELECT
        run_id,
        source_id,
        engine_index,
        line_no,
        sample_ts,
        running_count,
        generation_tps,
        kv_cache_usage_ratio,
        coalesce(
            running_count > 0 AND running_count = lag(running_count) OVER engine AND coalesce(waiting_count, 0) = 0
            AND coalesce(prompt_tps, 0) = 0 AND generation_tps > 0
            AND kv_cache_usage_ratio >= lag(kv_cache_usage_ratio) OVER engine,
            FALSE
        ) AS goes_on
    FROM engine_state
    WINDOW engine AS (PARTITION BY source_id, engine_index ORDER BY line_no, sample_ts)
),

marked AS (
    SELECT
        *,
        count(CASE WHEN NOT goes_on THEN 1 END) OVER (PARTITION BY source_id, engine_index ORDER BY line_no, sample_ts) AS stretch,
        row_number() OVER (PARTITION BY source_id, engine_index ORDER BY line_no, sample_ts) AS place
    FROM spaced
),

held AS (
    SELECT
        run_id,
        source_id,
        count(*) AS sample_count,
        min(line_no) AS first_line,
        max(line_no) AS last_line,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        max(running_count) AS running_count,
        corr(generation_tps, place) AS correlation,
        -regr_slope(generation_tps, place) * (count(*) - 1) / avg(generation_tps) AS fall_ratio,
        max(kv_cache_usage_ratio) / nullif(min(kv_cache_usage_ratio), 0) - 1 AS growth_ratio
    FROM marked
    WHERE goes_on
    GROUP BY run_id, source_id, engine_index, stretch
    HAVING count(*) >= $min_sample_count
),

longest AS (
    SELECT *
    FROM held
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY sample_count DESC, first_line ASC) = 1
)

SELECT
    runs.run_id,
    '' AS subject,
    CASE
        WHEN longest.run_id IS NULL THEN 'not_evaluated'
        WHEN longest.correlation <= $max_correlation AND longest.fall_ratio BETWEEN 0 AND longest.growth_ratio THEN 'fired'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN longest.sample_count >= 30 THEN 'medium' ELSE 'low' END AS confidence,
    least(greatest(coalesce(longest.fall_ratio, 0), 0), 1) AS weight,
    longest.from_ts,
    longest.to_ts,
    CASE
        WHEN longest.run_id IS NULL THEN []
        ELSE [
                {'source_id': longest.source_id, 'line_no': longest.first_line},
                {'source_id': longest.source_id, 'line_no': longest.last_line}
            ]
    END AS evidence,
    epoch(longest.to_ts - longest.from_ts) AS measured_held_s,
    longest.running_count AS measured_running_count,
    longest.fall_ratio AS measured_fall_ratio,
    longest.growth_ratio AS measured_growth_ratio,
    $max_correlation AS threshold_correlation
FROM (SELECT DISTINCT run_id FROM engine_state) AS runs
LEFT JOIN longest ON runs.run_id = longest.run_id
