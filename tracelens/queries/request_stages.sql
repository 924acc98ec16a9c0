/*
The stages of one request, each with its error, how it is known, and how it stands among the other requests of the run.
percentile_ratio is the share of the run's requests in which the stage is known and shorter. unaccounted stands before
queue: what it holds is mostly front end, tokenization and step wait.
[params]
request = ""
run = ""
*/
WITH known AS (
    SELECT *
    FROM request_stage
    WHERE $run IN ('', run_id)
),

me AS (
    SELECT
        known.*,
        sum(known.duration_s) FILTER (WHERE known.stage NOT IN ('client_wait', 'decode')) OVER (PARTITION BY known.run_id) AS ttft_sum_s,
        r.client_ttft_s IS NOT NULL OR r.ttft_s IS NOT NULL AS has_ttft
    FROM known
    INNER JOIN request AS r ON known.run_id = r.run_id AND known.request_id = r.request_id
    WHERE known.request_id = $request
),

run_of AS (
    SELECT
        known.run_id,
        known.stage,
        quantile_cont(known.duration_s, 0.5) AS median_s,
        count(known.duration_s) AS known_count,
        count(*) FILTER (WHERE known.duration_s < me.duration_s) AS shorter_count
    FROM known
    INNER JOIN me ON known.run_id = me.run_id AND known.stage = me.stage
    GROUP BY known.run_id, known.stage
)

SELECT
    me.run_id,
    me.stage,
    me.stage_index,
    me.start_ts,
    me.duration_s,
    me.error_s,
    CASE
        WHEN me.has_ttft AND me.stage NOT IN ('client_wait', 'decode') THEN me.duration_s / nullif(me.ttft_sum_s, 0)
    END AS share_of_ttft_ratio,
    run_of.median_s,
    CASE WHEN run_of.median_s >= 1e-6 THEN me.duration_s / run_of.median_s END AS times_median,
    CASE WHEN me.duration_s IS NOT NULL THEN run_of.shorter_count / run_of.known_count END AS percentile_ratio,
    run_of.known_count,
    me.provenance,
    me.basis
FROM me
INNER JOIN run_of ON me.run_id = run_of.run_id AND me.stage = run_of.stage
ORDER BY me.run_id ASC, CASE me.stage WHEN 'unaccounted' THEN 3.5 ELSE me.stage_index END ASC
