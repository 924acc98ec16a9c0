/*
The stages of one request, each with its error, how it is known, and how it stands among the other requests of the run.
percentile_ratio is the share of the run's requests in which the stage is known and shorter. unaccounted stands before
queue: what it holds is mostly front end, tokenization and step wait.
[params]
request = ""
run = ""
*/
WITH mine AS MATERIALIZED (
    SELECT *
    FROM _request_called($request, $run)
),

staged AS (
    SELECT *
    FROM _stages_of('mine')
),

me AS (
    SELECT
        staged.*,
        sum(staged.duration_s) FILTER (WHERE staged.stage NOT IN ('client_wait', 'decode')) OVER (PARTITION BY staged.run_id) AS ttft_sum_s,
        mine.client_ttft_s IS NOT NULL OR mine.ttft_s IS NOT NULL AS has_ttft
    FROM staged
    INNER JOIN mine ON staged.run_id = mine.run_id
),

-- Stage by stage over the run, from the columns that request_stage is made of: its eleven rows a request take seconds.
shorter AS (
    SELECT
        t.run_id,
        unnest([
            {'stage': 'client_wait', 'shorter_count': count(*) FILTER (WHERE t.client_wait_s < mine.client_wait_s)},
            {'stage': 'network_in', 'shorter_count': count(*) FILTER (WHERE t.network_in_s < mine.network_in_s)},
            {'stage': 'tokenize', 'shorter_count': count(*) FILTER (WHERE t.tokenize_s < mine.tokenize_s)},
            {'stage': 'step_wait', 'shorter_count': count(*) FILTER (WHERE t.step_wait_s < mine.step_wait_s)},
            {'stage': 'unaccounted', 'shorter_count': count(*) FILTER (WHERE t.left_s < mine.left_s)},
            {'stage': 'queue', 'shorter_count': count(*) FILTER (WHERE t.queue_s < mine.queue_s)},
            {'stage': 'prefill', 'shorter_count': count(*) FILTER (WHERE t.prefill_s < mine.prefill_s)},
            {'stage': 'stream_out', 'shorter_count': count(*) FILTER (WHERE t.stream_out_s < mine.stream_out_s)},
            {'stage': 'decode', 'shorter_count': count(*) FILTER (WHERE t.decode_stage_s < mine.decode_stage_s)}
        ]) AS one
    FROM _request_timing AS t
    INNER JOIN mine ON t.run_id = mine.run_id
    GROUP BY t.run_id
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
    run_of.p50_s AS median_s,
    CASE WHEN run_of.p50_s >= 1e-6 THEN me.duration_s / run_of.p50_s END AS times_median,
    CASE WHEN me.duration_s IS NOT NULL THEN shorter.one.shorter_count / run_of.known_count END AS percentile_ratio,
    run_of.known_count,
    me.provenance,
    me.basis
FROM me
INNER JOIN _run_measure AS run_of ON me.run_id = run_of.run_id AND me.stage = run_of.measure
LEFT JOIN shorter ON me.run_id = shorter.run_id AND me.stage = shorter.one.stage
ORDER BY me.run_id ASC, _stage_place(me.stage, me.stage_index) ASC
