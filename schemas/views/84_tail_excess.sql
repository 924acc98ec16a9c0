CREATE VIEW tail_excess AS
WITH chosen AS (
    SELECT *
    FROM _tail_candidate
    WHERE is_slow OR is_typical
),

pieced AS (
    SELECT
        chosen.run_id,
        chosen.measure,
        chosen.request_count,
        chosen.tail_ratio,
        chosen.measure_s,
        chosen.median_s,
        chosen.threshold_s,
        chosen.is_slow,
        chosen.is_typical,
        CASE
            WHEN chosen.measure = 'tpot' THEN [{'stage': 'decode', 'stage_index': 9, 'duration_s': chosen.measure_s}]
            ELSE [
                    {'stage': 'network_in', 'stage_index': 1, 'duration_s': t.network_in_s},
                    {'stage': 'tokenize', 'stage_index': 2, 'duration_s': t.tokenize_s},
                    {'stage': 'step_wait', 'stage_index': 3, 'duration_s': t.step_wait_s},
                    {'stage': 'queue', 'stage_index': 4, 'duration_s': t.queue_s},
                    {'stage': 'prefill', 'stage_index': 6, 'duration_s': t.prefill_s},
                    {'stage': 'stream_out', 'stage_index': 8, 'duration_s': t.stream_out_s},
                    {'stage': 'decode', 'stage_index': 9, 'duration_s': CASE WHEN chosen.measure = 'e2e' THEN t.decode_stage_s END},
                    {'stage': 'unaccounted', 'stage_index': 10, 'duration_s': t.left_s}
                ]
        END AS pieces
    FROM chosen
    INNER JOIN _request_timing AS t ON chosen.run_id = t.run_id AND chosen.request_id = t.request_id
),

summed AS (
    SELECT
        run_id,
        measure,
        piece.stage AS stage,
        piece.stage_index AS stage_index,
        any_value(request_count) AS request_count,
        any_value(tail_ratio) AS tail_ratio,
        any_value(median_s) AS median_s,
        any_value(threshold_s) AS threshold_s,
        count(*) FILTER (WHERE is_slow) AS slow_count,
        count(piece.duration_s) FILTER (WHERE is_slow) AS known_count,
        -- A stage that nobody knows of a request is in its unaccounted: the sum is right, so is the mean over all.
        avg(coalesce(piece.duration_s, 0)) FILTER (WHERE is_slow) AS slow_mean_s,
        avg(coalesce(piece.duration_s, 0)) FILTER (WHERE is_typical) AS typical_mean_s,
        avg(measure_s) FILTER (WHERE is_slow) AS slow_measure_s,
        avg(measure_s) FILTER (WHERE is_typical) AS typical_measure_s
    FROM (
        SELECT
            *,
            unnest(pieces) AS piece
        FROM pieced
    )
    GROUP BY ALL
)

SELECT
    run_id,
    measure,
    stage,
    stage_index,
    request_count,
    slow_count,
    known_count,
    tail_ratio,
    threshold_s,
    median_s,
    slow_measure_s,
    typical_measure_s,
    CASE WHEN known_count > 0 THEN slow_mean_s END AS slow_mean_s,
    CASE WHEN known_count > 0 THEN typical_mean_s END AS typical_mean_s,
    CASE WHEN known_count > 0 THEN slow_mean_s - typical_mean_s END AS excess_s,
    CASE WHEN known_count > 0 THEN (slow_mean_s - typical_mean_s) / nullif(slow_measure_s - typical_measure_s, 0) END AS excess_share
FROM summed
WHERE slow_count > 0 AND (measure = 'e2e' OR stage <> 'decode' OR measure = 'tpot');

COMMENT ON VIEW tail_excess IS 'One row per run, measure and stage: what the slowest requests spend beyond a usual one, and on which stage.';
COMMENT ON COLUMN tail_excess.run_id IS 'Run.';
COMMENT ON COLUMN tail_excess.measure IS 'ttft (the client''s where it is known, else the server''s), e2e or tpot.';
COMMENT ON COLUMN tail_excess.stage IS 'Stage, as in request_stage. Of tpot there is one: decode.';
COMMENT ON COLUMN tail_excess.stage_index IS 'Place in the order of stages.';
COMMENT ON COLUMN tail_excess.request_count IS 'Requests of the run whose measure is known.';
COMMENT ON COLUMN tail_excess.slow_count IS 'Slow ones among them: the slowest tenth, from 1000 requests on the slowest hundredth.';
COMMENT ON COLUMN tail_excess.known_count IS 'Slow ones of which the stage is known.';
COMMENT ON COLUMN tail_excess.tail_ratio IS 'Share of the run that was looked for as slow: 0.1 or 0.01.';
COMMENT ON COLUMN tail_excess.threshold_s IS 'Measure from which on a request is slow, seconds.';
COMMENT ON COLUMN tail_excess.median_s IS 'Median of the measure over the run, seconds.';
COMMENT ON COLUMN tail_excess.slow_measure_s IS 'Mean of the measure over the slow ones, seconds.';
COMMENT ON COLUMN tail_excess.typical_measure_s IS 'Mean of the measure over the usual ones, seconds: the middle fifth of the run by this measure, so that their stages add up to about the median.';
COMMENT ON COLUMN tail_excess.slow_mean_s IS 'Mean of the stage over the slow ones, seconds. NULL where it is known of none; its time is then in unaccounted.';
COMMENT ON COLUMN tail_excess.typical_mean_s IS 'Mean of the stage over the usual ones, seconds.';
COMMENT ON COLUMN tail_excess.excess_s IS 'slow_mean_s less typical_mean_s, seconds. Below 0 where the slow ones spend less on it.';
COMMENT ON COLUMN tail_excess.excess_share IS 'Its part of what the slow ones take longer. The parts of a measure add up to 1; single ones can lie below 0 or above 1.';
