/*
title = "Speculative decoding drafts tokens that the model rejects"
belief = "Speculative decoding is on, so tokens come faster."
cause = "speculative-decoding-rejected"
severity = "warning"
needs = ["metric_sample"]
missing = ["the lines SpecDecoding metrics of the server's log, or a scrape of /metrics (vllm:spec_decode_num_accepted_tokens_total)"]
message = "Of {drafted_text} drafted tokens {accepted_text} were accepted ({measured_accepted_ratio}): each step pays for drafting and for checking more than it wins."
verdict = "Speculative decoding accepts {measured_accepted_ratio} of what it drafts: switch it off, or use a draft model that was made for this model, before anything else is changed."

[params]
max_accepted_ratio = 0.1
max_won_tokens = 0.5
min_drafted_tokens = 1000

[[remedy]]
kind = "config"
text = "Measure the same load without --speculative-config; then use heads or a draft model trained for exactly this model, its quantisation and its chat template, and fewer speculative tokens."
moves = "TPOT"
next_limit = "time of a step of the model itself"
---
## What people assume
Drafting makes decoding faster.
## What the data shows
A draft costs a pass of the draft model and makes the model check all drafted tokens.  What is accepted is the gain, and there is none.
## How it is detected
The engine's counts of drafted and accepted tokens, from its log (V1: per interval, V0: since the start) or the counters of /metrics: at least
`min_drafted_tokens` drafted and less than `max_accepted_ratio` of them accepted, and, where the counts tell it, fewer than
`max_won_tokens` won per step.  A step with k drafted tokens wins r k tokens, r the accepted ratio, and takes 1 + c k times as long:
below r = c drafting is a loss.  vLLM's own measurement of EAGLE on an 8B model, one request at a time, gives c (pull request 16035:
1.89 tokens a step made it 1.36 times faster with k = 2, 2.08 tokens 1.29 times with k = 4): 0.19 and 0.15, so 0.39 and 0.62 tokens
of a step go into drafting.  Both limits lie below or between.  What drafts all k at once (block diffusion) pays less for each: there
a tenth of 15 is a gain, and the tokens won per step decide.
## What to do
Compare with it off: that takes a restart and says all.
## Known limits
Between a tenth and a half it depends on the load: with many running requests checking is no longer free.  Nothing in a log states c.
*/
WITH counted AS (
    SELECT
        run_id,
        source_id,
        name,
        -- V1's lines count an interval, V0's and a counter of /metrics all since the start.
        CASE WHEN name LIKE 'SpecDecoding metrics: %' THEN sum(measured) ELSE max(measured) END AS tokens,
        min(line_no) AS line_no
    FROM metric_sample
    WHERE
        name IN (
            'SpecDecoding metrics: Accepted', 'SpecDecoding metrics: Drafted',
            'Speculative metrics: Number of accepted tokens', 'Speculative metrics: Number of draft tokens',
            'Speculative metrics: Number of draft tokens tokens',
            'vllm:spec_decode_num_accepted_tokens_total', 'vllm:spec_decode_num_draft_tokens_total',
            'vllm:spec_decode_num_drafts_total'
        )
    GROUP BY run_id, source_id, name, labels
),

summed AS (
    SELECT
        run_id,
        source_id,
        sum(tokens) FILTER (WHERE name ILIKE '%accepted%') AS accepted_tokens,
        sum(tokens) FILTER (WHERE name ILIKE '%draft% tokens%' OR name ILIKE '%draft_tokens%' OR name ILIKE '%Drafted') AS drafted_tokens,
        sum(tokens) FILTER (WHERE name = 'vllm:spec_decode_num_drafts_total') AS draft_count,
        min(line_no) AS line_no
    FROM counted
    GROUP BY run_id, source_id
),

stated AS (
    -- V1 says itself how many tokens a step yields, the model's own one with them.
    SELECT
        source_id,
        avg(measured) - 1 AS won_tokens
    FROM metric_sample
    WHERE name = 'SpecDecoding metrics: Mean acceptance length'
    GROUP BY source_id
),

judged AS (
    SELECT
        summed.*,
        summed.accepted_tokens / nullif(summed.drafted_tokens, 0) AS accepted_ratio,
        coalesce(summed.accepted_tokens / nullif(summed.draft_count, 0), stated.won_tokens) AS won_tokens
    FROM summed
    LEFT JOIN stated ON summed.source_id = stated.source_id
    WHERE summed.accepted_tokens IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY summed.run_id ORDER BY summed.drafted_tokens DESC, summed.source_id ASC) = 1
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN coalesce(drafted_tokens, 0) < $min_drafted_tokens THEN 'not_evaluated'
        WHEN accepted_ratio < $max_accepted_ratio AND coalesce(won_tokens < $max_won_tokens, TRUE) THEN 'fired'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN drafted_tokens >= 10 * $min_drafted_tokens THEN 'high' ELSE 'medium' END AS confidence,
    0.5 AS weight,
    NULL::TIMESTAMP AS from_ts,
    NULL::TIMESTAMP AS to_ts,
    [{'source_id': source_id, 'line_no': line_no}] AS evidence,
    format('{:,}', drafted_tokens::BIGINT) AS drafted_text,
    format('{:,}', accepted_tokens::BIGINT) AS accepted_text,
    accepted_ratio AS measured_accepted_ratio,
    $max_accepted_ratio AS threshold_accepted_ratio,
    won_tokens AS measured_won_tokens,
    $max_won_tokens AS threshold_won_tokens
FROM judged
