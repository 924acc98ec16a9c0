/*
title = "Images are prepared one after the other before the engine sees the request"
belief = "The vision model is slow on the GPU."
cause = "multimodal-preprocessing"
severity = "critical"
needs = []
missing = ["how many images each request holds (in the client file)", "spans of the requests and client stamps with headers (--otlp-traces-endpoint, a streaming client)", "engine stats lines beside a client file with send times"]
message = "{form}."
verdict = "Requests with images wait in front of the engine ({form}): scale images down before they are sent and give the API server more processes; the GPU is not the limit."

[params]
min_front_end_ratio = 0.5
min_front_end_s = 0.2
min_request_count = 10
min_in_flight_times_ratio = 2.0
min_pinned_ratio = 0.8

[[remedy]]
kind = "config"
text = "Scale images down before they are sent (or with mm_processor_kwargs) and raise --api-server-count, so that they are prepared in parallel; the multi-modal cache only helps images that come again."
moves = "tokenize stage"
next_limit = "encoder time on the GPU"

[[remedy]]
kind = "architecture"
text = "Prepare media in processes of their own, or cap the images per request (--limit-mm-per-prompt)."
moves = "tokenize stage"
next_limit = "engine queue"
---
## What people assume
Vision requests are slow because the model is.
## What the data shows
The API server decodes and scales images on the CPU before the engine hears of the request; many large images keep it busy
while Running and Waiting are low.
## How it is detected
With spans: the tokenize stage (arrival to headers) is at least `min_front_end_ratio` of all time to first token, so more than all waits in the
engine, and `min_front_end_s` in the median, over `min_request_count` requests or more.  Without: the mean number in flight
at the client (Little's law) is at least `min_in_flight_times_ratio` times the most that any stats line shows as running or waiting.  In both
cases half of the client's requests hold media, or the stats lines count a multi-modal cache.
## What to do
Look at the CPU of the API server process first.
## Known limits
Without spans a limit inside the client (connection pool) can look the same: where the engine holds one and the same number in
`min_pinned_ratio` of the lines or more, that is taken for such a limit, and nothing fires; else confidence is medium at most.
*/
WITH stage AS (
    SELECT
        run_id,
        tokenize_s,
        whole_s - CASE WHEN frame = 'end' THEN coalesce(decode_stage_s, 0) ELSE 0 END AS ttft_s
    FROM _request_timing
    WHERE tokenize_s IS NOT NULL
),

staged AS (
    SELECT
        run_id,
        count(tokenize_s) AS staged_count,
        sum(tokenize_s) / nullif(sum(ttft_s) FILTER (WHERE tokenize_s IS NOT NULL), 0) AS front_end_ratio,
        median(tokenize_s) AS front_end_s
    FROM stage
    GROUP BY run_id
),

-- Little's law at the client: mean number in flight = sum of the times over the length of the test.
sent AS (
    SELECT
        run_id,
        source_id,
        line_no,
        coalesce(epoch(client_sent_ts), client_sent_s) AS sent_s,
        coalesce(epoch(client_sent_ts), client_sent_s) + client_e2e_s AS end_s,
        client_e2e_s,
        CASE
            WHEN contains(other, 'image') OR contains(other, 'video') OR contains(other, 'audio')
                THEN regexp_matches(other, '"[a-z_]*(?:image|video|audio)[a-z_]*":[1-9"]')
            ELSE FALSE
        END AS has_image
    FROM client_request
    WHERE client_e2e_s > 0 AND is_secondary IS NULL
),

flight AS (
    SELECT
        run_id,
        sum(client_e2e_s) / nullif(max(end_s) - min(sent_s), 0) AS in_flight_count,
        count(*) AS sent_count,
        count(*) FILTER (WHERE has_image) AS image_count,
        arg_min(source_id, line_no) AS source_id,
        min(line_no) AS line_no,
        arg_max(line_no, (client_e2e_s, -line_no)) AS slowest_line
    FROM sent
    WHERE sent_s IS NOT NULL
    GROUP BY run_id
),

moment AS (
    SELECT
        run_id,
        source_id,
        max(line_no) AS line_no,
        sample_ts,
        sum(running_count) + sum(coalesce(waiting_count, 0)) AS held_count,
        max(sum(running_count) + sum(coalesce(waiting_count, 0))) OVER (PARTITION BY run_id) AS largest_count,
        max(mm_cache_hit_ratio) AS mm_cache_hit_ratio
    FROM engine_state
    WHERE running_count IS NOT NULL
    GROUP BY run_id, source_id, sample_ts, CASE WHEN sample_ts IS NULL THEN line_no END
),

held AS (
    SELECT
        run_id,
        count(*) AS sample_count,
        max(held_count) AS held_count,
        count(*) FILTER (WHERE held_count = largest_count) / count(*) AS pinned_ratio,
        count(mm_cache_hit_ratio) AS image_sample_count,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        any_value(source_id) AS source_id,
        arg_max(line_no, (held_count, -line_no)) AS fullest_line
    FROM moment
    GROUP BY run_id
),

judged AS (
    SELECT
        runs.run_id,
        staged.front_end_ratio,
        staged.front_end_s,
        staged.staged_count,
        flight.in_flight_count,
        held.held_count,
        flight.sent_count,
        held.from_ts,
        held.to_ts,
        coalesce(flight.image_count >= 0.5 * flight.sent_count, FALSE) AS sends_images,
        coalesce(held.image_sample_count > 0, FALSE) AS serves_images,
        coalesce(staged.staged_count >= $min_request_count, FALSE) AS has_stages,
        coalesce(flight.sent_count >= $min_request_count AND held.sample_count >= 3, FALSE) AS has_counts,
        coalesce(
            staged.staged_count >= $min_request_count AND staged.front_end_ratio >= $min_front_end_ratio
            AND staged.front_end_s >= $min_front_end_s,
            FALSE
        ) AS by_stages,
        -- Where stages are known, they say whether it is the front end; counts alone cannot tell it from the client's own pool.
        coalesce(
            flight.sent_count >= $min_request_count AND held.sample_count >= 3 AND coalesce(staged.staged_count, 0) < $min_request_count
            AND flight.in_flight_count >= $min_in_flight_times_ratio * held.held_count
            AND flight.in_flight_count - held.held_count >= $min_request_count
            AND held.pinned_ratio < $min_pinned_ratio,
            FALSE
        ) AS by_counts,
        [
            {'source_id': held.source_id, 'line_no': held.fullest_line},
            {'source_id': flight.source_id, 'line_no': flight.slowest_line},
            {'source_id': flight.source_id, 'line_no': flight.line_no}
        ] AS evidence
    FROM (SELECT DISTINCT run_id FROM source) AS runs
    LEFT JOIN staged ON runs.run_id = staged.run_id
    LEFT JOIN flight ON runs.run_id = flight.run_id
    LEFT JOIN held ON runs.run_id = held.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN (by_stages OR by_counts) AND (sends_images OR serves_images) THEN 'fired'
        WHEN
            NOT (by_stages OR by_counts) AND (has_stages OR (has_counts AND in_flight_count < $min_in_flight_times_ratio * held_count))
            THEN 'clear'
        ELSE 'not_evaluated'
    END AS outcome,
    CASE WHEN by_stages AND staged_count >= 30 THEN 'high' ELSE 'medium' END AS confidence,
    CASE
        WHEN by_stages THEN 0.99 * front_end_ratio
        WHEN by_counts THEN 0.99 * (1 - held_count / in_flight_count)
        ELSE 0.0
    END AS weight,
    from_ts,
    to_ts,
    evidence,
    CASE
        WHEN
            by_stages
            THEN 'rendering and tokenizing took '
                || round(front_end_s, 2)
                || ' s (median), '
                || round(100 * front_end_ratio)::INTEGER
                || ' % of all time to first token'
        WHEN
            by_counts
            THEN round(in_flight_count)::INTEGER
                || ' requests were in flight at the client on average, and at most '
                || held_count
                || ' of them running or waiting in the engine'
        WHEN
            has_stages
            THEN 'rendering and tokenizing took ' || round(100 * coalesce(front_end_ratio, 0))::INTEGER || ' % of all time to first token'
        ELSE 'the client had no more requests in flight than the engine shows'
    END AS form,
    front_end_ratio AS measured_front_end_ratio,
    front_end_s AS measured_front_end_s,
    in_flight_count AS measured_in_flight_count,
    held_count AS measured_held_count,
    $min_front_end_ratio AS threshold_front_end_ratio
FROM judged
