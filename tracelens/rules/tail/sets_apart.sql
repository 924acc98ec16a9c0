/*
title = "The slowest requests have something in common"
belief = "Tail latency is bad luck: any request can be the slow one."
cause = "slow-tail"
severity = "info"
needs = ["tail_factors"]
missing = ["TTFT or end-to-end time of at least 30 requests (spans: --otlp-traces-endpoint; or a client that stamps each request)"]
message = "The slowest {tail_text} of {measured_request_count} requests ({measured_slow_count} from {measured_threshold_s} on; median {measured_median_s} {measure_text}) {stage_text}. Of {measured_compared_count} things compared these set them apart: {factors_text}."
verdict = "The slowest {tail_text} by {measure_text}, from {measured_threshold_s} on against a median of {measured_median_s}, {stage_text}; what sets them apart first: {first_factor_text}."

[params]
min_slowdown_ratio = 1.5
---
## What people assume
That slow requests are spread by chance, so only an average can be improved.

## What the data shows
Stage by stage, what the slow ones take longer than a usual request; and thing by thing (prompt and answer length, what came in
the same second, how many stood in line, batch-mates' prefill, engine, client, cache hits, preemptions, GPU state), whether slow
and other requests differ in it by more than chance.

## How it is detected
The slowest tenth of a run (hundredth from 1000 requests on) is set against all others: Cliff's delta as the size of each
difference, Mann and Whitney's test for its chance, Holm's correction for the number of things compared. Said is what has a
corrected p below 0.01 and a delta of at least 0.33. The tail must begin at `min_slowdown_ratio` medians or later: where all are
alike there is no tail to explain. By TTFT where it is known, else by the end-to-end time. Below 30 requests nothing is claimed.

## What to do
Look at one of the slow ones (tracelens slowest, then show), and at the finding that names what they have in common.

## Known limits
An association is not yet a cause: things that go together (long prompts of one client) are all named. What is not in the files
is not compared; the query tail_factors lists it with what would show it.
*/
WITH chosen AS (
    SELECT *
    FROM tail_factors
    QUALIFY measure = max(CASE WHEN measure <> 'tpot' THEN measure END) OVER (PARTITION BY run_id)
),

judged AS (
    SELECT
        run_id,
        any_value(measure) AS measure,
        any_value(request_count) AS request_count,
        any_value(tail_ratio) AS tail_ratio,
        any_value(threshold_s) AS threshold_s,
        any_value(median_s) AS median_s,
        any_value(compared_count) AS compared_count,
        max(slow_count) AS slow_count,
        max(abs(effect)) FILTER (WHERE is_claimed) AS effect,
        max(words) FILTER (WHERE is_claimed AND effect_rank = 1) AS first_factor_text,
        string_agg(words, '; ' ORDER BY effect_rank) FILTER (WHERE is_claimed AND effect_rank <= 4) AS factors_text
    FROM chosen
    GROUP BY run_id
),

stage AS (
    SELECT
        run_id,
        measure,
        arg_max(stage, excess_share) AS stage,
        max(excess_share) AS excess_share
    FROM tail_excess
    GROUP BY run_id, measure
),

slowest AS (
    SELECT
        c.run_id,
        c.measure,
        min(c.arrival_ts) AS from_ts,
        max(c.arrival_ts) AS to_ts,
        list({
            'source_id': coalesce(r.server_source_id, r.client_source_id), 'line_no': coalesce(r.server_line_no, r.client_line_no)
        } ORDER BY c.measure_s DESC) FILTER (WHERE coalesce(r.server_source_id, r.client_source_id) IS NOT NULL)[:5] AS evidence
    FROM _tail_candidate AS c
    INNER JOIN request AS r ON c.run_id = r.run_id AND c.request_id = r.request_id
    WHERE c.is_slow
    GROUP BY c.run_id, c.measure
)

SELECT
    judged.run_id,
    '' AS subject,
    CASE
        WHEN judged.request_count < 30 OR judged.compared_count = 0 THEN 'not_evaluated'
        WHEN judged.threshold_s < $min_slowdown_ratio * judged.median_s THEN 'clear'
        WHEN judged.effect IS NOT NULL THEN 'fired'
        -- A tail that nothing recorded explains: what would explain it was not recorded.
        ELSE 'not_evaluated'
    END AS outcome,
    CASE WHEN judged.request_count >= 300 THEN 'high' ELSE 'medium' END AS confidence,
    coalesce(judged.effect, 0.0) AS weight,
    slowest.from_ts,
    slowest.to_ts,
    coalesce(slowest.evidence, []) AS evidence,
    CASE judged.measure WHEN 'ttft' THEN 'TTFT' ELSE 'end-to-end time' END AS measure_text,
    CASE judged.tail_ratio WHEN 0.1 THEN 'tenth' ELSE 'hundredth' END AS tail_text,
    CASE
        WHEN stage.stage = 'unaccounted' AND stage.excess_share > 0
            THEN format('have {:.0f} % of their excess in no stage that is known', least(stage.excess_share, 1) * 100)
        WHEN stage.excess_share > 0 THEN format('spend {:.0f} % of their excess on {}', least(stage.excess_share, 1) * 100, stage.stage)
        ELSE 'are slow in no stage that is known'
    END AS stage_text,
    coalesce(judged.first_factor_text, 'nothing') AS first_factor_text,
    coalesce(judged.factors_text, 'nothing') AS factors_text,
    judged.request_count AS measured_request_count,
    judged.slow_count AS measured_slow_count,
    judged.compared_count AS measured_compared_count,
    judged.threshold_s AS measured_threshold_s,
    judged.median_s AS measured_median_s,
    judged.effect AS measured_effect_ratio,
    stage.excess_share AS measured_excess_ratio
FROM judged
LEFT JOIN stage ON judged.run_id = stage.run_id AND judged.measure = stage.measure
LEFT JOIN slowest ON judged.run_id = slowest.run_id AND judged.measure = slowest.measure
