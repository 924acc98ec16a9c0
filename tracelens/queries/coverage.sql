/*
Which questions the files of a run answer, which of them do, and what to switch on for those that stay closed.
observed: a source states it; derived: a subtraction, a second clock or an assumption was needed; within: inside another stage.
[params]
run = ""
*/
SELECT
    run_id,
    subject,
    side,
    question,
    state,
    observed_count,
    derived_count,
    of_count,
    opened_by,
    why,
    switch_on,
    server_subject,
    vllm_version
FROM coverage
WHERE ($run = '' OR run_id = $run)
ORDER BY run_id ASC, subject_index ASC
