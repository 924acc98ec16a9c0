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
        request_id,
        _measure_s($by, coalesce(client_ttft_s, ttft_s), coalesce(client_e2e_s, e2e_s), tpot_s, queue_s, prefill_s) AS measure_s
    FROM request
    WHERE ($run = '' OR run_id = $run)
),

chosen AS MATERIALIZED (
    SELECT
        run_id,
        request_id,
        _measure_s($by, coalesce(client_ttft_s, ttft_s), coalesce(client_e2e_s, e2e_s), tpot_s, queue_s, prefill_s) AS measure_s
    FROM _request_called($request, $run)
    UNION ALL
    SELECT
        run_id,
        min(request_id) AS request_id,
        measure_s
    FROM (
        SELECT *
        FROM measured
        WHERE $request = ''
        QUALIFY measure_s IS NOT DISTINCT FROM max(measure_s) OVER (PARTITION BY run_id)
    )
    GROUP BY run_id, measure_s
),

-- The worst come first, those without the measure last, equal ones by their ids.
counted AS (
    SELECT
        chosen.run_id,
        any_value(chosen.request_id) AS request_id,
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
        counted.*,
        other.request_id AS other_id,
        other.measure_s AS other_s,
        (other.measure_s IS NOT DISTINCT FROM counted.measure_s) AS is_same
    FROM measured AS other
    INNER JOIN counted ON other.run_id = counted.run_id
),

beside AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE is_same AND other_id < request_id) AS equal_count,
        max(other_id) FILTER (WHERE is_same AND other_id < request_id) AS equal_before_id,
        min(other_id) FILTER (WHERE is_same AND other_id > request_id) AS equal_after_id,
        max(other_id) FILTER (WHERE other_s = worse_s) AS worse_id,
        min(other_id) FILTER (WHERE other_s IS NOT DISTINCT FROM better_s) AS better_id
    FROM judged
    WHERE is_same OR other_s = worse_s OR other_s IS NOT DISTINCT FROM better_s
    GROUP BY run_id
)

SELECT
    counted.run_id,
    counted.request_id,
    $by AS measure,
    counted.measure_s,
    counted.worse_count + beside.equal_count + 1 AS place,
    counted.known_count,
    coalesce(beside.equal_before_id, beside.worse_id) AS worse_id,
    coalesce(beside.equal_after_id, CASE WHEN counted.measure_s IS NOT NULL THEN beside.better_id END) AS better_id
FROM counted
INNER JOIN beside ON counted.run_id = beside.run_id
ORDER BY counted.run_id ASC
