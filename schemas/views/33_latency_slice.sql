-- Where the time goes in a middling and in a slow request.  A finished case has the rows of the usual quantile.

CREATE MACRO _latency_slice_of(chosen, slow_quantile) AS TABLE
    WITH measured AS (
    -- The durations of request_stage without what explains them: this is asked of every request of a case.
        SELECT
            *,
            CASE chosen
                WHEN 'ttft' THEN coalesce(client_ttft_s, ttft_s)
                WHEN 'e2e' THEN coalesce(client_e2e_s, e2e_s)
                ELSE error('by is ttft or e2e')
            END AS measure_s
        FROM _request_timing
    ),

    bounded AS (
        SELECT
            run_id,
            -- Values that occur, so that the middle of few requests is not empty.
            quantile_disc(measure_s, [0.45, 0.55]) || [quantile_cont(measure_s, slow_quantile)] AS bounds_s
        FROM measured
        GROUP BY run_id
    ),

    sliced AS (
        SELECT
            measured.*,
            CASE WHEN measured.measure_s >= bounded.bounds_s[3] THEN 'slowest' ELSE 'median' END AS slice,
            bounded.bounds_s[3] AS threshold_s
        FROM measured
        INNER JOIN bounded ON measured.run_id = bounded.run_id
        WHERE
            measured.measure_s >= bounded.bounds_s[3]
            OR measured.measure_s BETWEEN bounded.bounds_s[1] AND bounded.bounds_s[2]
    ),

    listed AS (
        SELECT
            run_id,
            slice,
            measure_s,
            threshold_s,
            unnest([
                {'stage': 'network_in', 'place': 1.0, 'length_s': network_in_s, 'known_as': 'derived', 'else_as': 'unknown'},
                {
                    'stage': 'tokenize', 'place': 2.0, 'length_s': tokenize_s, 'known_as': 'derived',
                    'else_as': CASE
                        WHEN arrival_includes_tokenize = FALSE AND network_in_s IS NOT NULL THEN 'within'
                        WHEN blocking_step_s >= rest_s THEN 'within'
                        ELSE 'unknown'
                    END
                },
                {
                    'stage': 'step_wait', 'place': 3.0, 'length_s': step_wait_s, 'known_as': 'derived',
                    'else_as': CASE WHEN queue_starts = 'arrival' AND queue_s IS NOT NULL THEN 'within' ELSE 'unknown' END
                },
                {'stage': 'unaccounted', 'place': 3.5, 'length_s': left_s, 'known_as': 'derived', 'else_as': 'unknown'},
                {'stage': 'queue', 'place': 4.0, 'length_s': queue_s, 'known_as': 'observed', 'else_as': 'unknown'},
                {
                    'stage': 'kv_alloc', 'place': 5.0, 'length_s': NULL, 'known_as': 'observed',
                    'else_as': CASE WHEN queue_s IS NOT NULL OR prefill_s IS NOT NULL THEN 'within' ELSE 'unknown' END
                },
                {
                    'stage': 'prefill', 'place': 6.0, 'length_s': prefill_s,
                    'known_as': CASE WHEN prefill_stated THEN 'observed' ELSE 'derived' END, 'else_as': 'unknown'
                },
                {
                    'stage': 'sample', 'place': 7.0, 'length_s': NULL, 'known_as': 'observed',
                    'else_as': CASE WHEN prefill_s IS NOT NULL THEN 'within' ELSE 'unknown' END
                },
                {'stage': 'stream_out', 'place': 8.0, 'length_s': stream_out_s, 'known_as': 'derived', 'else_as': 'unknown'},
                {
                    'stage': 'decode', 'place': 9.0, 'length_s': decode_stage_s,
                    'known_as': CASE WHEN frame = 'server' AND e2e_error_s > 0 THEN 'derived' ELSE 'observed' END,
                    'else_as': CASE WHEN frame = 'end' THEN 'within' ELSE 'unknown' END
                }
            ]) AS piece
        FROM sliced
    ),

    summed AS (
        SELECT
            run_id,
            slice,
            piece.stage AS stage,
            piece.place AS place,
            sum(piece.length_s) AS sum_s,
            count(piece.length_s) AS known_count,
            count(*) AS slice_count,
            mode(CASE WHEN piece.length_s IS NOT NULL THEN piece.known_as ELSE piece.else_as END) AS provenance,
            avg(measure_s) AS slice_mean_s,
            any_value(threshold_s) AS threshold_s
        FROM listed
        WHERE chosen = 'e2e' OR piece.stage <> 'decode'
        GROUP BY run_id, slice, piece.stage, piece.place
    )

    SELECT
        chosen AS measure,
        slow_quantile AS quantile,
        *
    FROM summed;

CREATE VIEW _latency_slice AS
FROM _latency_slice_of('ttft', 0.99)
UNION ALL
FROM _latency_slice_of('e2e', 0.99);
COMMENT ON VIEW _latency_slice IS 'One row per run, measure (ttft, e2e), slice (median, slowest) and stage: its length summed over the requests of the slice.';

-- The slices at any quantile.
CREATE MACRO _latency_slices(chosen, slow_quantile) AS TABLE
    SELECT *
    FROM _latency_slice
    WHERE measure = CASE WHEN chosen IN ('ttft', 'e2e') THEN chosen ELSE error('by is ttft or e2e') END AND slow_quantile = quantile
    UNION ALL
    SELECT *
    FROM _latency_slice_of(chosen, slow_quantile)
    WHERE slow_quantile <> 0.99;
