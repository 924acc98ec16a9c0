/*
Batch-mates of one request: who else was in the server while it was, in seconds since its own beginning (see clock), and how
much of its excess each was served in. The excess is the stage that is longest beyond the median of the run: its wait before
prefill (until it was scheduled), its prefill, or its decode; excess_ratio is the part of it in which the other was in prefill
or decode, prefill_ratio the part in which it was in prefill. Those served in most of it come first.
A client's clock does not show when a request was scheduled: there scheduled_s is NULL.
[params]
request = ""
run = ""
top = 200
*/
WITH placed AS (
    SELECT
        *,
        CASE WHEN arrival_basis <> 'client sent' AND e2e_s IS NOT NULL THEN 'server' ELSE 'client' END AS clock,
        CASE WHEN arrival_basis <> 'client sent' THEN arrival_ts END AS server_from_ts
    FROM request
    WHERE $run IN ('', run_id)
),

timed AS (
    SELECT
        placed.run_id,
        placed.request_id,
        placed.status,
        me.clock,
        placed.input_tokens,
        placed.cached_input_tokens,
        placed.output_tokens,
        placed.preemption_count,
        CASE me.clock WHEN 'server' THEN placed.server_from_ts ELSE placed.client_sent_ts END AS from_ts,
        CASE me.clock WHEN 'server' THEN placed.e2e_s ELSE placed.client_e2e_s END AS length_s,
        CASE me.clock WHEN 'server' THEN placed.ttft_s ELSE placed.client_ttft_s END AS first_token_s,
        CASE me.clock WHEN 'server' THEN placed.ttft_s - placed.prefill_s END AS scheduled_s
    FROM placed
    INNER JOIN placed AS me ON placed.run_id = me.run_id AND me.request_id = $request
),

usual AS (
    SELECT
        run_id,
        quantile_cont(coalesce(scheduled_s, first_token_s), 0.5) AS wait_s,
        quantile_cont(first_token_s - scheduled_s, 0.5) AS prefill_s,
        quantile_cont(length_s - first_token_s, 0.5) AS decode_s
    FROM timed
    GROUP BY run_id
),

me AS (
    SELECT
        timed.*,
        list_max([
            {
                'beyond_s': coalesce(coalesce(timed.scheduled_s, timed.first_token_s) - usual.wait_s, -1e9),
                'stage': 'wait', 'from_s': 0.0, 'to_s': coalesce(timed.scheduled_s, timed.first_token_s)
            },
            {
                'beyond_s': coalesce(timed.first_token_s - timed.scheduled_s - usual.prefill_s, -1e9),
                'stage': 'prefill', 'from_s': timed.scheduled_s, 'to_s': timed.first_token_s
            },
            {
                'beyond_s': coalesce(timed.length_s - timed.first_token_s - usual.decode_s, -1e9),
                'stage': 'decode', 'from_s': timed.first_token_s, 'to_s': timed.length_s
            }
        ]) AS excess
    FROM timed
    INNER JOIN usual ON timed.run_id = usual.run_id
    WHERE timed.request_id = $request
),

mate AS (
    SELECT
        me.run_id,
        other.request_id,
        other.status,
        other.input_tokens,
        other.cached_input_tokens,
        other.output_tokens,
        other.preemption_count,
        me.clock,
        me.length_s AS my_length_s,
        me.excess.stage AS excess_stage,
        me.excess.from_s AS excess_from_s,
        me.excess.to_s AS excess_to_s,
        epoch(other.from_ts - me.from_ts) AS from_s,
        epoch(other.from_ts - me.from_ts) + other.scheduled_s AS scheduled_s,
        epoch(other.from_ts - me.from_ts) + other.first_token_s AS first_token_s,
        epoch(other.from_ts - me.from_ts) + other.length_s AS to_s
    FROM timed AS other
    INNER JOIN me
        ON
            other.run_id = me.run_id AND other.request_id <> me.request_id
            AND epoch(other.from_ts - me.from_ts) < me.length_s
            AND epoch(other.from_ts - me.from_ts) + other.length_s > 0
)

SELECT
    run_id,
    request_id,
    status,
    from_s,
    scheduled_s,
    first_token_s,
    to_s,
    least(to_s, my_length_s) - greatest(from_s, 0) AS shared_s,
    excess_stage,
    excess_from_s,
    excess_to_s,
    greatest(least(to_s, excess_to_s) - greatest(coalesce(scheduled_s, first_token_s), excess_from_s), 0) AS excess_overlap_s,
    greatest(least(to_s, excess_to_s) - greatest(coalesce(scheduled_s, first_token_s), excess_from_s), 0)
    / nullif(excess_to_s - excess_from_s, 0) AS excess_ratio,
    greatest(least(first_token_s, excess_to_s) - greatest(scheduled_s, excess_from_s), 0)
    / nullif(excess_to_s - excess_from_s, 0) AS prefill_ratio,
    preemption_count,
    input_tokens,
    cached_input_tokens,
    output_tokens,
    clock,
    count(*) OVER () AS mate_count
FROM mate
ORDER BY excess_overlap_s DESC NULLS LAST, shared_s DESC, request_id ASC
LIMIT $top
