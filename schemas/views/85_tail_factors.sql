CREATE VIEW tail_factors AS
WITH trait AS (
    SELECT *
    FROM _tail_trait
),

-- An engine, a client, a kind of answer: each of the twelve most common values against all others, as 1 against 0.
-- Of two values one says it all: the rarer.
tally AS (
    SELECT
        run_id,
        measure,
        factor_index,
        level,
        count(*) AS level_count,
        count(*) FILTER (WHERE is_slow) AS slow_level_count,
        sum(count(*)) OVER whole AS all_count,
        sum(count(*) FILTER (WHERE is_slow)) OVER whole AS all_slow_count
    FROM trait
    WHERE level IS NOT NULL
    GROUP BY run_id, measure, factor_index, level
    WINDOW whole AS (PARTITION BY run_id, measure, factor_index)
    QUALIFY
        row_number() OVER (PARTITION BY run_id, measure, factor_index ORDER BY level_count DESC, level ASC) <= 12
        AND (
            count(*) OVER whole <> 2
            OR row_number() OVER (PARTITION BY run_id, measure, factor_index ORDER BY level_count ASC, level DESC) = 1
        )
),

piled AS (
    -- How many slow ones and others have each value.
    SELECT
        run_id,
        measure,
        factor_index,
        NULL AS level,
        amount,
        count(*) FILTER (WHERE is_slow) AS slow_count,
        count(*) FILTER (WHERE NOT is_slow) AS other_count
    FROM trait
    WHERE amount IS NOT NULL AND isfinite(amount)
    GROUP BY run_id, measure, factor_index, amount
    UNION ALL
    SELECT
        run_id,
        measure,
        factor_index,
        level,
        side.amount AS amount,
        side.slow_count AS slow_count,
        side.other_count AS other_count
    FROM (
        SELECT
            *,
            unnest([
                {'amount': 1.0, 'slow_count': slow_level_count, 'other_count': level_count - slow_level_count},
                {
                    'amount': 0.0, 'slow_count': all_slow_count - slow_level_count,
                    'other_count': all_count - all_slow_count - level_count + slow_level_count
                }
            ]) AS side
        FROM tally
    )
    WHERE side.slow_count + side.other_count > 0
),

ranked AS (
    SELECT
        *,
        sum(other_count) OVER below - other_count AS lower_count
    FROM piled
    WINDOW below AS (PARTITION BY run_id, measure, factor_index, level ORDER BY amount)
),

tested AS (
    -- Mann and Whitney's U by counting: for each slow one the others below it, and half of those that equal it.
    SELECT
        run_id,
        measure,
        factor_index,
        level,
        count(*) AS value_count,
        sum(slow_count)::DOUBLE AS slow_count,
        sum(other_count)::DOUBLE AS other_count,
        sum(slow_count::DOUBLE * (lower_count + other_count / 2.0)) AS u,
        sum((slow_count + other_count)::DOUBLE ** 3 - (slow_count + other_count)) AS tie_sum
    FROM ranked
    GROUP BY run_id, measure, factor_index, level
),

scored AS (
    SELECT
        *,
        CASE WHEN slow_count > 0 AND other_count > 0 THEN 2 * u / (slow_count * other_count) - 1 END AS effect,
        -- Standard error of U, with its correction for ties.
        sqrt(greatest(
            0.0,
            slow_count * other_count / 12 * (
                slow_count + other_count + 1
                - tie_sum / ((slow_count + other_count) * (slow_count + other_count - 1))
            )
        )) AS u_error
    FROM tested
    WHERE slow_count + other_count > 1
),

judged AS (
    SELECT
        *,
        CASE
            WHEN value_count > 1 AND slow_count >= 3 AND slow_count + other_count >= 30 AND u_error > 0
                THEN _two_sided_p(greatest(0.0, abs(u - slow_count * other_count / 2) - 0.5) / u_error)
        END AS p
    FROM scored
),

counted AS (
    SELECT
        *,
        count(p) OVER (PARTITION BY run_id, measure) AS compared_count,
        row_number() OVER (PARTITION BY run_id, measure ORDER BY p ASC NULLS LAST, factor_index ASC, level ASC) AS p_rank
    FROM judged
),

corrected AS (
    -- Holm: the smallest of m p-values times m, the next times m - 1, and none smaller than the one before.
    SELECT
        *,
        CASE
            WHEN p IS NOT NULL
                THEN max(least(1.0, p * (compared_count - p_rank + 1))) OVER (PARTITION BY run_id, measure ORDER BY p_rank)
        END AS p_corrected
    FROM counted
),

middle AS (
    SELECT
        run_id,
        measure,
        factor_index,
        any_value(request_count) AS request_count,
        any_value(tail_ratio) AS tail_ratio,
        any_value(median_s) AS median_s,
        any_value(threshold_s) AS threshold_s,
        count(*) FILTER (WHERE is_slow) AS run_slow_count,
        median(amount) FILTER (WHERE is_slow) AS slow_median,
        median(amount) FILTER (WHERE NOT is_slow) AS other_median
    FROM trait
    GROUP BY run_id, measure, factor_index
),

described AS (
    SELECT
        m.run_id,
        m.measure,
        kind.factor,
        m.factor_index,
        c.level,
        kind.title,
        kind.unit,
        kind.needs,
        m.request_count,
        m.tail_ratio,
        m.median_s,
        m.threshold_s,
        m.run_slow_count,
        coalesce(c.slow_count, 0)::BIGINT AS slow_count,
        coalesce(c.other_count, 0)::BIGINT AS other_count,
        CASE WHEN c.level IS NULL THEN m.slow_median ELSE t.slow_level_count / nullif(t.all_slow_count, 0) END AS slow_middle,
        CASE
            WHEN c.level IS NULL THEN m.other_median
            ELSE (t.level_count - t.slow_level_count) / nullif(t.all_count - t.all_slow_count, 0)
        END AS other_middle,
        c.value_count,
        c.effect,
        c.p,
        c.p_corrected,
        coalesce(max(c.compared_count) OVER (PARTITION BY m.run_id, m.measure), 0) AS compared_count,
        coalesce(c.p_corrected < 0.01 AND abs(c.effect) >= 0.33, FALSE) AS is_claimed
    FROM middle AS m
    INNER JOIN _trait_kind AS kind ON m.factor_index = kind.factor_index
    LEFT JOIN corrected AS c ON m.run_id = c.run_id AND m.measure = c.measure AND m.factor_index = c.factor_index
    LEFT JOIN tally AS t ON m.run_id = t.run_id AND m.measure = t.measure AND m.factor_index = t.factor_index AND c.level = t.level
)

SELECT
    run_id,
    measure,
    row_number() OVER (
        PARTITION BY run_id, measure
        ORDER BY is_claimed DESC, CASE WHEN p IS NOT NULL THEN abs(effect) END DESC NULLS LAST, factor_index ASC, level ASC
    ) AS effect_rank,
    factor,
    level,
    request_count,
    tail_ratio,
    threshold_s,
    median_s,
    slow_count,
    other_count,
    slow_middle,
    other_middle,
    unit,
    effect,
    p,
    p_corrected,
    compared_count,
    is_claimed,
    CASE
        WHEN slow_count + other_count = 0 THEN title || ': not known; needs ' || needs
        WHEN run_slow_count = 0 THEN title || ': no request of the run is slower than the others'
        WHEN value_count = 1 THEN title || ': the same in all that are known'
        WHEN slow_count = 0 THEN title || ': not known of the slow ones; needs ' || needs
        WHEN p IS NULL
            THEN format(
                    '{}: known of {} slow and {} other requests, too few to say (30 in all, 3 of them slow)', title, slow_count, other_count
                )
        ELSE
            coalesce(title || ' ' || level, title)
            || CASE WHEN is_claimed THEN ': ' ELSE ': nothing to claim; ' END
            || CASE WHEN level IS NULL THEN 'median ' ELSE '' END
            || _trait_said(slow_middle, unit)
            || ' of the slow ones, '
            || _trait_said(other_middle, unit)
            || ' of the others'
    END AS words
FROM described;

COMMENT ON VIEW tail_factors IS 'One row per run, measure and thing in which requests differ: whether it sets the slowest apart from the others, strongest first. An association, not yet a cause.';
COMMENT ON COLUMN tail_factors.run_id IS 'Run.';
COMMENT ON COLUMN tail_factors.measure IS 'ttft (the client''s where it is known, else the server''s), e2e or tpot: by what the slow ones are slow.';
COMMENT ON COLUMN tail_factors.effect_rank IS 'Place among the run''s factors of this measure, from 1: what is claimed first, the greatest effect first.';
COMMENT ON COLUMN tail_factors.factor IS 'What was compared: input_tokens, mates_prefill_tokens (prefill of other requests around its arrival), line_count (requests before it that had no first token when it arrived), arrivals_in_second, there_count (requests in the server when it arrived), since_start_s, output_tokens, cached_ratio, preemption_count, step_s (engine step that ran when it arrived), gap_s (longest gap in its stream), sm_ratio, sm_clock_mhz, power_w, engine, client, streamed.';
COMMENT ON COLUMN tail_factors.level IS 'Which engine, client or kind of answer is set against the rest; NULL for numbers.';
COMMENT ON COLUMN tail_factors.request_count IS 'Requests of the run whose measure is known.';
COMMENT ON COLUMN tail_factors.tail_ratio IS 'Share of the run that was looked for as slow: 0.1, from 1000 requests on 0.01.';
COMMENT ON COLUMN tail_factors.threshold_s IS 'Measure from which on a request is slow, seconds.';
COMMENT ON COLUMN tail_factors.median_s IS 'Median of the measure over the run, seconds.';
COMMENT ON COLUMN tail_factors.slow_count IS 'Slow requests of which the factor is known; 0 where nobody knows it.';
COMMENT ON COLUMN tail_factors.other_count IS 'Other requests of which it is known; of more than about 5,000 a part is compared, chosen by their ids.';
COMMENT ON COLUMN tail_factors.slow_middle IS 'Median over the slow ones, in unit; of an engine, client or kind of answer the share of the slow ones that are its.';
COMMENT ON COLUMN tail_factors.other_middle IS 'The same over the others.';
COMMENT ON COLUMN tail_factors.unit IS 'Unit of both: tokens, s, MHz, W, % (then they are shares from 0 to 1), empty for counts.';
COMMENT ON COLUMN tail_factors.effect IS 'Cliff''s delta: how much more often a slow request has more of it than another one than less, -1 to 1. 0.33 is a medium effect, 1 means that every slow one has more.';
COMMENT ON COLUMN tail_factors.p IS 'Two-sided p of Mann and Whitney''s test, normal approximation with ties and continuity corrected. NULL where it is known of fewer than 30 requests or 3 slow ones, or is the same in all.';
COMMENT ON COLUMN tail_factors.p_corrected IS 'p after Holm''s correction for the number of factors that were compared in this run and measure.';
COMMENT ON COLUMN tail_factors.compared_count IS 'How many those are.';
COMMENT ON COLUMN tail_factors.is_claimed IS 'Whether it sets them apart: p_corrected below 0.01 and an effect of at least 0.33 either way.';
COMMENT ON COLUMN tail_factors.words IS 'The same in words, also where it is not known and what would show it.';
