/*
TTFT and TPOT over prompt length, a point per request, with what the run's straight line (prompt_length_curve) says and how
far the point lies above it. is_outlier: further from the line than 4 times the median distance. Where there are more than
top requests, all outliers (up to top) and an even choice of the others; point_count says how many there are in all.
[params]
run = ""
top = 2000
*/
WITH point AS NOT MATERIALIZED (
    SELECT
        run_id,
        request_id,
        input_tokens,
        cached_input_tokens,
        output_tokens,
        CASE WHEN ttft_s IS NOT NULL THEN 'server' ELSE 'client' END AS measured_at,
        coalesce(ttft_s, client_ttft_s) AS ttft_s,
        tpot_s
    FROM request
    WHERE ($run = '' OR run_id = $run) AND input_tokens IS NOT NULL AND abs(coalesce(ttft_s, client_ttft_s)) < 1e10
),

told AS (
    SELECT
        run_id,
        max(measured_at) AS measured_at
    FROM point
    GROUP BY run_id
),

fitted AS NOT MATERIALIZED (
    SELECT
        point.*,
        curve.intercept_s + curve.slope_s_per_1k_tokens * point.input_tokens / 1000.0 AS line_s,
        point.ttft_s - curve.intercept_s - curve.slope_s_per_1k_tokens * point.input_tokens / 1000.0 AS above_s
    FROM point
    INNER JOIN told ON point.run_id = told.run_id AND point.measured_at = told.measured_at
    INNER JOIN prompt_length_curve AS curve ON point.run_id = curve.run_id
),

usual AS (
    SELECT
        run_id,
        median(abs(above_s)) AS distance_s,
        count(*) AS point_count
    FROM fitted
    GROUP BY run_id
),

judged AS (
    SELECT
        fitted.*,
        coalesce(abs(fitted.above_s) > 4 * usual.distance_s, FALSE) AS is_outlier,
        usual.point_count
    FROM fitted
    INNER JOIN usual ON fitted.run_id = usual.run_id
),

placed AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY run_id ORDER BY is_outlier DESC, hash(request_id) ASC) AS place
    FROM judged
)

SELECT
    run_id,
    request_id,
    input_tokens,
    cached_input_tokens,
    output_tokens,
    ttft_s,
    tpot_s,
    line_s,
    above_s,
    is_outlier,
    measured_at,
    point_count
FROM placed
WHERE place <= $top
ORDER BY run_id ASC, above_s DESC NULLS LAST, request_id ASC
