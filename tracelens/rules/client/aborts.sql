/*
title = "Clients go away before their answer is complete"
belief = "vLLM aborts requests without a reason."
cause = "client-aborts"
severity = "warning"
needs = ["request"]
missing = ["lines of single requests in the server log (--enable-log-requests), or a client file that says how each request ended"]
message = "{measured_aborted_count} of {measured_request_count} requests ({measured_aborted_ratio}) were aborted, half of them after {measured_age_s} or less{pattern}."
verdict = "{measured_aborted_ratio} of the requests were given up by their clients (or a proxy), typically after {measured_age_s}{pattern}: look for that timeout there; the server aborts nothing by itself, and latency percentiles leave these requests out."

[params]
min_aborted_ratio = 0.05
min_aborted_count = 3
min_timeout_s = 5.0
most_ratio = 0.5

[[remedy]]
kind = "config"
text = "Find the timeout of that length in the client, the gateway or the proxy (read timeout, idle timeout) and raise it above the longest wanted answer; stream, so that an idle timeout sees bytes."
moves = "aborted requests"
next_limit = "end-to-end time"
---
## What people assume
The server drops requests.
## What the data shows
"Aborted request" is written when the connection of the client closes.  Equal ages at the abort are a timeout; spread ages are
users who leave.  Aborted requests have no span and are in no latency histogram: percentiles are those of the survivors.
## How it is detected
At least `min_aborted_count` requests and `min_aborted_ratio` of all ended as aborted, by the client's own word or by the log.
Ages are equal where all lie within the two seconds that the stamps of the log can differ by, or within a tenth of their median,
and the median is at least `min_timeout_s`.  Aborts after the engine died or was stopped do not count.  Above `most_ratio` the
finding is critical.
## What to do
Look for a timeout of that length between user and server.
## Known limits
The log does not say who closed the connection.  Without request lines aborts are invisible on the server.
*/
WITH over AS (
    SELECT
        run_id,
        min(event_ts) AS over_ts
    FROM log_event
    WHERE kind IN ('dead', 'stop')
    GROUP BY run_id
),

gone AS (
    SELECT
        run_id,
        request_id,
        min(event_ts) AS gone_ts,
        arg_min(source_id, line_no) AS source_id,
        min(line_no) AS line_no
    FROM request_event
    WHERE event = 'aborted'
    GROUP BY run_id, request_id
),

-- Only of those that were aborted is looked up when and where.
lost AS (
    SELECT
        request.run_id,
        coalesce(request.client_e2e_s, epoch(gone.gone_ts - request.arrival_ts)) AS age_s,
        coalesce(gone.gone_ts, request.arrival_ts) AS seen_ts,
        coalesce(gone.source_id, request.client_source_id) AS source_id,
        coalesce(gone.line_no, request.client_line_no) AS line_no
    FROM request
    LEFT JOIN gone ON request.run_id = gone.run_id AND request.request_id = gone.request_id
    LEFT JOIN over ON request.run_id = over.run_id
    WHERE request.end_status = 'aborted' AND coalesce(gone.gone_ts < over.over_ts, TRUE)
),

taken AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE end_status NOT IN ('rejected')) AS request_count
    FROM request
    GROUP BY run_id
),

counted AS (
    SELECT
        taken.run_id,
        any_value(taken.request_count) AS request_count,
        count(lost.run_id) AS aborted_count,
        median(lost.age_s) AS age_s,
        max(lost.age_s) - min(lost.age_s) AS age_spread_s,
        min(lost.seen_ts) AS from_ts,
        max(lost.seen_ts) AS to_ts,
        arg_min({'source_id': lost.source_id, 'line_no': lost.line_no}, _ranked(lost.line_no, lost.source_id, lost.line_no), 5)
            AS evidence
    FROM taken
    LEFT JOIN lost ON taken.run_id = lost.run_id
    GROUP BY taken.run_id
),

-- Whether any source could have told that a request was aborted.
telling AS (
    SELECT run_id FROM request_event WHERE event IN ('aborted', 'finished', 'failed')
    UNION
    SELECT run_id FROM client_request WHERE status <> 'unknown'
),

measured AS (
    SELECT
        counted.*,
        aborted_count / nullif(request_count, 0) AS aborted_ratio,
        coalesce(age_s >= $min_timeout_s AND age_spread_s <= greatest(2.0, 0.1 * age_s), FALSE) AS is_timeout,
        telling.run_id IS NOT NULL AS can_tell
    FROM counted
    LEFT JOIN telling ON counted.run_id = telling.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN aborted_count >= $min_aborted_count AND aborted_ratio >= $min_aborted_ratio THEN 'fired'
        WHEN can_tell THEN 'clear'
        ELSE 'not_evaluated'
    END AS outcome,
    CASE WHEN request_count >= 30 THEN 'high' WHEN is_timeout THEN 'medium' ELSE 'low' END AS confidence,
    least(coalesce(aborted_ratio, 0), 1.0) AS weight,
    from_ts,
    to_ts,
    coalesce(evidence, []) AS evidence,
    CASE WHEN aborted_ratio >= $most_ratio THEN 'critical' ELSE 'warning' END AS severity,
    CASE WHEN is_timeout THEN ', all at the same age: a timeout' ELSE '' END AS pattern,
    aborted_count AS measured_aborted_count,
    request_count AS measured_request_count,
    aborted_ratio AS measured_aborted_ratio,
    age_s AS measured_age_s,
    $min_aborted_ratio AS threshold_aborted_ratio
FROM measured
