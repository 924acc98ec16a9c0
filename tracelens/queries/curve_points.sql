/*
TTFT and TPOT over prompt length, a point per request, with what the run's straight line (prompt_length_curve) says and how
far the point lies above it. is_outlier: further from the line than 4 times the median distance. Where there are more than
top requests, all outliers (up to top) and an even choice of the others; point_count says how many there are in all.
[params]
run = ""
top = 2000
*/
WITH judged AS NOT MATERIALIZED (
    SELECT
        point.*,
        coalesce(abs(point.above_s) > spread.far_s, FALSE) AS is_outlier,
        spread.point_count,
        spread.outlier_count
    FROM _curve_point AS point
    INNER JOIN _curve_spread AS spread ON point.run_id = spread.run_id
    WHERE ($run = '' OR point.run_id = $run)
),

-- Drawn by a hash, about twice as many of each kind as there will be of both: only these are put in order.
drawn AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY run_id ORDER BY is_outlier DESC, id_hash ASC) AS place
    FROM judged
    WHERE
        id_hash / power(2, 64) * CASE WHEN is_outlier THEN outlier_count ELSE point_count - outlier_count END
        <= 2 * $top + 100
),

chosen AS MATERIALIZED (
    SELECT *
    FROM drawn
    WHERE place <= $top
)

SELECT
    chosen.run_id,
    t.request_id,
    chosen.input_tokens,
    t.cached_input_tokens,
    t.output_tokens,
    chosen.ttft_s,
    t.tpot_s,
    chosen.line_s,
    chosen.above_s,
    chosen.is_outlier,
    chosen.measured_at,
    chosen.point_count
FROM chosen
INNER JOIN _request_timing AS t ON chosen.run_id = t.run_id AND chosen.id_hash = t.id_hash
ORDER BY chosen.run_id ASC, chosen.above_s DESC NULLS LAST, chosen.id_hash ASC
