-- Server logs whose zone nobody gave: how far their stamps are off the instants (spans, client stamps) of the requests
-- that both have.  Zones are multiples of 15 minutes; what is left over must be small and the same for nearly all.
WITH instant AS (
    SELECT
        run_id,
        request_id,
        min(arrival_ts) AS instant_ts
    FROM server_request
    WHERE run_id = $run AND measured_by = 'span' AND request_id IS NOT NULL AND arrival_ts IS NOT NULL
    GROUP BY run_id, request_id
    UNION ALL
    SELECT
        client.run_id,
        client.request_id,
        min(client.client_sent_ts) AS instant_ts
    FROM client_request AS client
    INNER JOIN source ON client.source_id = source.source_id AND source.clock = 'utc'
    WHERE client.run_id = $run AND client.request_id IS NOT NULL AND client.client_sent_ts IS NOT NULL
    GROUP BY client.run_id, client.request_id
),

apart AS (
    SELECT
        logged.source_id,
        logged.request_id,
        epoch(logged.event_ts - instant.instant_ts) AS apart_s
    FROM request_event AS logged
    INNER JOIN source
        ON logged.source_id = source.source_id AND source.clock IN ('yearless', 'local', 'dayless')
    INNER JOIN instant ON logged.run_id = instant.run_id AND logged.request_id = instant.request_id
    WHERE logged.event = 'received' AND logged.event_ts IS NOT NULL AND contains(source.time_basis, 'UTC assumed')
),

judged AS (
    SELECT
        source_id,
        900 * round(median(apart_s) / 900)::BIGINT AS zone_s,
        quantile_cont(apart_s, 0.1) AS low_s,
        quantile_cont(apart_s, 0.9) AS high_s,
        count(DISTINCT request_id) AS pair_count
    FROM apart
    GROUP BY source_id
)

SELECT
    source_id,
    zone_s,
    format(
        'zone {}{:02d}:{:02d} found from {} requests that other sources have too',
        CASE WHEN zone_s < 0 THEN '-' ELSE '+' END, abs(zone_s) // 3600, abs(zone_s) % 3600 // 60, pair_count
    ) AS said
FROM judged
WHERE zone_s <> 0
    AND zone_s BETWEEN -12 * 3600 AND 14 * 3600
    AND pair_count >= 3
    AND low_s > zone_s - 300
    AND high_s < zone_s + 300
ORDER BY source_id
