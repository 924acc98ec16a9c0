-- Nothing to do without rows of client_request.
--
-- Client files of which no row has an id that the server knows: rows are matched by lengths and times, or not at all.
--
-- Requests with the same token counts are candidates of each other.  Each pair of candidates allows an interval of the
-- difference of the two clocks (sent before arrived, first content after first token, end after end); the difference that
-- most rows allow is the true one, if nearly all rows allow it and no other difference comes near.  A row is then joined
-- where one request alone fits it within the error, and it alone fits that request.

CREATE OR REPLACE TEMP TABLE unnamed_client AS
SELECT
    client.source_id,
    client.line_no,
    source.clock = 'relative' AS is_relative,
    CASE WHEN source.clock = 'relative' THEN client.client_sent_s ELSE epoch(client.client_sent_ts) END AS sent_s,
    client.client_ttft_s AS ttft_s,
    client.client_e2e_s AS e2e_s,
    client.status,
    client.input_tokens,
    -- Only what the server counted is the server's count.
    CASE WHEN coalesce(client.output_tokens_basis, 'usage') = 'usage' THEN client.output_tokens END AS output_tokens,
    client.max_tokens
FROM client_request AS client
INNER JOIN source ON client.source_id = source.source_id
WHERE client.run_id = $run
    AND source.side = 'client'
    AND NOT coalesce(client.is_secondary, FALSE)
    AND client.source_id NOT IN (SELECT client_link.source_id FROM client_link WHERE client_link.run_id = $run)
    AND CASE WHEN source.clock = 'relative' THEN client.client_sent_s ELSE epoch(client.client_sent_ts) END IS NOT NULL;

CREATE OR REPLACE TEMP TABLE unclaimed_request AS
WITH logged AS (
    SELECT
        request_id,
        min(event_ts) FILTER (WHERE event = 'received') AS received_ts,
        max(event_ts) FILTER (WHERE event = 'finished') AS finished_ts,
        coalesce(max(error_s), 1.0) AS error_s,
        max(input_tokens) AS input_tokens,
        max(output_tokens) AS output_tokens,
        max(max_tokens) AS max_tokens
    FROM request_event
    WHERE run_id = $run AND (SELECT count(*) > 0 FROM unnamed_client)
    GROUP BY request_id
),

measured AS (
    SELECT *
    FROM server_request
    WHERE run_id = $run AND measured_by IN ('span', 'log') AND request_id IS NOT NULL
        AND (SELECT count(*) > 0 FROM unnamed_client)
    QUALIFY row_number() OVER (PARTITION BY request_id ORDER BY measured_by DESC, source_id ASC, line_no ASC) = 1
)

SELECT
    coalesce(measured.request_id, logged.request_id) AS request_id,
    epoch(coalesce(measured.arrival_ts, logged.received_ts)) AS arrival_s,
    CASE WHEN measured.arrival_ts IS NULL THEN logged.error_s ELSE 0.0 END AS arrival_error_s,
    epoch(measured.arrival_ts) + measured.ttft_s AS first_token_s,
    coalesce(epoch(measured.arrival_ts) + measured.e2e_s, epoch(logged.finished_ts)) AS end_s,
    coalesce(measured.input_tokens, logged.input_tokens) AS input_tokens,
    coalesce(measured.output_tokens, logged.output_tokens) AS output_tokens,
    coalesce(measured.max_tokens, logged.max_tokens) AS max_tokens
FROM measured
FULL OUTER JOIN logged ON measured.request_id = logged.request_id
WHERE coalesce(measured.arrival_ts, logged.received_ts) IS NOT NULL
    AND coalesce(measured.request_id, logged.request_id) NOT IN (
        SELECT client_link.request_id
        FROM client_link
        WHERE client_link.run_id = $run
    );

-- Which counts both sides have for nearly all requests.
CREATE OR REPLACE TEMP TABLE comparable AS
WITH server AS (
    SELECT
        count(*) AS request_count,
        count(input_tokens) / count(*) >= 0.9 AS has_input,
        count(output_tokens) / count(*) >= 0.9 AS has_output,
        count(max_tokens) / count(*) >= 0.9 AS has_max
    FROM unclaimed_request
),

client AS (
    -- Requests that failed have no counts, and are not looked for.
    SELECT
        source_id,
        count(*) AS row_count,
        max(sent_s) - min(sent_s) AS span_s,
        count(input_tokens) FILTER (WHERE status = 'ok') >= 0.9 * count(*) FILTER (WHERE status = 'ok') AS has_input,
        count(output_tokens) FILTER (WHERE status = 'ok') >= 0.9 * count(*) FILTER (WHERE status = 'ok') AS has_output,
        count(max_tokens) FILTER (WHERE status = 'ok') >= 0.9 * count(*) FILTER (WHERE status = 'ok') AS has_max
    FROM unnamed_client
    GROUP BY source_id
)

SELECT
    client.source_id,
    client.row_count,
    server.request_count,
    client.has_input AND server.has_input AS by_input,
    client.has_output AND server.has_output AS by_output,
    client.has_max AND server.has_max AS by_max,
    -- Stamps that are a little off, and 100 ppm of drift to either side of the middle.
    0.005 + 5e-5 * client.span_s AS slack_s
FROM client
CROSS JOIN server
WHERE server.request_count > 0;

CREATE OR REPLACE TEMP TABLE client_likeness AS
SELECT
    client.*,
    comparable.slack_s,
    concat_ws(
        '/',
        CASE WHEN comparable.by_input THEN client.input_tokens END,
        CASE WHEN comparable.by_output THEN client.output_tokens END,
        CASE WHEN comparable.by_max THEN client.max_tokens END
    ) AS likeness,
    count(*) OVER (PARTITION BY client.source_id, likeness) AS alike_count
FROM unnamed_client AS client
INNER JOIN comparable ON client.source_id = comparable.source_id
WHERE client.status = 'ok'
    AND (comparable.by_input OR comparable.by_output OR comparable.by_max)
    AND (client.input_tokens IS NOT NULL OR NOT comparable.by_input)
    AND (client.output_tokens IS NOT NULL OR NOT comparable.by_output)
    AND (client.max_tokens IS NOT NULL OR NOT comparable.by_max);

CREATE OR REPLACE TEMP TABLE request_likeness AS
SELECT
    comparable.source_id,
    server.request_id,
    server.arrival_s,
    server.arrival_error_s,
    server.first_token_s,
    server.end_s,
    concat_ws(
        '/',
        CASE WHEN comparable.by_input THEN server.input_tokens END,
        CASE WHEN comparable.by_output THEN server.output_tokens END,
        CASE WHEN comparable.by_max THEN server.max_tokens END
    ) AS likeness,
    count(*) OVER (PARTITION BY comparable.source_id, likeness) AS alike_count
FROM unclaimed_request AS server
CROSS JOIN comparable
WHERE (comparable.by_input OR comparable.by_output OR comparable.by_max)
    AND (server.input_tokens IS NOT NULL OR NOT comparable.by_input)
    AND (server.output_tokens IS NOT NULL OR NOT comparable.by_output)
    AND (server.max_tokens IS NOT NULL OR NOT comparable.by_max);

-- The vote, over requests that few others are like.
CREATE OR REPLACE TEMP TABLE offset_vote AS
WITH client_group AS (
    SELECT DISTINCT
        source_id,
        likeness,
        alike_count
    FROM client_likeness
),

request_group AS (
    SELECT DISTINCT
        source_id,
        likeness,
        alike_count
    FROM request_likeness
),

few_alike AS (
    SELECT
        client_group.source_id,
        client_group.likeness
    FROM client_group
    INNER JOIN request_group
        ON client_group.source_id = request_group.source_id AND client_group.likeness = request_group.likeness
    WHERE client_group.alike_count * request_group.alike_count <= 64
),

voting_client AS (
    SELECT client_likeness.*
    FROM client_likeness
    SEMI JOIN few_alike ON client_likeness.source_id = few_alike.source_id AND client_likeness.likeness = few_alike.likeness
),

voting_request AS (
    SELECT request_likeness.*
    FROM request_likeness
    SEMI JOIN few_alike ON request_likeness.source_id = few_alike.source_id AND request_likeness.likeness = few_alike.likeness
),

allowed AS (
    SELECT
        client.source_id,
        client.line_no,
        greatest(
            server.first_token_s - client.sent_s - client.ttft_s, server.end_s - client.sent_s - client.e2e_s,
            server.arrival_s - client.sent_s - client.ttft_s, server.arrival_s - client.sent_s - client.e2e_s
        ) - client.slack_s AS low_s,
        server.arrival_s + server.arrival_error_s - client.sent_s + client.slack_s AS high_s
    FROM voting_client AS client
    INNER JOIN voting_request AS server ON client.source_id = server.source_id AND client.likeness = server.likeness
    WHERE client.is_relative OR abs(server.arrival_s - client.sent_s) < 15 * 3600
),

-- A row votes once, however many candidates of it allow the same difference.
island AS (
    SELECT
        *,
        low_s > coalesce(max(high_s) OVER (
            PARTITION BY source_id, line_no ORDER BY low_s, high_s ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), '-infinity'::DOUBLE) AS begins
    FROM allowed
    WHERE low_s <= high_s
),

ballot AS (
    SELECT
        source_id,
        line_no,
        min(low_s) AS low_s,
        max(high_s) AS high_s
    FROM (
        SELECT
            *,
            count(*) FILTER (WHERE begins) OVER (PARTITION BY source_id, line_no ORDER BY low_s, high_s) AS island_no
        FROM island
    )
    GROUP BY source_id, line_no, island_no
),

edge AS (
    SELECT
        source_id,
        unnest([{'at_s': low_s, 'step': 1}, {'at_s': high_s, 'step': -1}]) AS turn
    FROM ballot
),

swept AS (
    SELECT
        source_id,
        turn.at_s AS low_s,
        lead(turn.at_s) OVER sweep AS high_s,
        sum(turn.step) OVER sweep AS vote_count
    FROM edge
    WINDOW sweep AS (PARTITION BY source_id ORDER BY turn.at_s ASC, turn.step DESC ROWS UNBOUNDED PRECEDING)
),

winner AS (
    SELECT
        source_id,
        max(vote_count)::BIGINT AS vote_count,
        arg_max({'low_s': low_s, 'high_s': high_s}, {'vote_count': vote_count, 'width_s': high_s - low_s}) AS between_s
    FROM swept
    WHERE high_s IS NOT NULL
    GROUP BY source_id
),

rival AS (
    SELECT
        swept.source_id,
        max(swept.vote_count)::BIGINT AS vote_count,
        arg_max((swept.low_s + swept.high_s) / 2, swept.vote_count) AS offset_s
    FROM swept
    INNER JOIN winner
        ON
            swept.source_id = winner.source_id
            AND (swept.high_s < winner.between_s.low_s - 1 OR swept.low_s > winner.between_s.high_s + 1)
    GROUP BY swept.source_id
),

voters AS (
    SELECT
        source_id,
        count(DISTINCT line_no) AS voter_count
    FROM ballot
    GROUP BY source_id
)

SELECT
    voters.source_id,
    voters.voter_count,
    winner.vote_count,
    winner.between_s.low_s AS low_s,
    winner.between_s.high_s AS high_s,
    coalesce(rival.vote_count, 0) AS rival_count,
    rival.offset_s AS rival_offset_s,
    winner.vote_count >= 0.9 * voters.voter_count
    AND winner.vote_count - coalesce(rival.vote_count, 0) >= greatest(5, 0.1 * voters.voter_count) AS is_sure
FROM voters
INNER JOIN winner ON voters.source_id = winner.source_id
LEFT JOIN rival ON voters.source_id = rival.source_id;

-- Candidates at that difference.  Where many alike requests came within ten seconds, none of them is the only one.
CREATE OR REPLACE TEMP TABLE matched AS
WITH client AS (
    SELECT
        likeness.*,
        vote.low_s AS offset_low_s,
        vote.high_s AS offset_high_s,
        unnest(range(
            floor((likeness.sent_s + vote.low_s - likeness.slack_s - 1) / 10)::BIGINT,
            floor((
                likeness.sent_s + vote.high_s + likeness.slack_s + least(coalesce(likeness.ttft_s, likeness.e2e_s), 600)
            ) / 10)::BIGINT + 1
        )) AS bucket
    FROM client_likeness AS likeness
    INNER JOIN offset_vote AS vote ON likeness.source_id = vote.source_id AND vote.is_sure
    WHERE coalesce(likeness.ttft_s, likeness.e2e_s) >= 0
),

server AS (
    SELECT
        *,
        floor(arrival_s / 10)::BIGINT AS bucket,
        count(*) OVER (PARTITION BY source_id, likeness, floor(arrival_s / 10)) AS near_count
    FROM request_likeness
    WHERE source_id IN (SELECT offset_vote.source_id FROM offset_vote WHERE offset_vote.is_sure)
),

crowded AS (
    SELECT DISTINCT
        source_id,
        likeness,
        bucket
    FROM server
    WHERE near_count > 64
),

crowded_row AS (
    SELECT DISTINCT
        client.source_id,
        client.line_no
    FROM client
    SEMI JOIN crowded
        ON
            client.source_id = crowded.source_id
            AND client.likeness = crowded.likeness
            AND client.bucket = crowded.bucket
),

sparse AS (
    SELECT *
    FROM server
    WHERE near_count <= 64
),

fitting AS (
    SELECT
        client.source_id,
        client.line_no,
        sparse.request_id
    FROM client
    INNER JOIN sparse
        ON client.source_id = sparse.source_id AND client.likeness = sparse.likeness AND client.bucket = sparse.bucket
    WHERE greatest(
            sparse.first_token_s - client.sent_s - client.ttft_s, sparse.end_s - client.sent_s - client.e2e_s,
            sparse.arrival_s - client.sent_s - client.ttft_s, sparse.arrival_s - client.sent_s - client.e2e_s
        ) - client.slack_s <= client.offset_high_s
        AND sparse.arrival_s + sparse.arrival_error_s - client.sent_s + client.slack_s >= client.offset_low_s
)

SELECT
    source_id,
    line_no,
    request_id
FROM fitting
ANTI JOIN crowded_row ON fitting.source_id = crowded_row.source_id AND fitting.line_no = crowded_row.line_no
QUALIFY count(*) OVER (PARTITION BY source_id, line_no) = 1
    AND count(*) OVER (PARTITION BY source_id, request_id) = 1;

-- A request that two such files have belongs to the first.
INSERT INTO client_link
SELECT
    $run AS run_id,
    source_id,
    line_no,
    request_id,
    'lengths and times' AS basis
FROM matched
QUALIFY row_number() OVER (PARTITION BY request_id ORDER BY source_id, line_no) = 1;

UPDATE client_request
SET request_id = link.request_id
FROM client_link AS link
WHERE client_request.run_id = $run
    AND link.basis = 'lengths and times'
    AND client_request.source_id = link.source_id
    AND client_request.line_no = link.line_no;

INSERT INTO client_match
WITH linked AS (
    SELECT
        source_id,
        count(*) AS linked_count
    FROM client_link
    WHERE run_id = $run AND basis = 'lengths and times'
    GROUP BY source_id
)

SELECT
    $run AS run_id,
    comparable.source_id,
    comparable.row_count,
    comparable.request_count,
    vote.voter_count,
    vote.vote_count,
    vote.rival_count,
    CASE WHEN vote.is_sure THEN vote.low_s END AS low_s,
    CASE WHEN vote.is_sure THEN vote.high_s END AS high_s,
    coalesce(linked.linked_count, 0) AS linked_count,
    CASE
        WHEN NOT (comparable.by_input OR comparable.by_output OR comparable.by_max)
            THEN 'not matched: no id that the server knows, and no token count that both sides have (usage); send X-Request-Id'
        WHEN vote.voter_count IS NULL
            THEN 'not matched: no id that the server knows, and requests of too few lengths to tell them apart; send X-Request-Id'
        WHEN NOT vote.is_sure AND vote.rival_count > 0
            THEN format(
                    'not matched: no id that the server knows; by lengths and times a clock difference of {:.3f} s fits {} of {} '
                    || 'requests, one of {:.3f} s fits {}; send X-Request-Id',
                    (vote.low_s + vote.high_s) / 2, vote.vote_count, vote.voter_count, vote.rival_offset_s, vote.rival_count
                )
        WHEN NOT vote.is_sure
            THEN format(
                    'not matched: no id that the server knows; by lengths and times no clock difference fits more than {} of {} '
                    || 'requests (needs 5, and 9 in 10); send X-Request-Id',
                    vote.vote_count, vote.voter_count
                )
        ELSE format(
                'no id that the server knows: {} of {} rows matched by lengths and times, the others fit several requests or '
                || 'none; send X-Request-Id',
                coalesce(linked.linked_count, 0), comparable.row_count
            )
    END AS verdict
FROM comparable
LEFT JOIN offset_vote AS vote ON comparable.source_id = vote.source_id
LEFT JOIN linked ON comparable.source_id = linked.source_id;
