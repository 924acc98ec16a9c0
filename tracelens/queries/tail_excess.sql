/*
What the slowest requests spend beyond a usual one, stage by stage: the largest part of the excess first.
by is ttft, e2e or tpot.
[params]
by = "ttft"
run = ""
*/
SELECT *
FROM tail_excess
WHERE ($run = '' OR run_id = $run) AND measure = CASE WHEN $by IN ('ttft', 'e2e', 'tpot') THEN $by ELSE error('by is ttft, e2e or tpot') END
ORDER BY run_id ASC, excess_share DESC NULLS LAST, stage_index ASC
