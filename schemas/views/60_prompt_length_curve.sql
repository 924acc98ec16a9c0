CREATE VIEW prompt_length_curve AS
WITH point AS (
    SELECT
        run_id,
        input_tokens / 1000.0 AS thousand_tokens,
        CASE WHEN ttft_s IS NOT NULL THEN 'server' ELSE 'client' END AS measured_at,
        coalesce(ttft_s, client_ttft_s) AS ttft_s
    FROM request
    WHERE input_tokens IS NOT NULL AND abs(coalesce(ttft_s, client_ttft_s)) < 1e10
),

-- One curve from one kind of clock: the server's where any request has it.
chosen AS (
    SELECT *
    FROM point
    QUALIFY measured_at = max(measured_at) OVER (PARTITION BY run_id)
),

fitted AS (
    SELECT
        run_id,
        any_value(measured_at) AS measured_at,
        count(*) AS sample_count,
        regr_slope(ttft_s, thousand_tokens) AS slope_s_per_1k_tokens,
        regr_intercept(ttft_s, thousand_tokens) AS intercept_s,
        regr_r2(ttft_s, thousand_tokens) AS r2,
        regr_avgx(ttft_s, thousand_tokens) AS mean_thousand_tokens,
        regr_sxx(ttft_s, thousand_tokens) AS spread,
        regr_syy(ttft_s, thousand_tokens) AS total_square
    FROM chosen
    GROUP BY run_id
)

SELECT
    run_id,
    CASE WHEN spread > 0 THEN slope_s_per_1k_tokens END AS slope_s_per_1k_tokens,
    CASE
        WHEN sample_count > 2 AND spread > 0
            THEN slope_s_per_1k_tokens - 1.96 * sqrt(greatest(total_square * (1 - r2), 0) / (sample_count - 2) / spread)
    END AS slope_low_s,
    CASE
        WHEN sample_count > 2 AND spread > 0
            THEN slope_s_per_1k_tokens + 1.96 * sqrt(greatest(total_square * (1 - r2), 0) / (sample_count - 2) / spread)
    END AS slope_high_s,
    CASE WHEN spread > 0 THEN intercept_s END AS intercept_s,
    CASE
        WHEN sample_count > 2 AND spread > 0
            THEN
                1.96
                * sqrt(
                    greatest(total_square * (1 - r2), 0) / (sample_count - 2) * (1 / sample_count + power(mean_thousand_tokens, 2) / spread)
                )
    END AS intercept_error_s,
    CASE WHEN spread > 0 THEN r2 END AS r2,
    sample_count,
    measured_at
FROM fitted;

COMMENT ON VIEW prompt_length_curve IS 'One row per run: the straight line of TTFT over prompt length, by least squares.';
COMMENT ON COLUMN prompt_length_curve.run_id IS 'Run.';
COMMENT ON COLUMN prompt_length_curve.slope_s_per_1k_tokens IS 'Seconds of TTFT per 1000 prompt tokens; NULL where all prompts are of one length.';
COMMENT ON COLUMN prompt_length_curve.slope_low_s IS 'Lower end of its 95 % interval (normal errors assumed; a queue in TTFT breaks that).';
COMMENT ON COLUMN prompt_length_curve.slope_high_s IS 'Upper end of its 95 % interval.';
COMMENT ON COLUMN prompt_length_curve.intercept_s IS 'TTFT of an empty prompt, seconds.';
COMMENT ON COLUMN prompt_length_curve.intercept_error_s IS 'Half of the 95 % interval of intercept_s, with the same assumption.';
COMMENT ON COLUMN prompt_length_curve.r2 IS 'Share of TTFT''s variance that prompt length explains, 0 to 1.';
COMMENT ON COLUMN prompt_length_curve.sample_count IS 'Requests behind it.';
COMMENT ON COLUMN prompt_length_curve.measured_at IS 'server or client: whose TTFT it is.';

-- A request's TTFT over its prompt length, by the clock of its run's line, and how far it lies above that line.
CREATE VIEW _curve_point AS
SELECT
    r.run_id,
    r.id_hash,
    r.input_tokens,
    coalesce(r.ttft_s, r.client_ttft_s) AS ttft_s,
    curve.measured_at,
    curve.intercept_s + curve.slope_s_per_1k_tokens * r.input_tokens / 1000.0 AS line_s,
    coalesce(r.ttft_s, r.client_ttft_s) - curve.intercept_s - curve.slope_s_per_1k_tokens * r.input_tokens / 1000.0 AS above_s
FROM _request_timing AS r
INNER JOIN prompt_length_curve AS curve
    ON r.run_id = curve.run_id AND (r.ttft_s IS NOT NULL) = (curve.measured_at = 'server')
WHERE r.input_tokens IS NOT NULL AND abs(coalesce(r.ttft_s, r.client_ttft_s)) < 1e10;
COMMENT ON VIEW _curve_point IS 'One row per request that its run''s prompt_length_curve is laid through.';

CREATE VIEW _curve_spread AS
WITH usual AS (
    SELECT
        run_id,
        4 * median(abs(above_s)) AS far_s
    FROM _curve_point
    GROUP BY run_id
)

SELECT
    point.run_id,
    usual.far_s,
    count(*) AS point_count,
    count(*) FILTER (WHERE abs(point.above_s) > usual.far_s) AS outlier_count
FROM _curve_point AS point
INNER JOIN usual ON point.run_id = usual.run_id
GROUP BY point.run_id, usual.far_s;
COMMENT ON VIEW _curve_spread IS 'One row per run: how far from its prompt_length_curve a request is an outlier, and how many are.';
