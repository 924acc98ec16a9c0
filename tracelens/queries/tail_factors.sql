/*
What sets the slowest requests apart from the others, strongest first, corrected for the number of things compared; and
what could not be compared, with what would show it. An association is not yet a cause. by is ttft, e2e or tpot.
[params]
by = "ttft"
run = ""
*/
SELECT *
FROM tail_factors
WHERE ($run = '' OR run_id = $run) AND measure = CASE WHEN $by IN ('ttft', 'e2e', 'tpot') THEN $by ELSE error('by is ttft, e2e or tpot') END
ORDER BY run_id ASC, effect_rank ASC
