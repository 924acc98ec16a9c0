/*
Where the time goes in a middling and in a slow request: the mean of each stage over the requests around the median (45th to
55th percentile) and over those at or above a quantile, by one measure. The stages of a slice add up to its mean_s.
excess_ratio is the stage's part of what the slow ones take longer. by is ttft or e2e, as in slowest; provenance is that
of most requests of the slice.
[params]
by = "ttft"
quantile = 0.99
run = ""
*/
WITH measured AS (
    -- The durations of request_stage without what explains them: this is asked of every request of a case.
    SELECT
        *,
        CASE $by
            WHEN 'ttft' THEN coalesce(client_ttft_s, ttft_s)
            WHEN 'e2e' THEN coalesce(client_e2e_s, e2e_s)
            ELSE error('by is ttft or e2e')
        END AS measure_s
    FROM _request_timing
    WHERE $run IN ('', run_id)
),

bounded AS (
    SELECT
        run_id,
        -- Values that occur, so that the middle of few requests is not empty.
        quantile_disc(measure_s, [0.45, 0.55]) || [quantile_cont(measure_s, $quantile)] AS bounds_s
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
        sum(piece.length_s) / count(*) AS mean_s,
        count(piece.length_s) AS known_count,
        count(*) AS slice_count,
        mode(CASE WHEN piece.length_s IS NOT NULL THEN piece.known_as ELSE piece.else_as END) AS provenance,
        avg(measure_s) AS slice_mean_s,
        any_value(threshold_s) AS threshold_s
    FROM listed
    WHERE $by = 'e2e' OR piece.stage <> 'decode'
    GROUP BY run_id, slice, piece.stage, piece.place
)

SELECT
    slow.run_id,
    slow.slice,
    slow.stage,
    slow.mean_s,
    slow.mean_s / nullif(slow.slice_mean_s, 0) AS share_ratio,
    (slow.mean_s - coalesce(middling.mean_s, 0)) / nullif(slow.slice_mean_s - middling.slice_mean_s, 0) AS excess_ratio,
    slow.provenance,
    slow.known_count,
    slow.slice_count,
    slow.slice_mean_s,
    slow.threshold_s
FROM summed AS slow
LEFT JOIN summed AS middling
    ON slow.run_id = middling.run_id AND slow.stage = middling.stage AND slow.slice = 'slowest' AND middling.slice = 'median'
ORDER BY slow.run_id ASC, slow.slice ASC, slow.place ASC
