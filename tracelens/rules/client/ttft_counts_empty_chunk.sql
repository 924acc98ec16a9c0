/*
title = "The client's TTFT stops at a chunk without text"
belief = "TTFT is fine, but the first inter-token gap is abnormally long."
cause = "client-ttft-counts-empty-chunk"
severity = "warning"
needs = ["client_request"]
missing = ["the kind of each chunk (role, content, empty) beside its time", "or the server's TTFT of the same requests: --otlp-traces-endpoint and an X-Request-Id from the client"]
message = "In {measured_request_count} of {measured_compared_count} requests the first chunk has no text: it came {measured_gap_s} before the first content, {measured_gap_ratio} of the real TTFT of {measured_ttft_s}."
verdict = "The client stops its TTFT watch at an empty chunk: the first text comes {measured_gap_s} later, so the real TTFT is {measured_ttft_s}; stop at the first chunk with content."

[params]
min_gap_ratio = 0.2
min_gap_s = 0.05

[[remedy]]
kind = "config"
text = "Stop the TTFT watch at the first chunk whose delta has content, reasoning or a tool call; skip the one that only has a role."
moves = "measured TTFT and first inter-token gap"
next_limit = "the prefill that the gap was hiding"
---
## What people assume
That the first server-sent event is the first token, and that a long gap after it is slow decoding.

## What the data shows
Chat endpoints first send a chunk with a role and no text. It can leave long before the first token is there; the rest of the prefill then looks like a slow second token.

## How it is detected
Per request one of three: chunks whose kinds are known, where the first ones are empty and the tool reports no TTFT of its own or one near the empty chunk; or a tool that is known to stop at the role chunk, against the server's own TTFT. The gap must be `min_gap_s` and `min_gap_ratio` of the real TTFT at the median: where role chunk and first token leave together, which is usual, the mistake costs nothing and the rule is clear.

## What to do
Correct the client; nothing on the server.

## Known limits
Where a client neither says what its chunks are nor can be joined with the server, this cannot be seen.
*/
WITH streamed AS MATERIALIZED (
    -- Numbers of the lists, so that no list goes through a join.
    SELECT
        run_id,
        source_id,
        line_no,
        empty_count > keepalive_count AS has_empty,
        chunk_offset_s[empty_count + 1] AS content_s,
        chunk_offset_s[keepalive_count + 1] AS event_s
    FROM (
        SELECT
            *,
            length(regexp_extract(chunk_kind, '^[^ct?]*')) AS empty_count,
            length(chunk_kind) - length(ltrim(chunk_kind, 'k')) AS keepalive_count
        FROM client_stream
        WHERE regexp_matches(chunk_kind, '[ct]') AND NOT contains(chunk_kind, '?')
    )
),

compared AS (
    -- by_chunks: the gap from the chunk that the tool counts (or would count) to the first content.
    SELECT
        c.run_id,
        c.source_id,
        c.line_no,
        c.client_sent_ts,
        coalesce(s.content_s, r.ttft_s) AS ttft_s,
        CASE
            WHEN s.has_empty AND s.content_s IS NOT NULL
                THEN s.content_s - least(s.content_s, coalesce(c.client_reported_ttft_s, s.event_s))
            WHEN s.run_id IS NOT NULL THEN 0.0
            WHEN coalesce(c.client_ttft_kind, '?') <> 'content' AND r.ttft_s >= c.client_reported_ttft_s
                THEN r.ttft_s - c.client_reported_ttft_s
            WHEN coalesce(c.client_ttft_kind, '?') <> 'content' AND r.ttft_s < c.client_reported_ttft_s THEN 0.0
        END AS gap_s
    FROM client_request AS c
    LEFT JOIN streamed AS s
        ON c.source_id = s.source_id AND c.line_no = s.line_no
    LEFT JOIN request AS r
        ON c.run_id = r.run_id AND c.source_id = r.client_source_id AND c.line_no = r.client_line_no
    WHERE
        coalesce(c.streamed, TRUE)
        AND (s.run_id IS NOT NULL OR c.client_reported_ttft_s IS NOT NULL AND coalesce(c.client_ttft_kind, '?') <> 'content')
),

counted AS (
    SELECT
        run_id,
        count(gap_s) AS compared_count,
        count(*) FILTER (WHERE gap_s >= $min_gap_s AND gap_s >= $min_gap_ratio * ttft_s) AS early_count,
        quantile_cont(gap_s, 0.5) AS gap_s,
        quantile_cont(gap_s / nullif(ttft_s, 0), 0.5) AS gap_ratio,
        quantile_cont(ttft_s, 0.5) FILTER (WHERE gap_s IS NOT NULL) AS ttft_s,
        min(client_sent_ts) AS from_ts,
        max(client_sent_ts) AS to_ts,
        arg_max({'source_id': source_id, 'line_no': line_no}, _ranked(gap_s, source_id, line_no), 5) AS evidence
    FROM compared
    GROUP BY run_id
),

-- Those of which nothing is compared count for the time that is looked at.
sent AS (
    SELECT
        run_id,
        0 AS none_count,
        min(client_sent_ts) AS from_ts,
        max(client_sent_ts) AS to_ts
    FROM client_request
    WHERE coalesce(streamed, TRUE) AND client_reported_ttft_s IS NOT NULL
    GROUP BY run_id
)

SELECT
    run.run_id,
    '' AS subject,
    CASE
        WHEN coalesce(compared_count, 0) = 0 THEN 'not_evaluated'
        WHEN gap_s >= $min_gap_s AND gap_ratio >= $min_gap_ratio THEN 'fired'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN compared_count >= 30 THEN 'high' WHEN compared_count >= 5 THEN 'medium' ELSE 'low' END AS confidence,
    CASE WHEN gap_ratio IS NULL THEN 0.0 ELSE least(gap_ratio, 1.0) END AS weight,
    least(counted.from_ts, sent.from_ts) AS from_ts,
    greatest(counted.to_ts, sent.to_ts) AS to_ts,
    evidence,
    coalesce(counted.early_count, sent.none_count) AS measured_request_count,
    coalesce(counted.compared_count, sent.none_count) AS measured_compared_count,
    gap_s AS measured_gap_s,
    gap_ratio AS measured_gap_ratio,
    ttft_s AS measured_ttft_s,
    $min_gap_s AS threshold_gap_s,
    $min_gap_ratio AS threshold_gap_ratio
FROM (SELECT DISTINCT run_id FROM client_request) AS run
LEFT JOIN counted ON run.run_id = counted.run_id
LEFT JOIN sent ON run.run_id = sent.run_id
