-- Requests that were sent when all earlier ones of their series had ended: what a pause does to the next request.
CREATE VIEW _client_pause AS
WITH placed AS (
    SELECT
        source_id,
        line_no,
        coalesce(epoch(client_sent_ts), client_sent_s) AS sent_s,
        client_ttft_s,
        client_e2e_s
    FROM client_request
    WHERE client_ttft_s IS NOT NULL AND client_e2e_s IS NOT NULL AND coalesce(epoch(client_sent_ts), client_sent_s) IS NOT NULL
        AND is_secondary IS NULL
),

serial AS (
    -- A new series begins where the clock of the file begins again.
    SELECT
        *,
        count(CASE WHEN goes_back THEN 1 END) OVER (PARTITION BY source_id ORDER BY line_no) AS series
    FROM (
        SELECT
            *,
            coalesce(sent_s < lag(sent_s) OVER (PARTITION BY source_id ORDER BY line_no), FALSE) AS goes_back
        FROM placed
    )
),

-- Where lines stand in the order of their ends, the order of sending tells one series from overlapping requests.
followed AS (
    SELECT
        *,
        sent_s - max(sent_s + client_e2e_s) OVER (
            PARTITION BY source_id, series ORDER BY sent_s, line_no ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS pause_s
    FROM serial
)

SELECT
    source.run_id,
    followed.source_id,
    followed.line_no,
    followed.pause_s,
    followed.client_ttft_s
FROM followed
INNER JOIN source ON followed.source_id = source.source_id
WHERE followed.pause_s > -0.05;

COMMENT ON VIEW _client_pause IS 'One row per client row that was sent after all earlier ones of its series had ended: how long after, and its TTFT.';
