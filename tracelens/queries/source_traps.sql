/*
What the numbers of each file do not mean, though they look it: TTFTs that begin or stop elsewhere, clocks without a zero,
means over a window, load that waited for answers. `words` say what was seen in the file, `meaning` what follows for its numbers.
[params]
run = ""
*/
WITH client AS (
    SELECT
        source_id,
        count(*) AS row_count,
        count(*) FILTER (WHERE client_ttft_kind = 'role') AS role_count,
        median(client_ttft_s - client_reported_ttft_s) FILTER (WHERE client_ttft_kind = 'role') AS role_early_s,
        count(*) FILTER (WHERE client_ttft_kind IN ('first_byte', 'headers')) AS byte_count,
        count(*) FILTER (WHERE client_ttft_kind = 'whole_response') AS whole_count,
        count(*) FILTER (WHERE streamed = FALSE) AS whole_answer_count,
        count(client_wait_s) AS wait_count,
        quantile_cont(client_wait_s, 0.95) AS wait_p95_s,
        median(client_e2e_s) AS e2e_p50_s,
        count(*) FILTER (WHERE output_tokens_basis IN ('requested', 'chunks')) AS guessed_count
    FROM client_request
    GROUP BY source_id
),

server AS (
    SELECT
        source_id,
        any_value(run_id) AS run_id,
        count(*) FILTER (WHERE measured_by = 'response' AND prefill_s IS NOT NULL) AS response_count,
        count(ttft_s) FILTER (WHERE measured_by <> 'response') AS ttft_count
    FROM server_request
    GROUP BY source_id
),

engine AS (
    SELECT
        source_id,
        count(prompt_tps) + count(generation_tps) AS rate_count,
        count(prefix_cache_hit_ratio) AS hit_count
    FROM engine_sample
    GROUP BY source_id
),

gpu AS (
    SELECT
        source_id,
        count(sm_ratio) AS util_count,
        count(sm_active_ratio) + count(dram_active_ratio) AS active_count
    FROM gpu_sample
    GROUP BY source_id
),

histogram AS (
    SELECT
        source_id,
        count(DISTINCT name) AS name_count
    FROM metric_sample
    WHERE name LIKE '%\_bucket' ESCAPE '\'
    GROUP BY source_id
),

found AS (
    SELECT
        source_id,
        'TTFT stops at the role chunk' AS trap,
        format('{} of {} requests', role_count, row_count)
        || coalesce(format(', {:.0f} ms before the first content by median', 1000 * role_early_s), '') AS words,
        CASE
            WHEN role_early_s < 0.001
                THEN 'harmless in this file: the role chunk came with the first token (vLLM V1); of other servers it may come at once'
            ELSE 'client_reported_ttft_s is too small; client_ttft_s goes to the first content, and is empty where no chunk tells it'
        END AS meaning
    FROM client
    WHERE role_count > 0
    UNION ALL
    SELECT
        source_id,
        'TTFT stops at the first byte' AS trap,
        format('{} of {} requests: headers or first byte of the body', byte_count, row_count) AS words,
        'headers leave before the queue: this time holds network and API server, and neither queue nor prefill' AS meaning
    FROM client
    WHERE byte_count > 0
    UNION ALL
    SELECT
        source_id,
        'TTFT is the whole answer' AS trap,
        format('{} of {} requests', greatest(whole_count, whole_answer_count), row_count) AS words,
        'not streamed: no first token was seen; what it calls TTFT is the end-to-end time' AS meaning
    FROM client
    WHERE whole_count > 0 OR whole_answer_count >= 0.9 * row_count
    UNION ALL
    SELECT
        source_id,
        'TTFT starts at scheduling' AS trap,
        format('metrics in {} answers', response_count) AS words,
        'vLLM''s time_to_first_token_ms in an answer leaves the queue out: it is kept as prefill_s, not as a TTFT' AS meaning
    FROM server
    WHERE response_count > 0
    UNION ALL
    SELECT
        server.source_id,
        'two TTFTs with two beginnings' AS trap,
        'a client''s TTFT begins as it sends, this one as the server '
        || CASE
            WHEN meaning.arrival_includes_tokenize THEN 'takes the request in (before tokenization)'
            WHEN NOT meaning.arrival_includes_tokenize THEN 'has tokenized the prompt (this version)'
            ELSE 'stamps the arrival (before or after tokenization: the version is not known)'
        END AS words,
        'they differ by network and front end, which is no error: compare stages (request_stage), not the two' AS meaning
    FROM server
    LEFT JOIN _server_meaning AS meaning ON server.run_id = meaning.run_id
    WHERE server.ttft_count > 0
        AND server.run_id IN (SELECT c.run_id FROM client_request AS c WHERE c.client_ttft_s IS NOT NULL)
    UNION ALL
    SELECT
        source_id,
        'no epoch' AS trap,
        time_basis AS words,
        'a monotonic clock (perf_counter): durations hold, times of day only as far as shared requests place them' AS meaning
    FROM source
    WHERE clock = 'relative'
    UNION ALL
    SELECT
        source_id,
        'means over a window' AS trap,
        'tokens/s are means since the line before (10 s), running and waiting the state at the line'
        || CASE WHEN hit_count > 0 THEN ', prefix hits those of the last 1,000 requests' ELSE '' END AS words,
        'what is shorter than a window does not show; one line is no rate of one request' AS meaning
    FROM engine
    WHERE rate_count > 0
    UNION ALL
    SELECT
        source_id,
        'utilisation is time, not work' AS trap,
        'sm is the share of the last sample period in which any kernel ran'
        || CASE WHEN active_count = 0 THEN '; nothing says how busy they were (GPM, DCGM)' ELSE '' END AS words,
        '100 % can be one small kernel: judge by power, tensor and DRAM activity' AS meaning
    FROM gpu
    WHERE util_count > 0
    UNION ALL
    SELECT
        source_id,
        'quantiles of a histogram' AS trap,
        format('{} histograms', name_count) AS words,
        'a quantile lies between two bucket edges, anywhere' AS meaning
    FROM histogram
    UNION ALL
    SELECT
        source_id,
        'coordinated omission' AS trap,
        format('sent later than planned: 95th percentile {:.3f} s, end to end {:.3f} s by median', wait_p95_s, e2e_p50_s) AS words,
        'users would have waited that long too: add client_wait_s to TTFT, or the slow times are left out' AS meaning
    FROM client
    WHERE wait_p95_s > 0.1 * e2e_p50_s AND wait_count >= 10
    UNION ALL
    SELECT
        source_id,
        'planned times not recorded' AS trap,
        format('{} requests with the time they were sent, none with the time they were due', row_count) AS words,
        'whether the client held requests back while the server was slow (coordinated omission) cannot be told' AS meaning
    FROM client
    WHERE wait_count = 0 AND row_count >= 10
    UNION ALL
    SELECT
        source_id,
        'output tokens not counted' AS trap,
        format('{} of {} requests: what was asked for, or chunks', guessed_count, row_count) AS words,
        'TPOT and tokens/s rest on a guess; record usage (stream_options.include_usage)' AS meaning
    FROM client
    WHERE guessed_count > 0
    UNION ALL
    SELECT
        source_id,
        'no ids' AS trap,
        verdict AS words,
        CASE
            WHEN linked_count > 0 THEN 'stages that join the two sides are derived'
            ELSE 'its rows stand for themselves: no queue, no prefill, no network'
        END AS meaning
    FROM client_match
    UNION ALL
    SELECT
        source_id,
        'zone not known' AS trap,
        verdict AS words,
        CASE
            WHEN low_s IS NOT NULL THEN 'its samples are laid beside requests by that offset; its stamps stay as they are'
            ELSE 'its samples may stand beside the wrong requests'
        END AS meaning
    FROM gpu_alignment
    WHERE is_needed
    UNION ALL
    SELECT
        source_id,
        'zone not known' AS trap,
        time_basis AS words,
        'its lines may be whole hours beside those of other files' AS meaning
    FROM source
    WHERE side <> 'gpu' AND contains(time_basis, 'UTC assumed')
        -- Shared requests lay it beside a clock that has a zone.
        AND source_id NOT IN (SELECT server_source_id FROM _clock_line WHERE is_known AND NOT placed_by_nesting)
)

SELECT
    source.run_id,
    source.source_id,
    source.path,
    found.trap,
    found.words,
    found.meaning
FROM found
INNER JOIN source ON found.source_id = source.source_id
WHERE ($run = '' OR source.run_id = $run)
ORDER BY source.run_id ASC, source.source_id ASC, found.trap ASC
