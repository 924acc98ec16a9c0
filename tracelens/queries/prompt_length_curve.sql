/*
TTFT over prompt length as a straight line: seconds per 1000 tokens (the cost of prefill) and seconds at 0 (what is fixed).
[params]
run = ""
*/
SELECT *
FROM prompt_length_curve
WHERE ($run = '' OR run_id = $run)
ORDER BY run_id ASC
