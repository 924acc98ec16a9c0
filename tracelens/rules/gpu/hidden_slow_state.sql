/*
title = "The GPU is slow although clock, utilisation and reasons look normal"
belief = "No throttle reason is set and the clock is high, so the GPU is fine."
cause = "gpu-hidden-slow-state"
severity = "critical"
needs = ["gpu_load"]
missing = ["GPU power over time (nvidia-smi --query-gpu=timestamp,index,power.draw,clocks.sm,utilization.gpu,clocks_event_reasons.active --format=csv -l 1)", "engine stats lines of the same time, on the same clock (--gpu-tz)"]
message = "{subject}: {measured_slow_count} of {measured_interval_count} stats intervals give {measured_slow_tps} instead of {measured_normal_tps} with about as many requests running; in them the GPU takes {measured_power_ratio} of its usual power at {measured_clock_ratio} of its usual clock, and no reason is set."
verdict = "{subject} falls into a slow state that no flag shows: {measured_slow_tps} instead of {measured_normal_tps} at {measured_power_ratio} of the usual power with the clock unchanged; look at firmware, power delivery and memory clock of that machine, not at the server."

[params]
min_power_loss_ratio = 0.25
min_speed_loss_ratio = 0.15
max_clock_loss_ratio = 0.05
min_interval_count = 3
max_distance_s = 20.0

[[remedy]]
kind = "config"
text = "Log power per second and alarm on power at full utilisation; restart the machine fully (power off) when it happens, and try newer firmware."
moves = "tokens per second"
next_limit = "memory bandwidth"

[[remedy]]
kind = "hardware"
text = "Swap the node or its power supply if one machine does it and others do not."
moves = "tokens per second"
next_limit = "memory bandwidth"
---
## What people assume
That a slow GPU says so: a lower clock or a throttle reason.

## What the data shows
Clock, utilisation and reasons may stand still while memory or power delivery is limited by firmware. Power falls, and speed falls with it.

## How it is detected
For each stats interval with tokens the GPU's power since the line before is averaged. An interval is slow where generation is `min_speed_loss_ratio` or more below the usual (the 80th percentile over intervals with about as many running, within 20 %) and power `min_power_loss_ratio` or more below its own, while the clock loses no more than `max_clock_loss_ratio` and no reason beyond idle or a software power cap is set. At least `min_interval_count` such intervals, and as many normal ones. Prompt work in an interval is excluded: prefill and decode take different power.

## What to do
Compare with a second machine of the same kind.

## Known limits
A run that is slow from its first second has no normal interval to compare with. Longer contexts slow decoding down as well, but not at falling power.
*/
WITH reading AS (
    SELECT
        s.run_id,
        l.gpu,
        s.source_id,
        s.line_no,
        s.sample_ts,
        s.power_w,
        s.sm_clock_mhz,
        regexp_matches(lower(coalesce(s.clock_reasons, '')), 'thermal|hw_slowdown|power_brake')
        OR coalesce(try_cast(s.clock_reasons AS BIGINT) & 232, 0) > 0
        OR coalesce(s.power_violation_ratio >= 0.05, FALSE) AS has_reason
    FROM gpu_sample AS s
    INNER JOIN gpu_load AS l
        ON
            s.run_id = l.run_id
            AND coalesce(s.host || ' ', '') || coalesce('GPU ' || s.gpu_index, s.gpu_uuid, 'GPU') = l.gpu
    WHERE s.sample_ts IS NOT NULL AND s.power_w IS NOT NULL AND coalesce(s.sm_ratio, s.gr_active_ratio) >= 0.8
),

spoken AS (
    SELECT
        run_id,
        source_id,
        line_no,
        sample_ts,
        running_count,
        generation_tps,
        coalesce(
            lag(sample_ts) OVER (PARTITION BY source_id, engine_index ORDER BY line_no),
            sample_ts - INTERVAL 10 SECONDS
        ) AS from_ts
    FROM engine_state
    WHERE sample_ts IS NOT NULL AND generation_tps > 0 AND coalesce(prompt_tps, 0) <= generation_tps AND running_count > 0
),

joined AS (
    SELECT
        e.run_id,
        g.gpu,
        e.source_id,
        e.line_no,
        e.sample_ts,
        any_value(e.running_count) AS running_count,
        any_value(e.generation_tps) AS generation_tps,
        avg(g.power_w) AS power_w,
        avg(g.sm_clock_mhz) AS clock_mhz,
        bool_or(g.has_reason) AS has_reason
    FROM spoken AS e
    INNER JOIN reading AS g
        ON
            e.run_id = g.run_id AND e.sample_ts >= g.sample_ts
            AND greatest(e.from_ts, e.sample_ts - to_microseconds(($max_distance_s * 1e6)::BIGINT)) < g.sample_ts
    GROUP BY e.run_id, g.gpu, e.source_id, e.line_no, e.sample_ts
),

usual AS (
    SELECT
        *,
        quantile_cont(generation_tps, 0.8) OVER same AS usual_tps,
        quantile_cont(power_w, 0.8) OVER same AS usual_w,
        quantile_cont(clock_mhz, 0.8) OVER same AS usual_mhz
    FROM joined
    WINDOW same AS (PARTITION BY run_id, gpu, round(ln(running_count) / ln(1.2)))
),

marked AS (
    SELECT
        *,
        generation_tps <= (1 - $min_speed_loss_ratio) * usual_tps
        AND power_w <= (1 - $min_power_loss_ratio) * usual_w
        AND coalesce(clock_mhz >= (1 - $max_clock_loss_ratio) * usual_mhz, TRUE)
        AND NOT has_reason AS is_slow,
        generation_tps > (1 - $min_speed_loss_ratio) * usual_tps AS is_normal
    FROM usual
),

per_gpu AS (
    SELECT
        run_id,
        gpu,
        count(*) AS interval_count,
        count(*) FILTER (WHERE is_slow) AS slow_count,
        count(*) FILTER (WHERE is_normal) AS normal_count,
        avg(generation_tps) FILTER (WHERE is_slow) AS slow_tps,
        avg(generation_tps) FILTER (WHERE is_normal) AS normal_tps,
        avg(power_w / usual_w) FILTER (WHERE is_slow) AS power_ratio,
        avg(clock_mhz / usual_mhz) FILTER (WHERE is_slow) AS clock_ratio,
        min(sample_ts) FILTER (WHERE is_slow) AS from_ts,
        max(sample_ts) FILTER (WHERE is_slow) AS to_ts,
        list({'source_id': source_id, 'line_no': line_no} ORDER BY is_slow DESC, line_no ASC)[:5] AS evidence
    FROM marked
    GROUP BY run_id, gpu
),

worst AS (
    SELECT *
    FROM per_gpu
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY slow_count DESC, gpu ASC) = 1
)

SELECT
    run.run_id,
    CASE WHEN slow_count >= $min_interval_count AND normal_count >= $min_interval_count THEN gpu ELSE '' END AS subject,
    CASE
        WHEN coalesce(interval_count, 0) < 2 * $min_interval_count THEN 'not_evaluated'
        WHEN slow_count >= $min_interval_count AND normal_count >= $min_interval_count THEN 'fired'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN slow_count >= 10 AND clock_ratio IS NOT NULL THEN 'high' ELSE 'medium' END AS confidence,
    CASE WHEN slow_tps IS NULL THEN 0.0 ELSE greatest(0.3, 1.0 - slow_tps / normal_tps) END AS weight,
    from_ts,
    to_ts,
    evidence,
    slow_count AS measured_slow_count,
    interval_count AS measured_interval_count,
    slow_tps AS measured_slow_tps,
    normal_tps AS measured_normal_tps,
    power_ratio AS measured_power_ratio,
    clock_ratio AS measured_clock_ratio,
    1 - $min_power_loss_ratio AS threshold_power_ratio
FROM (SELECT DISTINCT run_id FROM gpu_load) AS run
LEFT JOIN worst ON run.run_id = worst.run_id
