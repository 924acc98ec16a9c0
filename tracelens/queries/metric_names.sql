/*
Names of vLLM's metrics, old and new, and from which version to which each was there.
*/
SELECT
    metric,
    'vllm:' || spelling || CASE WHEN kind = 'counter' THEN '_total' ELSE '' END AS name,
    kind,
    engine,
    CASE WHEN from_version > 0 THEN format('0.{}.{}', from_version // 1000, from_version % 1000) END AS since,
    CASE WHEN until_version < 1000000 THEN format('0.{}.{}', until_version // 1000, until_version % 1000) END AS gone_in,
    meaning
FROM metric_name
ORDER BY metric, rank, from_version
