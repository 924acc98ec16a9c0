-- How the requests of a run are spread over each measure and stage.  The screens begin with these numbers, so a finished case has
-- them as rows (tracelens/store/keeping.py).

-- One of the measures that requests are ranked by.
CREATE MACRO _measure_s(measure, ttft_s, e2e_s, tpot_s, queue_s, prefill_s) AS
CASE measure
    WHEN 'ttft' THEN ttft_s
    WHEN 'e2e' THEN e2e_s
    WHEN 'tpot' THEN tpot_s
    WHEN 'queue' THEN queue_s
    WHEN 'prefill' THEN prefill_s
    ELSE error('by is ttft, e2e, tpot, queue or prefill')
END;

-- Where a stage is shown: what nobody accounts for stands before the queue, since most of it is front end, tokenization and step wait.
CREATE MACRO _stage_place(stage, stage_index) AS
CASE stage WHEN 'unaccounted' THEN 3.5 ELSE stage_index END;

CREATE VIEW _request_percentile AS
SELECT
    *,
    CASE
        WHEN coalesce(client_ttft_s, ttft_s) IS NOT NULL
            THEN cume_dist() OVER (
                    PARTITION BY run_id, coalesce(client_ttft_s, ttft_s) IS NULL ORDER BY coalesce(client_ttft_s, ttft_s)
                )
    END AS ttft_percentile_ratio
FROM _request_timing;
COMMENT ON VIEW _request_percentile IS 'One row per request: the pieces of request_stage, and the share of its run''s requests with a known TTFT that are not slower.';

-- The requests of a run under some measures: their lengths are held in memory while it is computed.
CREATE MACRO _run_measure_of(wanted) AS TABLE
    WITH prep_1 AS (SELECT unnest(wanted) AS measure),

    timed AS (
        SELECT
            run_id,
            measure,
            frame IN ('client', 'server') AS has_ttft,
            CASE measure
                WHEN 'ttft' THEN client_ttft_s IS NOT NULL
                WHEN 'e2e' THEN client_e2e_s IS NOT NULL
                WHEN 'tpot' THEN decode_s IS NULL AND (e2e_s IS NULL OR ttft_s IS NULL)
                ELSE FALSE
            END AS by_client,
            CASE measure
                WHEN 'ttft' THEN coalesce(client_ttft_s, ttft_s)
                WHEN 'e2e' THEN coalesce(client_e2e_s, e2e_s)
                WHEN 'tpot' THEN tpot_s
                WHEN 'client_wait' THEN client_wait_s
                WHEN 'network_in' THEN network_in_s
                WHEN 'tokenize' THEN tokenize_s
                WHEN 'step_wait' THEN step_wait_s
                WHEN 'unaccounted' THEN left_s
                WHEN 'queue' THEN queue_s
                WHEN 'prefill' THEN prefill_s
                WHEN 'stream_out' THEN stream_out_s
                WHEN 'decode' THEN decode_stage_s
                -- What a request shares with others, by the server's clock or the client's: see _beside.
                WHEN 'wait, server' THEN coalesce(ttft_s - prefill_s, ttft_s)
                WHEN 'prefill, server' THEN ttft_s - (ttft_s - prefill_s)
                WHEN 'decode, server' THEN e2e_s - ttft_s
                WHEN 'first token, server' THEN ttft_s
                WHEN 'stay, server' THEN CASE WHEN arrival_basis <> 'client sent' THEN e2e_s END
                WHEN 'wait, client' THEN client_ttft_s
                WHEN 'decode, client' THEN client_e2e_s - client_ttft_s
                WHEN 'first token, client' THEN epoch(client_first_chunk_ts - client_sent_ts)
                WHEN 'stay, client' THEN CASE WHEN client_sent_ts IS NOT NULL THEN client_e2e_s END
            END AS length_s
        FROM _request_timing
        CROSS JOIN prep_1
    ),

    spread AS (
        SELECT
            run_id,
            measure,
            quantile_cont(length_s, [0.5, 0.9, 0.95, 0.99]) AS quantiles_s,
            max(length_s) AS max_s,
            sum(length_s) FILTER (WHERE has_ttft) AS in_ttft_s,
            count(length_s) AS known_count,
            count(length_s) FILTER (WHERE by_client) AS client_count,
            count(*) AS request_count
        FROM timed
        GROUP BY run_id, measure
    )

    SELECT
        run_id,
        measure,
        quantiles_s[1] AS p50_s,
        quantiles_s[2] AS p90_s,
        quantiles_s[3] AS p95_s,
        quantiles_s[4] AS p99_s,
        max_s,
        in_ttft_s,
        known_count,
        client_count,
        request_count
    FROM spread;

CREATE MACRO _run_measures() AS
[
    'ttft', 'tpot', 'e2e', 'client_wait', 'network_in', 'tokenize', 'step_wait', 'unaccounted', 'queue', 'kv_alloc', 'prefill', 'sample',
    'stream_out', 'decode', 'wait, server', 'prefill, server', 'decode, server', 'first token, server', 'stay, server', 'wait, client',
    'decode, client', 'first token, client', 'stay, client'
];

CREATE VIEW _run_measure AS
FROM _run_measure_of(_run_measures());
COMMENT ON VIEW _run_measure IS 'One row per run and measure or stage: its quantiles over the requests in which it is known.';
