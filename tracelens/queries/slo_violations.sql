/*
Which stage took most of the time of the requests that broke an SLO, by measure. A limit of 0 is no limit.
[params]
ttft_s = 0.0
tpot_s = 0.0
e2e_s = 0.0
run = ""
*/
WITH broken AS (
    SELECT
        run_id,
        request_id,
        unnest([
            {'measure': 'ttft', 'is_broken': ($ttft_s > 0 AND coalesce(client_ttft_s, ttft_s) > $ttft_s)},
            {'measure': 'tpot', 'is_broken': ($tpot_s > 0 AND tpot_s > $tpot_s)},
            {'measure': 'e2e', 'is_broken': ($e2e_s > 0 AND coalesce(client_e2e_s, e2e_s) > $e2e_s)}
        ]) AS limit_of
    FROM request
    WHERE ($run = '' OR run_id = $run)
),

blamed AS (
    SELECT
        broken.run_id,
        broken.limit_of.measure AS measure,
        broken.request_id,
        arg_max(stage.stage, stage.duration_s) AS largest_stage
    FROM broken
    LEFT JOIN request_stage AS stage
        ON
            broken.run_id = stage.run_id
            AND broken.request_id = stage.request_id
            AND CASE broken.limit_of.measure
                WHEN 'ttft' THEN stage.stage NOT IN ('client_wait', 'decode')
                WHEN 'tpot' THEN stage.stage = 'decode'
                ELSE stage.stage <> 'client_wait'
            END
    WHERE broken.limit_of.is_broken
    GROUP BY broken.run_id, broken.limit_of.measure, broken.request_id
)

SELECT
    run_id,
    measure,
    coalesce(largest_stage, 'unknown') AS stage,
    count(*) AS violation_count,
    count(*) / sum(count(*)) OVER (PARTITION BY run_id, measure) AS share_ratio
FROM blamed
GROUP BY run_id, measure, largest_stage
ORDER BY run_id ASC, measure DESC, violation_count DESC, stage ASC
