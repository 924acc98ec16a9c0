/*
The stages of the worst requests, as `slowest` lists them: how long each took, with which error, and how that is known.
by is ttft, e2e, tpot, queue or prefill. unaccounted stands before queue, as in request_stages.
[params]
by = "ttft"
top = 10
run = ""
*/
WITH measured AS (
    SELECT
        run_id,
        request_id,
        id_hash,
        _measure_s($by, coalesce(client_ttft_s, ttft_s), coalesce(client_e2e_s, e2e_s), tpot_s, queue_s, prefill_s) AS measure_s
    FROM _request_timing
    WHERE ($run = '' OR run_id = $run)
),

worst AS (
    SELECT
        *,
        row_number() OVER (ORDER BY measure_s DESC, id_hash ASC, run_id ASC) AS place
    FROM measured
    WHERE measure_s IS NOT NULL
    ORDER BY measure_s DESC, id_hash ASC, run_id ASC
    LIMIT $top
)

SELECT
    worst.place,
    stage.run_id,
    stage.request_id,
    stage.stage,
    stage.start_ts,
    stage.duration_s,
    stage.error_s,
    stage.provenance,
    stage.basis
FROM request_stage AS stage
INNER JOIN worst ON stage.run_id = worst.run_id AND stage.request_id = worst.request_id
ORDER BY worst.place ASC, _stage_place(stage.stage, stage.stage_index) ASC
