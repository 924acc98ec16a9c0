/*
What a run was made of, one fact per row: model, version and settings of the server, the load, and which files tell of it.
kind is server, setting, load or source; amount is the fact as a number, where it is one.
[params]
run = ""
*/
WITH loaded AS (
    SELECT
        run_id,
        count(*) AS request_count,
        count(*) / nullif(epoch(max(arrival_ts) - min(arrival_ts)), 0) AS arrival_rps,
        quantile_cont(input_tokens, 0.5) AS input_p50,
        quantile_cont(input_tokens, 0.9) AS input_p90,
        quantile_cont(output_tokens, 0.5) AS output_p50,
        quantile_cont(output_tokens, 0.9) AS output_p90,
        count(*) FILTER (WHERE streamed) / nullif(count(streamed), 0) AS streamed_ratio,
        sum(cached_input_tokens) / nullif(sum(input_tokens) FILTER (WHERE cached_input_tokens IS NOT NULL), 0) AS cached_ratio,
        count(*) FILTER (WHERE status IN ('error', 'rejected') OR end_status IN ('error', 'aborted', 'rejected'))
        / count(*) AS failed_ratio,
        CASE
            WHEN count(client_ttft_s) > 0 THEN 'client'
            WHEN count(ttft_s) > 0 THEN 'server'
        END AS ttft_by
    FROM request
    WHERE ($run = '' OR run_id = $run)
    GROUP BY run_id
),

load_fact AS (
    SELECT
        run_id,
        unnest([
            {'fact': 'requests', 'told': request_count::VARCHAR, 'amount': request_count::DOUBLE},
            {'fact': 'arrivals per second', 'told': NULL, 'amount': arrival_rps},
            {'fact': 'input tokens, median', 'told': NULL, 'amount': input_p50},
            {'fact': 'input tokens, 90 %', 'told': NULL, 'amount': input_p90},
            {'fact': 'output tokens, median', 'told': NULL, 'amount': output_p50},
            {'fact': 'output tokens, 90 %', 'told': NULL, 'amount': output_p90},
            {'fact': 'share streamed', 'told': NULL, 'amount': streamed_ratio},
            {'fact': 'share of input tokens cached', 'told': NULL, 'amount': cached_ratio},
            {'fact': 'share failed or aborted', 'told': NULL, 'amount': failed_ratio},
            {'fact': 'TTFT measured by', 'told': ttft_by, 'amount': NULL}
        ]) AS one
    FROM loaded
),

fact AS (
    SELECT
        run_id,
        CASE WHEN key IN ('model', 'vllm_version', 'engine_version') THEN 'server' ELSE 'setting' END AS kind,
        key AS fact,
        value AS told,
        amount,
        is_stated
    FROM run_setting
    WHERE ($run = '' OR run_id = $run)
    UNION ALL
    SELECT
        run_id,
        'load' AS kind,
        one.fact AS fact,
        one.told AS told,
        one.amount AS amount,
        TRUE AS is_stated
    FROM load_fact
    UNION ALL
    SELECT
        run_id,
        'source' AS kind,
        format AS fact,
        count(*)::VARCHAR AS told,
        count(*) AS amount,
        TRUE AS is_stated
    FROM source
    WHERE ($run = '' OR run_id = $run)
    GROUP BY run_id, format
)

SELECT
    run_id,
    kind,
    fact,
    coalesce(told, round(amount, 4)::VARCHAR) AS told,
    amount,
    is_stated
FROM fact
WHERE told IS NOT NULL OR amount IS NOT NULL
ORDER BY run_id ASC, list_position(['server', 'load', 'setting', 'source'], kind) ASC, fact ASC
