/*
Where one request stands among the requests of its run by a measure, the worst first, and which ones stand next to it.
With an empty request: the worst. by is ttft, e2e, tpot, queue or prefill, as in slowest.
[params]
request = ""
by = "ttft"
run = ""
*/
WITH measured AS NOT MATERIALIZED (
    SELECT
        run_id,
        id_hash,
        _measure_s($by, coalesce(client_ttft_s, ttft_s), coalesce(client_e2e_s, e2e_s), tpot_s, queue_s, prefill_s) AS measure_s
    FROM _request_timing
    WHERE ($run = '' OR run_id = $run)
),

chosen AS MATERIALIZED (
    SELECT
        run_id,
        id_hash,
        _measure_s($by, coalesce(client_ttft_s, ttft_s), coalesce(client_e2e_s, e2e_s), tpot_s, queue_s, prefill_s) AS measure_s
    FROM _request_called($request, $run)
    UNION ALL
    SELECT
        run_id,
        min(id_hash) AS id_hash,
        measure_s
    FROM (
        SELECT *
        FROM measured
        WHERE $request = ''
        QUALIFY measure_s IS NOT DISTINCT FROM max(measure_s) OVER (PARTITION BY run_id)
    )
    GROUP BY run_id, measure_s
),

-- The worst come first, those without the measure last, equal ones by the hashes of their ids: no id is read but those that are shown.
counted AS MATERIALIZED (
    SELECT
        chosen.run_id,
        any_value(chosen.id_hash) AS id_hash,
        any_value(chosen.measure_s) AS measure_s,
        count(other.measure_s) AS known_count,
        count(other.measure_s) FILTER (WHERE coalesce(other.measure_s > chosen.measure_s, chosen.measure_s IS NULL)) AS worse_count,
        min(other.measure_s) FILTER (WHERE coalesce(other.measure_s > chosen.measure_s, chosen.measure_s IS NULL)) AS worse_s,
        max(other.measure_s) FILTER (WHERE other.measure_s < chosen.measure_s) AS better_s
    FROM measured AS other
    INNER JOIN chosen ON other.run_id = chosen.run_id
    GROUP BY chosen.run_id
),

judged AS (
    SELECT
        counted.run_id,
        counted.id_hash,
        other.id_hash AS other_hash,
        other.measure_s = counted.worse_s AS is_worse,
        (other.measure_s IS NOT DISTINCT FROM counted.better_s) AS is_better,
        (other.measure_s IS NOT DISTINCT FROM counted.measure_s) AS is_same
    FROM measured AS other
    INNER JOIN counted ON other.run_id = counted.run_id
),

beside AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE is_same AND other_hash < id_hash) AS equal_count,
        max(other_hash) FILTER (WHERE is_same AND other_hash < id_hash) AS equal_before_hash,
        min(other_hash) FILTER (WHERE is_same AND other_hash > id_hash) AS equal_after_hash,
        max(other_hash) FILTER (WHERE is_worse) AS worse_hash,
        min(other_hash) FILTER (WHERE is_better) AS better_hash
    FROM judged
    WHERE is_same OR is_worse OR is_better
    GROUP BY run_id
),

placed AS MATERIALIZED (
    SELECT
        counted.*,
        counted.worse_count + beside.equal_count + 1 AS place,
        coalesce(beside.equal_before_hash, beside.worse_hash) AS before_hash,
        coalesce(beside.equal_after_hash, CASE WHEN counted.measure_s IS NOT NULL THEN beside.better_hash END) AS after_hash
    FROM counted
    INNER JOIN beside ON counted.run_id = beside.run_id
),

called AS MATERIALIZED (
    SELECT
        run_id,
        id_hash,
        request_id
    FROM _request_timing
    WHERE id_hash IN (SELECT unnest([id_hash, before_hash, after_hash]) FROM placed)
)

SELECT
    placed.run_id,
    me.request_id,
    $by AS measure,
    placed.measure_s,
    placed.place,
    placed.known_count,
    worse.request_id AS worse_id,
    better.request_id AS better_id
FROM placed
INNER JOIN called AS me ON placed.run_id = me.run_id AND placed.id_hash = me.id_hash
LEFT JOIN called AS worse ON placed.run_id = worse.run_id AND placed.before_hash = worse.id_hash
LEFT JOIN called AS better ON placed.run_id = better.run_id AND placed.after_hash = better.id_hash
ORDER BY placed.run_id ASC
