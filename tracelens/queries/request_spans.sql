/*
Requests with their stages laid end to end, for trace viewers: start and length in microseconds since 1970, UTC.
A stage begins where the one before it ends, from the send (or, without a client, the arrival) on; unaccounted stands before the queue. Stages that
nobody measured are not in the list. stages is empty for a request of which only its beginning and end are known.
[params]
run = ""
request = ""
*/
WITH chosen AS (
    SELECT *
    FROM request
    WHERE ($run = '' OR run_id = $run) AND $request IN ('', request_id)
),

placed AS (
    SELECT
        stage.run_id,
        stage.request_id,
        stage.stage,
        stage.duration_s,
        stage.provenance,
        stage.basis,
        _stage_place(stage.stage, stage.stage_index) AS place,
        sum(stage.duration_s) OVER (
            PARTITION BY stage.run_id, stage.request_id
            ORDER BY _stage_place(stage.stage, stage.stage_index)
        ) - stage.duration_s AS before_s
    FROM request_stage AS stage
    SEMI JOIN chosen ON stage.run_id = chosen.run_id AND stage.request_id = chosen.request_id
    WHERE stage.duration_s > 0
),

collected AS (
    SELECT
        run_id,
        request_id,
        sum(duration_s) AS length_s,
        -- What lies before the arrival: the client's own wait and, where the arrival is the server's, the way in.
        sum(duration_s) FILTER (WHERE stage = 'client_wait') AS before_sent_s,
        sum(duration_s) FILTER (WHERE stage IN ('client_wait', 'network_in')) AS before_arrival_s,
        list(
            {
                'stage': stage,
                'from_us': (before_s * 1e6)::BIGINT,
                'length_us': greatest((duration_s * 1e6)::BIGINT, 1),
                'duration_s': duration_s,
                'provenance': provenance,
                'basis': basis
            } ORDER BY place
        ) AS stages
    FROM placed
    GROUP BY run_id, request_id
),

traced AS (
    SELECT
        run_id,
        request_id,
        any_value(trace_id) AS trace_id
    FROM server_request
    WHERE trace_id IS NOT NULL
    GROUP BY run_id, request_id
)

SELECT
    chosen.run_id,
    chosen.request_id,
    traced.trace_id,
    epoch_us(chosen.arrival_ts) AS arrival_us,
    epoch_us(chosen.arrival_ts)
    - (
        1e6 * coalesce(CASE WHEN chosen.arrival_basis = 'client sent' THEN collected.before_sent_s ELSE collected.before_arrival_s END, 0)
    )::BIGINT AS start_us,
    greatest((coalesce(collected.length_s, chosen.client_e2e_s, chosen.e2e_s, 0) * 1e6)::BIGINT, 1) AS length_us,
    chosen.status,
    chosen.end_status,
    chosen.finish_reason,
    chosen.input_tokens,
    chosen.cached_input_tokens,
    chosen.output_tokens,
    chosen.max_tokens,
    chosen.ttft_s,
    chosen.client_ttft_s,
    chosen.queue_s,
    chosen.prefill_s,
    chosen.decode_s,
    chosen.tpot_s,
    chosen.e2e_s,
    coalesce(collected.stages, []) AS stages
FROM chosen
LEFT JOIN collected ON chosen.run_id = collected.run_id AND chosen.request_id = collected.request_id
LEFT JOIN traced ON chosen.run_id = traced.run_id AND chosen.request_id = traced.request_id
WHERE chosen.arrival_ts IS NOT NULL
ORDER BY chosen.run_id ASC, start_us ASC, chosen.request_id ASC
