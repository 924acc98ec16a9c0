/*
title = "Short requests wait for the prefill of long ones"
belief = "Same number of tokens out, same latency; the slow requests are noise (or the network)."
cause = "long-prompt-starvation"
severity = "critical"
needs = ["request"]
missing = ["prompt lengths with TTFT and prefill per request: spans (--otlp-traces-endpoint), or a streaming client that notes input tokens and a stamp per chunk"]
message = "{measured_victims_count} of {measured_short_count} short requests met the prefill of one of {measured_long_count} long prompts ({measured_long_tokens} tokens, {measured_long_s} each): {measured_blocked_ratio} of the short ones' time to first token lies inside it, {measured_blocked_s} at p90{gap_text}."
verdict = "Short requests starve behind {measured_long_count} long prompts: {measured_blocked_ratio} of their time to first token is spent while a long one is prefilled; {first_change}, a faster GPU does not change the order."

[params]
min_times_ratio = 4.0
min_long_s = 0.5
min_blocked_ratio = 0.5
min_blocked_s = 0.5
min_stalled_ratio = 0.3
min_victims_count = 5

[[remedy]]
kind = "config"
text = "Set --long-prefill-token-threshold, so that a long prompt takes only a part of each step. A small step budget alone mends the gaps of running streams, not the TTFT of short requests."
moves = "TTFT p90 of short requests, gaps in streams"
next_limit = "TTFT of the long prompts"

[[remedy]]
kind = "architecture"
text = "A lane of its own for long prompts (another replica, or prefill apart from decode), or a limit on prompt length."
moves = "TTFT of short requests"
next_limit = "utilisation of the lanes"
---
## What people assume
Requests of equal size take equally long; a slow one is bad luck.

## What the data shows
A short request that arrives while a long prompt is prefilled waits for it: for the running step (in no metric of vLLM,
queue time stays 0), in the queue where steps are small, or in the same batch. Running streams stall at the same time.

## How it is detected
Long is a prompt of `min_times_ratio` times the median of computed tokens (input less cached) whose prefill takes
`min_long_s` or more and as many times the median prefill. The time from arrival to first token of every other request is
laid over the union of the long prefills (server's clock). Fires where that covers `min_blocked_ratio` of it, at least
`min_blocked_s` at p90, for `min_victims_count` requests. Or, on the client's clock alone: where short streams spend
`min_stalled_ratio` of their decoding in gaps of `min_blocked_s` or more, ten times their usual gap, between a long
request's send and its first content. Does not fire where the queue waits for seats or KV blocks in most samples.

## What to do
Cap long prefills or separate them; see which of TTFT and gaps each remedy moves.

## Known limits
Overlap is no proof: where long prompts run all the time, everything overlaps. Prompts of one length starve one another
without a long one. Aborted requests leave no span.
*/
WITH known AS NOT MATERIALIZED (
    SELECT
        run_id,
        request_no,
        input_tokens,
        ttft_s,
        prefill_s,
        client_ttft_s,
        client_sent_ts,
        client_first_chunk_ts,
        server_source_id,
        server_line_no,
        client_source_id,
        client_line_no,
        input_tokens - coalesce(cached_input_tokens, 0) AS computed_tokens,
        CASE WHEN arrival_basis IN ('span', 'request log') AND ttft_s > 0 THEN arrival_ts END AS arrived_ts
    FROM _request_timing
    WHERE input_tokens > 0
),

middle AS (
    SELECT
        run_id,
        median(computed_tokens) AS computed_tokens,
        median(prefill_s) AS prefill_s
    FROM known
    GROUP BY run_id
),

classed AS NOT MATERIALIZED (
    SELECT
        known.*,
        known.computed_tokens >= $min_times_ratio * greatest(middle.computed_tokens, 1)
        AND coalesce(known.prefill_s, known.client_ttft_s)
        >= greatest($min_long_s, $min_times_ratio * coalesce(middle.prefill_s, 0)) AS is_long
    FROM known
    INNER JOIN middle ON known.run_id = middle.run_id
),

spell AS (
    -- When a long prompt was prefilled: on the server's clock, and (sent to first content) on the client's.
    SELECT
        run_id,
        'server' AS clock,
        _later(arrived_ts, ttft_s - prefill_s) AS from_ts,
        _later(arrived_ts, ttft_s) AS to_ts
    FROM classed
    WHERE is_long AND arrived_ts IS NOT NULL AND prefill_s <= ttft_s
    UNION ALL
    SELECT
        run_id,
        'client' AS clock,
        client_sent_ts AS from_ts,
        client_first_chunk_ts AS to_ts
    FROM classed
    WHERE is_long AND client_first_chunk_ts > client_sent_ts
),

opened AS (
    SELECT
        *,
        coalesce(
            from_ts > max(to_ts) OVER (PARTITION BY run_id, clock ORDER BY from_ts, to_ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
            TRUE
        )
            AS is_new
    FROM spell
),

grouped AS (
    SELECT
        *,
        count(CASE WHEN is_new THEN 1 END) OVER (PARTITION BY run_id, clock ORDER BY from_ts, to_ts ROWS UNBOUNDED PRECEDING) AS spell_index
    FROM opened
),

busy AS (
    SELECT
        run_id,
        clock,
        spell_index,
        min(from_ts) AS from_ts,
        max(to_ts) AS to_ts
    FROM grouped
    GROUP BY run_id, clock, spell_index
),

short AS (
    SELECT
        run_id,
        request_no,
        coalesce(server_source_id, client_source_id) AS source_id,
        coalesce(server_line_no, client_line_no) AS line_no,
        client_source_id,
        client_line_no,
        client_sent_ts,
        ttft_s,
        arrived_ts,
        _later(arrived_ts, ttft_s) AS token_ts
    FROM classed
    WHERE NOT coalesce(is_long, FALSE)
),

met AS (
    SELECT
        short.run_id,
        short.request_no,
        sum(epoch(least(short.token_ts, busy.to_ts) - greatest(short.arrived_ts, busy.from_ts))) AS blocked_s
    FROM short
    INNER JOIN busy
        ON short.run_id = busy.run_id AND busy.clock = 'server' AND short.token_ts > busy.from_ts AND short.arrived_ts < busy.to_ts
    GROUP BY short.run_id, short.request_no
    HAVING sum(epoch(least(short.token_ts, busy.to_ts) - greatest(short.arrived_ts, busy.from_ts))) > 0
),

blocked AS (
    SELECT
        short.run_id,
        short.source_id,
        short.line_no,
        short.ttft_s,
        short.arrived_ts,
        coalesce(met.blocked_s, 0) AS blocked_s
    FROM short
    LEFT JOIN met ON short.run_id = met.run_id AND short.request_no = met.request_no
    WHERE short.arrived_ts IS NOT NULL
),

waited AS (
    SELECT
        run_id,
        count(*) AS short_count,
        count(*) FILTER (WHERE blocked_s >= $min_blocked_s) AS victim_count,
        sum(blocked_s) / sum(ttft_s) AS blocked_ratio,
        quantile_cont(blocked_s, 0.9) AS blocked_s,
        min(arrived_ts) FILTER (WHERE blocked_s >= $min_blocked_s) AS from_ts,
        max(arrived_ts) FILTER (WHERE blocked_s >= $min_blocked_s) AS to_ts,
        _lines(arg_max(_line_key(source_id, line_no), _ranked(blocked_s, source_id, line_no), 5) FILTER (WHERE source_id IS NOT NULL))
            AS evidence
    FROM blocked
    GROUP BY run_id
),

streamed AS (
    SELECT
        short.run_id,
        short.client_sent_ts,
        stream.source_id,
        stream.line_no,
        stream.stream_s,
        stream.longest_gap_s
    FROM short
    INNER JOIN _stream_shape AS stream ON short.client_source_id = stream.source_id AND short.client_line_no = stream.line_no
    WHERE short.client_sent_ts IS NOT NULL AND stream.chunk_count >= 3
),

-- Streams with a pause that is worth a look.
paused AS (
    SELECT
        run_id,
        source_id,
        line_no,
        client_sent_ts,
        list_median(gaps_s) AS usual_gap_s,
        unnest(chunk_offset_s[1:-2]) AS gap_from_s,
        unnest(gaps_s) AS gap_s
    FROM (
        SELECT
            streamed.run_id,
            streamed.source_id,
            streamed.line_no,
            streamed.client_sent_ts,
            stream.chunk_offset_s,
            list_transform(
                list_zip(stream.chunk_offset_s[2:], stream.chunk_offset_s[1:-2]), LAMBDA pair: pair[1] - pair[2] -- noqa: RF01
            ) AS gaps_s
        FROM streamed
        INNER JOIN client_stream AS stream ON streamed.source_id = stream.source_id AND streamed.line_no = stream.line_no
        WHERE streamed.longest_gap_s >= $min_blocked_s
    )
),

held AS (
    SELECT
        paused.run_id,
        paused.source_id,
        paused.line_no,
        sum(paused.gap_s) AS stalled_s,
        max(paused.gap_s) AS gap_s
    FROM paused
    WHERE
        paused.gap_s >= greatest($min_blocked_s, 10 * paused.usual_gap_s)
        AND EXISTS (
            SELECT 1
            FROM busy
            WHERE
                paused.run_id = busy.run_id
                AND busy.clock = 'client'
                AND busy.from_ts < _later(paused.client_sent_ts, paused.gap_from_s + paused.gap_s)
                AND busy.to_ts > _later(paused.client_sent_ts, paused.gap_from_s)
        )
    GROUP BY paused.run_id, paused.source_id, paused.line_no
),

stalled AS (
    SELECT
        streamed.run_id,
        streamed.source_id,
        streamed.line_no,
        streamed.stream_s,
        held.stalled_s,
        held.gap_s
    FROM streamed
    LEFT JOIN held ON streamed.source_id = held.source_id AND streamed.line_no = held.line_no
),

stopped AS (
    SELECT
        run_id,
        count(*) AS stream_count,
        count(stalled_s) AS victim_count,
        coalesce(sum(stalled_s), 0) / nullif(sum(stream_s), 0) AS stalled_ratio,
        max(gap_s) AS gap_s,
        arg_max({'source_id': source_id, 'line_no': line_no}, _ranked(stalled_s, source_id, line_no), 5) AS evidence
    FROM stalled
    GROUP BY run_id
),

long_prompt AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE is_long) AS long_count,
        median(input_tokens) FILTER (WHERE is_long) AS long_tokens,
        median(coalesce(prefill_s, client_ttft_s)) FILTER (WHERE is_long) AS long_s,
        count(*) AS request_count
    FROM classed
    GROUP BY run_id
),

named AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE waits_for IN ('seats', 'kv')) > 0.5 * count(*) FILTER (WHERE waiting_count > 0) AS is_full
    FROM binding_limit
    GROUP BY run_id
),

capped AS (
    SELECT
        run_id,
        amount AS cap_tokens
    FROM run_setting
    WHERE key = 'long_prefill_token_threshold' AND amount > 0
),

judged AS (
    SELECT
        long_prompt.*,
        waited.short_count,
        waited.victim_count,
        waited.blocked_ratio,
        waited.blocked_s,
        waited.from_ts,
        waited.to_ts,
        stopped.stream_count,
        stopped.victim_count AS stalled_count,
        stopped.stalled_ratio,
        stopped.gap_s,
        coalesce(waited.evidence, stopped.evidence, []) AS evidence,
        coalesce(
            waited.victim_count >= $min_victims_count
            AND waited.blocked_ratio >= $min_blocked_ratio
            AND waited.blocked_s >= $min_blocked_s, FALSE
        ) AS is_blocked,
        coalesce(stopped.victim_count >= $min_victims_count AND stopped.stalled_ratio >= $min_stalled_ratio, FALSE) AS is_stalled,
        coalesce(named.is_full, FALSE) AS is_full,
        capped.cap_tokens
    FROM long_prompt
    LEFT JOIN waited ON long_prompt.run_id = waited.run_id
    LEFT JOIN stopped ON long_prompt.run_id = stopped.run_id
    LEFT JOIN named ON long_prompt.run_id = named.run_id
    LEFT JOIN capped ON long_prompt.run_id = capped.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN (is_blocked OR is_stalled) AND NOT is_full THEN 'fired'
        -- With long prompts there, streams that went on say nothing of the requests that waited to begin.
        WHEN short_count IS NULL AND (stream_count IS NULL OR long_count > 0) THEN 'not_evaluated'
        WHEN request_count < 10 THEN 'not_evaluated'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN request_count >= 30 AND is_blocked THEN 'high' WHEN request_count >= 20 THEN 'medium' ELSE 'low' END AS confidence,
    greatest(coalesce(blocked_ratio, 0), coalesce(stalled_ratio, 0)) AS weight,
    from_ts,
    to_ts,
    evidence,
    CASE WHEN gap_s IS NOT NULL THEN format('; {} running streams paused meanwhile, up to {:.1f} s', stalled_count, gap_s) ELSE '' END
        AS gap_text,
    CASE
        WHEN cap_tokens IS NOT NULL
            THEN format('long prefills are already capped at {:.0f} tokens a step: give them a lane of their own', cap_tokens)
        ELSE 'cap long prefills (--long-prefill-token-threshold) or give them a lane of their own'
    END AS first_change,
    long_count AS measured_long_count,
    long_tokens AS measured_long_tokens,
    long_s AS measured_long_s,
    short_count AS measured_short_count,
    victim_count AS measured_victims_count,
    $min_victims_count AS threshold_victims_count,
    blocked_ratio AS measured_blocked_ratio,
    $min_blocked_ratio AS threshold_blocked_ratio,
    blocked_s AS measured_blocked_s,
    $min_blocked_s AS threshold_blocked_s,
    stalled_ratio AS measured_stalled_ratio,
    $min_stalled_ratio AS threshold_stalled_ratio
FROM judged
