/*
TTFT and TPOT over prompt length, a point per request, with what the run's straight line (prompt_length_curve) says and how
far the point lies above it. is_outlier: further from the line than 4 times the median distance. Where there are more than
top requests, all outliers (up to top) and an even choice of the others; point_count says how many there are in all.
[params]
run = ""
top = 2000
*/
WITH point AS (
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

chosen AS (
    SELECT *
    FROM point
    QUALIFY measured_at = max(measured_at) OVER (PARTITION BY run_id)
),

fitted AS (
    SELECT
        chosen.*,
        curve.intercept_s + curve.slope_s_per_1k_tokens * chosen.input_tokens / 1000.0 AS line_s,
        chosen.ttft_s - curve.intercept_s - curve.slope_s_per_1k_tokens * chosen.input_tokens / 1000.0 AS above_s
    FROM chosen
    INNER JOIN prompt_length_curve AS curve ON chosen.run_id = curve.run_id
),

judged AS (
    SELECT
        *,
        coalesce(abs(above_s) > 4 * median(abs(above_s)) OVER (PARTITION BY run_id), FALSE) AS is_outlier,
        count(*) OVER (PARTITION BY run_id) AS point_count
    FROM fitted
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
