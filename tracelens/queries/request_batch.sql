/*
Batch-mates of one request: who else was in the server while it was, in seconds since its own beginning (see clock), and how
much of its excess each was served in. The excess is the stage that is longest beyond the median of the run: its wait before
prefill (until it was scheduled), its prefill, or its decode; excess_ratio is the part of it in which the other was in prefill
or decode, prefill_ratio the part in which it was in prefill. Those served in most of it come first.
A client's clock does not show when a request was scheduled: there scheduled_s and prefill_ratio are NULL.
[params]
request = ""
run = ""
top = 200
*/
WITH usual AS (
    SELECT
        run_id,
        split_part(measure, ', ', 2) AS clock,
        any_value(p50_s) FILTER (WHERE starts_with(measure, 'wait,')) AS wait_s,
        any_value(p50_s) FILTER (WHERE starts_with(measure, 'prefill,')) AS prefill_s,
        any_value(p50_s) FILTER (WHERE starts_with(measure, 'decode,')) AS decode_s
    FROM _run_measure
    WHERE contains(measure, ', ')
    GROUP BY ALL
),

beside AS (
    SELECT
        other.*,
        list_max([
            {
                'beyond_s': coalesce(coalesce(other.my_scheduled_s, other.my_first_token_s) - usual.wait_s, -1e9),
                'stage': 'wait', 'from_s': 0.0, 'to_s': coalesce(other.my_scheduled_s, other.my_first_token_s)
            },
            {
                'beyond_s': coalesce(other.my_first_token_s - other.my_scheduled_s - usual.prefill_s, -1e9),
                'stage': 'prefill', 'from_s': other.my_scheduled_s, 'to_s': other.my_first_token_s
            },
            {
                'beyond_s': coalesce(other.my_length_s - other.my_first_token_s - usual.decode_s, -1e9),
                'stage': 'decode', 'from_s': other.my_first_token_s, 'to_s': other.my_length_s
            }
        ]) AS excess,
        epoch(other.from_ts - other.my_from_ts) AS after_s
    FROM _beside($request, $run) AS other
    INNER JOIN usual ON other.run_id = usual.run_id AND other.clock = usual.clock
),

mate AS (
    SELECT
        * EXCLUDE (scheduled_s, first_token_s),
        excess.stage AS excess_stage,
        excess.from_s AS excess_from_s,
        excess.to_s AS excess_to_s,
        after_s AS from_s,
        after_s + scheduled_s AS scheduled_s,
        after_s + first_token_s AS first_token_s,
        after_s + length_s AS to_s
    FROM beside
    WHERE after_s < my_length_s AND after_s + length_s > 0
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
    CASE
        WHEN scheduled_s IS NOT NULL
            THEN greatest(least(first_token_s, excess_to_s) - greatest(scheduled_s, excess_from_s), 0)
                / nullif(excess_to_s - excess_from_s, 0)
    END AS prefill_ratio,
    preemption_count,
    input_tokens,
    cached_input_tokens,
    output_tokens,
    clock,
    count(*) OVER () AS mate_count
FROM mate
ORDER BY excess_overlap_s DESC NULLS LAST, shared_s DESC, request_id ASC
LIMIT $top
