/*
title = "Something on the way holds the stream back and lets it go in bursts"
belief = "The model's first token is slow; streaming is only cosmetics anyway."
cause = "network-ingress-dominated"
severity = "critical"
needs = ["client_stream"]
missing = ["the time of every chunk at the client (chunk_at, chunk_times)", "the same request once past the gateway and once straight to the server"]
message = "{measured_request_count} of {measured_stream_count} streams arrive in bursts: {measured_burst_ratio} of their chunks come at the same instant as the one before, about {measured_burst_chunk_count} at once, every {measured_burst_gap_s}."
verdict = "A hop between server and client collects about {measured_burst_chunk_count} chunks before it passes them on, every {measured_burst_gap_s}: switch its response buffering off (proxy_buffering, compression) before looking at the model."

[params]
same_instant_s = 0.001
min_chunk_count = 20
min_burst_ratio = 0.8
min_stream_ratio = 0.3
min_burst_gap_s = 0.5

[[remedy]]
kind = "config"
text = "Switch off response buffering and compression for text/event-stream on every hop (nginx: proxy_buffering off, or X-Accel-Buffering: no; gateways and CDNs: their streaming mode)."
moves = "client TTFT and inter-token gaps"
next_limit = "the server's own TTFT"
---
## What people assume
That nothing arrives because nothing is computed.

## What the data shows
An engine gives tokens step by step. Chunks that come many at one instant and then none for long were ready before: something collected them, usually until a buffer of fixed size was full.

## How it is detected
A stream of at least `min_chunk_count` chunks in which at least `min_burst_ratio` of the chunks follow the one before within `same_instant_s`, so five or more at once on average, while it waits `min_burst_gap_s` or more for a burst. At least `min_stream_ratio` of the long streams, or all of those that share a label (one path of several), must be like that. A single stream can be bunched by a stalled receiver.

## What to do
Find the hop: ask the server directly, then add hops.

## Known limits
A client whose own event loop stands still sees bursts too, in all its streams at the same moment. A server that answers in whole sentences is not told from a small buffer.
*/
WITH waited AS (
    SELECT
        s.run_id,
        s.source_id,
        s.line_no,
        c.label,
        c.client_sent_ts,
        s.chunk_count,
        s.gap_count,
        s.usual_gap_s,
        greatest(s.first_s, s.longest_gap_s) AS longest_wait_s
    FROM _stream_shape AS s
    LEFT JOIN client_request AS c ON s.source_id = c.source_id AND s.line_no = c.line_no
    WHERE s.chunk_count >= $min_chunk_count AND s.gap_count > 0
),

-- Only a stream with a long wait can be bunched, and one in which most chunks come at the instant of the one before.
burst AS (
    SELECT
        waited.source_id,
        waited.line_no,
        len(list_filter(
            list_transform(range(2, len(s.chunk_offset_s) + 1), LAMBDA i: s.chunk_offset_s[i] - s.chunk_offset_s[i - 1]),
            LAMBDA pause: pause > $same_instant_s
        )) AS apart_count
    FROM waited
    INNER JOIN client_stream AS s ON waited.source_id = s.source_id AND waited.line_no = s.line_no
    WHERE waited.longest_wait_s >= $min_burst_gap_s AND (waited.usual_gap_s <= $same_instant_s OR $min_burst_ratio < 0.5)
),

judged AS (
    SELECT
        waited.*,
        (waited.gap_count - burst.apart_count) / waited.gap_count AS burst_ratio,
        1 + burst.apart_count AS burst_count
    FROM waited
    LEFT JOIN burst ON waited.source_id = burst.source_id AND waited.line_no = burst.line_no
),

marked AS (
    SELECT
        *,
        coalesce(burst_ratio >= $min_burst_ratio, FALSE) AS is_bunched,
        avg(is_bunched::INTEGER) OVER (PARTITION BY run_id, label) AS label_ratio
    FROM judged
),

counted AS (
    SELECT
        run_id,
        count(*) AS stream_count,
        count(*) FILTER (WHERE is_bunched) AS bunched_count,
        count(*) FILTER (WHERE is_bunched AND label_ratio = 1) AS path_count,
        quantile_cont(burst_ratio, 0.5) FILTER (WHERE is_bunched) AS burst_ratio,
        quantile_cont(chunk_count / burst_count, 0.5) FILTER (WHERE is_bunched) AS burst_chunk_count,
        quantile_cont(longest_wait_s, 0.5) FILTER (WHERE is_bunched) AS burst_gap_s,
        min(client_sent_ts) FILTER (WHERE is_bunched) AS from_ts,
        max(client_sent_ts) FILTER (WHERE is_bunched) AS to_ts,
        arg_min({'source_id': source_id, 'line_no': line_no}, (NOT is_bunched, -longest_wait_s, source_id, line_no), 5) AS evidence
    FROM marked
    GROUP BY run_id
)

SELECT
    run.run_id,
    '' AS subject,
    CASE
        WHEN coalesce(stream_count, 0) = 0 THEN 'not_evaluated'
        WHEN bunched_count > 0 AND (bunched_count >= $min_stream_ratio * stream_count OR path_count >= 3) THEN 'fired'
        ELSE 'clear'
    END AS outcome,
    CASE
        WHEN bunched_count >= 10 THEN 'high'
        WHEN bunched_count >= 2 AND (path_count = 0 OR bunched_count < stream_count) THEN 'medium'
        ELSE 'low'
    END AS confidence,
    coalesce(burst_ratio, 0.0) AS weight,
    from_ts,
    to_ts,
    evidence,
    bunched_count AS measured_request_count,
    stream_count AS measured_stream_count,
    burst_ratio AS measured_burst_ratio,
    round(burst_chunk_count) AS measured_burst_chunk_count,
    burst_gap_s AS measured_burst_gap_s,
    $min_burst_ratio AS threshold_burst_ratio
FROM (SELECT DISTINCT run_id FROM client_stream) AS run
LEFT JOIN counted ON run.run_id = counted.run_id
