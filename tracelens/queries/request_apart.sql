/*
What set one request apart: by each measure whether it is among the slowest of its run, and which of the things that set
those apart it has itself. The sentence is the same on each row of a measure. others_below_ratio is the share of the run's
other requests that have less of it.
[params]
request = ""
run = ""
*/
WITH factors AS MATERIALIZED (
    SELECT *
    FROM tail_factors
    WHERE ($run = '' OR run_id = $run)
),

trait AS NOT MATERIALIZED (
    SELECT *
    FROM _tail_trait
    WHERE ($run = '' OR run_id = $run)
),

run_of AS (
    SELECT
        run_id,
        measure,
        any_value(tail_ratio) AS tail_ratio,
        any_value(threshold_s) AS threshold_s,
        any_value(median_s) AS median_s,
        any_value(request_count) AS request_count,
        any_value(compared_count) AS compared_count,
        count(*) FILTER (WHERE is_claimed) AS claimed_count,
        coalesce(any_value(threshold_s) > any_value(median_s), FALSE) AS has_tail
    FROM factors
    GROUP BY run_id, measure
),

asked AS (
    SELECT
        run_id,
        unnest([
            {'name': 'ttft', 'place': 0, 'title': 'TTFT', 'amount_s': coalesce(client_ttft_s, ttft_s)},
            {
                'name': 'e2e', 'place': 1, 'title': 'end-to-end time',
                'amount_s': CASE WHEN end_status = 'ok' THEN coalesce(client_e2e_s, e2e_s) END
            },
            {'name': 'tpot', 'place': 2, 'title': 'TPOT', 'amount_s': CASE WHEN end_status = 'ok' THEN tpot_s END}
        ]) AS measured
    FROM _request_called($request, $run)
),

me AS (
    SELECT
        run_id,
        measured.name AS measure,
        measured.place AS measure_index,
        measured.title AS title,
        measured.amount_s AS measure_s
    FROM asked
),

judged AS (
    SELECT
        me.*,
        run_of.* EXCLUDE (run_id, measure),
        run_of.has_tail AND me.measure_s >= run_of.threshold_s AS is_slow
    FROM me
    INNER JOIN run_of ON me.run_id = run_of.run_id AND me.measure = run_of.measure
    WHERE me.measure_s IS NOT NULL
),

mine AS (
    SELECT
        trait.run_id,
        trait.measure,
        trait.factor_index,
        kind.factor,
        kind.title,
        kind.unit,
        trait.amount,
        trait.level
    FROM trait
    INNER JOIN _trait_kind AS kind ON trait.factor_index = kind.factor_index
    WHERE trait.request_id = $request AND trait.is_slow
),

below AS (
    SELECT
        mine.run_id,
        mine.measure,
        mine.factor,
        count(*) FILTER (WHERE other.amount < mine.amount) / nullif(count(other.amount), 0) AS others_below_ratio,
        count(*) FILTER (WHERE other.amount > mine.amount) / nullif(count(other.amount), 0) AS others_above_ratio
    FROM mine
    INNER JOIN trait AS other
        ON
            mine.run_id = other.run_id AND mine.measure = other.measure AND mine.factor_index = other.factor_index AND NOT other.is_slow
    WHERE mine.amount IS NOT NULL
    GROUP BY mine.run_id, mine.measure, mine.factor
),

has AS (
    -- Of what sets the slow ones apart, what this one has more of (or less, where they have less), by the same measure of effect.
    SELECT
        f.run_id,
        f.measure,
        f.effect_rank,
        f.factor,
        f.level,
        coalesce(_trait_said(mine.amount, mine.unit), mine.level) AS own,
        _trait_said(f.other_middle, f.unit) AS others,
        below.others_below_ratio,
        f.effect,
        f.p_corrected,
        CASE
            WHEN f.level IS NULL
                THEN mine.title || ' ' || _trait_said(mine.amount, mine.unit)
                    || ' (median of the others ' || _trait_said(f.other_middle, f.unit) || ')'
            ELSE mine.title || ' ' || mine.level || ' (' || _trait_said(f.other_middle, '%') || ' of the others)'
        END AS words
    FROM factors AS f
    INNER JOIN mine ON f.run_id = mine.run_id AND f.measure = mine.measure AND f.factor = mine.factor
    LEFT JOIN below ON f.run_id = below.run_id AND f.measure = below.measure AND f.factor = below.factor
    WHERE
        f.is_claimed
        AND CASE
            WHEN f.level IS NOT NULL THEN f.effect > 0 AND f.level = mine.level
            WHEN f.effect > 0 THEN below.others_below_ratio - below.others_above_ratio >= 0.33
            ELSE below.others_above_ratio - below.others_below_ratio >= 0.33
        END
),

told AS (
    SELECT
        run_id,
        measure,
        string_agg(words, ', ' ORDER BY effect_rank) FILTER (WHERE place <= 3) AS words
    FROM (
        SELECT
            *,
            row_number() OVER (PARTITION BY run_id, measure ORDER BY effect_rank) AS place
        FROM has
    )
    GROUP BY run_id, measure
)

SELECT
    judged.run_id,
    judged.measure,
    judged.measure_s,
    judged.threshold_s,
    judged.median_s,
    judged.is_slow,
    CASE
        WHEN NOT judged.has_tail THEN judged.title || ': no request of the run stands out'
        WHEN NOT judged.is_slow
            THEN format(
                    '{} {} is not among the slowest {}, which begins at {}', judged.title, _trait_said(judged.measure_s, 's'),
                    CASE judged.tail_ratio WHEN 0.1 THEN 'tenth' ELSE 'hundredth' END, _trait_said(judged.threshold_s, 's')
                )
        ELSE
            format(
                '{} {} is among the slowest {} (median {}); ', judged.title, _trait_said(judged.measure_s, 's'),
                CASE judged.tail_ratio WHEN 0.1 THEN 'tenth' ELSE 'hundredth' END, _trait_said(judged.median_s, 's')
            )
            || CASE
                WHEN judged.request_count < 30 THEN format('{} requests are too few to say what sets them apart', judged.request_count)
                WHEN told.words IS NOT NULL THEN 'what sets it apart: ' || told.words
                WHEN judged.claimed_count > 0 THEN 'it has nothing of what sets the slow ones of this run apart'
                ELSE format('nothing of the {} things compared sets the slow ones of this run apart', judged.compared_count)
            END
    END AS sentence,
    has.factor,
    has.level,
    has.own,
    has.others,
    has.others_below_ratio,
    has.effect,
    has.p_corrected
FROM judged
LEFT JOIN told ON judged.run_id = told.run_id AND judged.measure = told.measure
LEFT JOIN has ON judged.run_id = has.run_id AND judged.measure = has.measure
ORDER BY judged.run_id ASC, judged.measure_index ASC, has.effect_rank ASC
