/*
How many requests kept an SLO, per run. A limit of 0 is no limit. TTFT and end-to-end time are the client's where it is known,
else the server's. A request that failed or was aborted is not good, whatever it measured; one whose measure nobody knows is not judged.
[params]
ttft_s = 0.0
tpot_s = 0.0
e2e_s = 0.0
run = ""
*/
WITH measured AS (
    SELECT
        run_id,
        coalesce(status, 'unknown') IN ('error', 'aborted', 'rejected')
        OR coalesce(end_status, 'unknown') IN ('error', 'aborted', 'rejected') AS is_failed,
        coalesce(client_ttft_s, ttft_s) AS ttft_s,
        tpot_s,
        coalesce(output_tokens, 2) < 2 AS is_one_token,
        coalesce(client_e2e_s, e2e_s) AS e2e_s,
        arrival_ts,
        -- A stream shows its first token at its end at the latest.
        _later(arrival_ts, coalesce(client_e2e_s, e2e_s)) AS end_ts
    FROM request
    WHERE ($run = '' OR run_id = $run)
),

judged AS (
    SELECT
        *,
        $ttft_s > 0 AND ttft_s > $ttft_s AS breaks_ttft,
        $tpot_s > 0 AND tpot_s > $tpot_s AS breaks_tpot,
        $e2e_s > 0 AND e2e_s > $e2e_s AS breaks_e2e,
        ($ttft_s > 0 AND ttft_s IS NULL)
        OR ($tpot_s > 0 AND tpot_s IS NULL AND NOT is_one_token)
        OR ($e2e_s > 0 AND e2e_s IS NULL) AS is_open
    FROM measured
),

told AS (
    SELECT
        *,
        is_failed OR coalesce(breaks_ttft, FALSE) OR coalesce(breaks_tpot, FALSE) OR coalesce(breaks_e2e, FALSE) AS is_bad
    FROM judged
)

SELECT
    run_id,
    count(*) AS request_count,
    count(*) FILTER (WHERE is_bad OR NOT is_open) AS judged_count,
    count(*) FILTER (WHERE NOT is_bad AND NOT is_open) AS good_count,
    count(*) FILTER (WHERE NOT is_bad AND NOT is_open) / nullif(count(*) FILTER (WHERE is_bad OR NOT is_open), 0) AS goodput_ratio,
    count(*) FILTER (WHERE NOT is_bad AND NOT is_open)
    / nullif(epoch(coalesce(max(end_ts), max(arrival_ts)) - min(arrival_ts)), 0) AS goodput_rps,
    count(*) FILTER (WHERE is_failed) AS failed_count,
    count(*) FILTER (WHERE breaks_ttft) AS ttft_violation_count,
    count(*) FILTER (WHERE breaks_tpot) AS tpot_violation_count,
    count(*) FILTER (WHERE breaks_e2e) AS e2e_violation_count
FROM told
GROUP BY run_id
ORDER BY run_id ASC
