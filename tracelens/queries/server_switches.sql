/*
Arguments of vllm serve that record something, those that a run's version of vLLM knows; the newest is meant where none was stated.
[params]
run = ""
*/
WITH versioned AS (
    SELECT
        run_id,
        any_value(vllm_version) AS vllm_version
    FROM coverage
    WHERE ($run = '' OR run_id = $run)
    GROUP BY run_id
),

numbered AS (
    SELECT
        run_id,
        vllm_version,
        coalesce(_version_code(vllm_version), 999999) AS version_code
    FROM versioned
)

SELECT
    numbered.run_id,
    numbered.vllm_version,
    server_switch.subject,
    server_switch.argument,
    server_switch.note
FROM numbered
INNER JOIN server_switch
    ON numbered.version_code >= server_switch.from_version AND numbered.version_code < server_switch.until_version
ORDER BY numbered.run_id ASC, server_switch.subject ASC, server_switch.argument DESC
