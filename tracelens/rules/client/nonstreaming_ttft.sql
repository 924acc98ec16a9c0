/*
title = "The client did not stream: its TTFT is the whole answer"
belief = "First token takes seconds: the model's prefill is too slow."
cause = "client-nonstreaming-ttft"
severity = "critical"
needs = ["client_request"]
missing = ["a client that streams (stream: true) and notes when the first chunk with content came", "TTFT or time to first byte per request, beside the end-to-end time"]
message = "{measured_request_count} of {measured_claim_count} requests with a TTFT were not streamed: what they call TTFT ({measured_reported_ttft_s} at the median) is {measured_whole_ratio} of their end-to-end time.{measured_server}"
verdict = "The TTFT of {measured_reported_ttft_s} is the time of the whole answer, because the client did not stream; measure again with stream: true before anything on the server is changed."

[params]
max_rest_ratio = 0.02
min_request_ratio = 0.05

[[remedy]]
kind = "config"
text = "Send stream: true and stop the TTFT watch at the first chunk with content. Then look at TTFT and TPOT apart."
moves = "measured TTFT"
next_limit = "what the real TTFT consists of: queue or prefill"

[[remedy]]
kind = "config"
text = "Where requests must not be streamed, leave them out of TTFT statistics and report their end-to-end time."
moves = "measured TTFT"
---
## What people assume
That a number called TTFT is the time to the first token.

## What the data shows
Without streaming the first byte leaves the server when the last token is computed: first byte and end are the same moment, and the number grows with the length of the answer, not of the prompt.

## How it is detected
Requests that were not streamed, or of which the client does not say it, count where the reported TTFT (or first byte) leaves no more than `max_rest_ratio` of the end-to-end time: 2 % are room for the transfer of the body. The rule fires where they are at least `min_request_ratio` of all requests with a TTFT: 5 % are enough to own the p95.

## What to do
Stream, and time the first chunk with content.

## Known limits
A stream that a proxy holds back until its end looks the same in first byte and end; it counts as network, because the client did ask for a stream.
*/
WITH claimed AS (
    SELECT
        c.run_id,
        c.source_id,
        c.line_no,
        c.client_sent_ts,
        coalesce(c.client_reported_ttft_s, c.client_first_byte_s) AS reported_s,
        c.client_e2e_s,
        coalesce(c.streamed, FALSE) = FALSE
        AND (c.streamed = FALSE OR c.client_ttft_kind = 'whole_response')
        AND coalesce(c.output_tokens, 2) > 1
        AND (
            coalesce(c.client_reported_ttft_s, c.client_first_byte_s) >= (1 - $max_rest_ratio) * c.client_e2e_s
            OR (c.client_e2e_s IS NULL AND c.client_ttft_kind = 'whole_response')
        ) AS is_whole
    FROM client_request AS c
    WHERE
        coalesce(c.client_reported_ttft_s, c.client_first_byte_s, c.client_ttft_s) IS NOT NULL
        AND coalesce(c.status::VARCHAR, 'ok') NOT IN ('error', 'rejected')
),

counted AS (
    SELECT
        run_id,
        count(*) AS claim_count,
        count(*) FILTER (WHERE is_whole) AS whole_count,
        quantile_cont(reported_s, 0.5) FILTER (WHERE is_whole) AS reported_s,
        quantile_cont(reported_s / nullif(client_e2e_s, 0), 0.5) FILTER (WHERE is_whole) AS whole_ratio,
        min(client_sent_ts) FILTER (WHERE is_whole) AS from_ts,
        max(client_sent_ts) FILTER (WHERE is_whole) AS to_ts,
        arg_max(
            {'source_id': source_id, 'line_no': line_no},
            (coalesce(is_whole, FALSE), coalesce(reported_s, '-infinity'), source_id, line_no),
            5
        ) AS evidence
    FROM claimed
    GROUP BY run_id
),

served AS (
    SELECT
        c.run_id,
        quantile_cont(r.ttft_s, 0.5) AS server_ttft_s
    FROM claimed AS c
    INNER JOIN request AS r
        ON c.run_id = r.run_id AND c.source_id = r.client_source_id AND c.line_no = r.client_line_no
    WHERE c.is_whole
    GROUP BY c.run_id
)

SELECT
    run.run_id,
    '' AS subject,
    CASE
        WHEN claim_count IS NULL THEN 'not_evaluated'
        WHEN whole_count >= $min_request_ratio * claim_count AND whole_count > 0 THEN 'fired'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN claim_count >= 30 OR server_ttft_s IS NOT NULL THEN 'high' ELSE 'medium' END AS confidence,
    CASE
        WHEN server_ttft_s < reported_s THEN 1.0 - server_ttft_s / reported_s
        WHEN claim_count IS NULL THEN 0.0
        ELSE greatest(0.5, whole_count / claim_count)
    END AS weight,
    from_ts,
    to_ts,
    evidence,
    whole_count AS measured_request_count,
    claim_count AS measured_claim_count,
    reported_s AS measured_reported_ttft_s,
    whole_ratio AS measured_whole_ratio,
    server_ttft_s AS measured_server_ttft_s,
    coalesce(format(' The server had its first token after {:.2f} s.', server_ttft_s), '') AS measured_server,
    1 - $max_rest_ratio AS threshold_whole_ratio
FROM (SELECT DISTINCT run_id FROM client_request) AS run
LEFT JOIN counted ON run.run_id = counted.run_id
LEFT JOIN served ON run.run_id = served.run_id
