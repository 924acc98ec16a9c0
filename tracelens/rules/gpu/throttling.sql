/*
title = "Heat or a power limit holds the SM clock down"
belief = "The model became slow for no reason; the GPU shows 100 %."
cause = "thermal-power-throttling"
severity = "critical"
needs = ["gpu_load"]
missing = ["SM clock, power with its limit and the reasons: nvidia-smi --query-gpu=timestamp,index,utilization.gpu,clocks.sm,clocks.max.sm,power.draw,power.limit,temperature.gpu,clocks_event_reasons.active --format=csv -l 1", "engine stats lines of the same time, to see whether throughput falls with it"]
message = "{subject}: in {measured_held_ratio} of the busy readings the SM clock is below {threshold_clock_ratio} of its own high mark ({high_text}, down to {low_text}) because of {sign}.{heat}"
verdict = "The SM clock of {subject} falls from {high_text} to {low_text} because of {sign}: check cooling and the power limit before the software."

[params]
min_clock_loss_ratio = 0.05
min_capped_clock_loss_ratio = 0.15
max_power_margin_ratio = 0.03
min_power_violation_ratio = 0.05
min_temp_c = 85.0
min_held_ratio = 0.1
min_held_count = 3
min_effect_ratio = 0.05

[[remedy]]
kind = "config"
text = "Where a power limit is a choice, compare runs at the same limit only; decode that waits for memory hardly suffers from it."
moves = "what is compared"
next_limit = "memory bandwidth"

[[remedy]]
kind = "hardware"
text = "Cooling first: airflow, fans, dust, neighbours, inlet temperature; then the power limit (nvidia-smi -pl) if the supply allows it."
moves = "SM clock, prefill speed"
next_limit = "the power limit"
---
## What people assume
That a GPU runs at one speed.

## What the data shows
Reasons are often set and do not matter: under full load the power cap is active on most large cards. What matters is a clock below the clock that the same card showed before, for such a reason.

## How it is detected
Busy readings in which the clock is `min_clock_loss_ratio` or more below the 95th percentile of this file's busy readings of this GPU, and one sign holds at the same time: a thermal or hardware reason is set, the power or thermal violation counter says so, power is within `max_power_margin_ratio` of its limit, or the card is at `min_temp_c` or more. At least `min_held_count` readings and `min_held_ratio` of the busy ones. A file that is slow from its first line has no high mark: there the clock at the cap must be `min_capped_clock_loss_ratio` or more below the card's stated maximum (cards for workstations never hold it quite). If stats lines of the same time show that generation does not fall by `min_effect_ratio`, it is only information.

## What to do
Cool, or raise the limit, and watch the clock.

## Known limits
Steps of 15 to 60 s hide short dips. Clocks without a limit, a reason or a temperature say nothing.
*/
WITH reading AS (
    SELECT
        s.run_id,
        s.source_id,
        s.line_no,
        s.sample_ts,
        l.gpu,
        s.sm_clock_mhz,
        s.power_w,
        s.power_limit_w,
        s.temp_c,
        s.sm_clock_mhz / l.busy_clock_p95_mhz AS clock_ratio,
        s.sm_clock_mhz / coalesce(s.sm_clock_max_mhz, l.clock_max_mhz) AS capped_clock_ratio,
        regexp_matches(lower(coalesce(s.clock_reasons, '')), 'thermal|hw_slowdown|power_brake')
        OR coalesce(try_cast(s.clock_reasons AS BIGINT) & 232, 0) > 0
        OR coalesce(s.thermal_violation, FALSE) AS is_thermal,
        coalesce(s.power_violation_ratio >= $min_power_violation_ratio, FALSE)
        OR coalesce(s.power_w >= (1 - $max_power_margin_ratio) * coalesce(s.power_limit_w, l.power_limit_w), FALSE) AS is_capped,
        coalesce(s.temp_c >= $min_temp_c, FALSE) AS is_hot
    FROM gpu_sample AS s
    INNER JOIN gpu_load AS l
        ON
            s.run_id = l.run_id
            AND coalesce(s.host || ' ', '') || coalesce('GPU ' || s.gpu_index, s.gpu_uuid, 'GPU') = l.gpu
    WHERE coalesce(s.sm_ratio, s.gr_active_ratio) >= 0.8
),

marked AS (
    SELECT
        *,
        coalesce(
            (is_thermal OR is_capped OR is_hot)
            AND (clock_ratio <= 1 - $min_clock_loss_ratio OR capped_clock_ratio <= 1 - $min_capped_clock_loss_ratio),
            FALSE
        ) AS is_held
    FROM reading
),

spoken AS (
    SELECT
        run_id,
        avg(generation_tps) FILTER (WHERE is_held) AS held_tps,
        avg(generation_tps) FILTER (WHERE NOT is_held) AS free_tps
    FROM (
        SELECT
            e.run_id,
            e.generation_tps,
            m.is_held
        FROM (SELECT * FROM engine_state WHERE sample_ts IS NOT NULL AND generation_tps > 0) AS e
        ASOF INNER JOIN (
            -- Where no reading is held back there is nothing to compare.
            SELECT *
            FROM marked
            WHERE sample_ts IS NOT NULL AND run_id IN (SELECT held.run_id FROM marked AS held WHERE held.is_held)
        ) AS m
            ON e.run_id = m.run_id AND e.sample_ts >= m.sample_ts
        WHERE epoch(e.sample_ts - m.sample_ts) <= 15
    )
    GROUP BY run_id
),

per_gpu AS (
    SELECT
        run_id,
        gpu,
        count(*) AS busy_count,
        count(sm_clock_mhz) AS clock_count,
        count(coalesce(power_limit_w, temp_c)) > 0 OR bool_or(is_thermal OR is_capped) AS has_sign,
        count(*) FILTER (WHERE is_held) AS held_count,
        bool_or(is_thermal) FILTER (WHERE is_held) AS is_thermal,
        bool_or(is_capped) FILTER (WHERE is_held) AS is_capped,
        bool_or(clock_ratio <= 1 - $min_clock_loss_ratio) FILTER (WHERE is_held) AS has_own_mark,
        quantile_cont(sm_clock_mhz, 0.95) AS high_mhz,
        min(sm_clock_mhz) FILTER (WHERE is_held) AS low_mhz,
        max(temp_c) AS temp_c,
        min(sample_ts) FILTER (WHERE is_held) AS from_ts,
        max(sample_ts) FILTER (WHERE is_held) AS to_ts,
        arg_min({'source_id': source_id, 'line_no': line_no}, (NOT is_held, sm_clock_mhz, source_id, line_no), 5) AS evidence
    FROM marked
    GROUP BY run_id, gpu
),

counted AS (
    SELECT
        *,
        held_count >= $min_held_count AND held_count >= $min_held_ratio * busy_count AS is_throttled
    FROM per_gpu
),

worst AS (
    SELECT
        run_id,
        sum(clock_count) AS clock_count,
        bool_or(has_sign) AS has_sign,
        bool_or(is_throttled) AS is_throttled,
        string_agg(gpu, ', ' ORDER BY gpu) FILTER (WHERE is_throttled) AS gpus,
        sum(held_count) FILTER (WHERE is_throttled) AS held_count,
        sum(held_count) FILTER (WHERE is_throttled) / sum(busy_count) FILTER (WHERE is_throttled) AS held_ratio,
        max(high_mhz) FILTER (WHERE is_throttled) AS high_mhz,
        min(low_mhz) FILTER (WHERE is_throttled) AS low_mhz,
        max(temp_c) FILTER (WHERE is_throttled) AS temp_c,
        bool_or(is_thermal) FILTER (WHERE is_throttled) AS is_thermal,
        bool_or(is_capped) FILTER (WHERE is_throttled) AS is_capped,
        bool_or(has_own_mark) FILTER (WHERE is_throttled) AS has_own_mark,
        min(from_ts) FILTER (WHERE is_throttled) AS from_ts,
        max(to_ts) FILTER (WHERE is_throttled) AS to_ts,
        flatten(list(evidence ORDER BY is_throttled DESC, gpu ASC))[:5] AS evidence
    FROM counted
    GROUP BY run_id
)

SELECT
    run.run_id,
    CASE WHEN is_throttled THEN gpus ELSE '' END AS subject,
    CASE
        WHEN is_throttled THEN 'fired'
        WHEN coalesce(clock_count, 0) = 0 OR NOT has_sign THEN 'not_evaluated'
        ELSE 'clear'
    END AS outcome,
    CASE
        WHEN is_thermal AND held_count >= 10 AND held_tps < free_tps THEN 'high'
        WHEN is_thermal OR (has_own_mark AND held_count >= 10) THEN 'medium'
        ELSE 'low'
    END AS confidence,
    CASE WHEN low_mhz IS NULL THEN 0.0 ELSE greatest(0.3, 1.0 - low_mhz / high_mhz) END AS weight,
    from_ts,
    to_ts,
    evidence,
    CASE WHEN held_tps > (1 - $min_effect_ratio) * free_tps THEN 'info' ELSE 'critical' END AS severity,
    held_ratio AS measured_held_ratio,
    coalesce(format('{:.0f} MHz', high_mhz), '') AS high_text,
    coalesce(format('{:.0f} MHz', low_mhz), '') AS low_text,
    low_mhz / high_mhz AS measured_clock_ratio,
    coalesce(format(' Hottest reading: {:.0f} C.', temp_c), '') AS heat,
    concat_ws(
        ' and ',
        CASE WHEN is_thermal THEN 'a thermal or hardware slowdown' END,
        CASE WHEN is_capped THEN 'the power limit' END,
        CASE WHEN NOT is_thermal AND NOT is_capped THEN 'its temperature' END
    ) AS sign,
    1 - $min_clock_loss_ratio AS threshold_clock_ratio
FROM (SELECT DISTINCT run_id FROM gpu_load) AS run
LEFT JOIN worst ON run.run_id = worst.run_id
LEFT JOIN spoken ON run.run_id = spoken.run_id
