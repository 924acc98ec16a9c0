/*
The checklist before going live: each point yes, no or cannot tell, why, and what to switch on.
[params]
run = ""
*/
WITH sourced AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE clock <> 'none') AS clock_count,
        count(*) FILTER (WHERE contains(time_basis, 'UTC assumed') OR clock = 'relative') AS assumed_count
    FROM source
    WHERE ($run = '' OR run_id = $run)
    GROUP BY run_id
),

offsets AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE chosen_s IS NULL) AS open_count
    FROM clock_offset
    GROUP BY run_id
),

requested AS (
    SELECT
        run_id,
        count(*) AS request_count,
        count(*) FILTER (WHERE queue_s IS NOT NULL AND prefill_s IS NOT NULL) AS staged_count,
        count(*) FILTER (WHERE coalesce(client_ttft_s, ttft_s) IS NOT NULL AND tpot_s IS NOT NULL) AS apart_count,
        count(*) FILTER (WHERE streamed) AS streamed_count,
        count(*) FILTER (WHERE NOT streamed) AS whole_count,
        count(cached_input_tokens) AS cached_known_count,
        sum(cached_input_tokens) / nullif(sum(input_tokens) FILTER (WHERE cached_input_tokens IS NOT NULL), 0) AS cached_ratio
    FROM request
    GROUP BY run_id
),

hit AS (
    SELECT
        run_id,
        median(prefix_cache_hit_ratio) AS hit_ratio
    FROM engine_sample
    GROUP BY run_id
),

gpu AS (
    SELECT
        run_id,
        count(*) AS gpu_sample_count,
        count(dram_active_ratio) AS dram_count
    FROM gpu_sample
    GROUP BY run_id
),

setting AS (
    SELECT
        run_id,
        max(lower(value)) FILTER (WHERE key = 'is_moe') AS is_moe,
        max(lower(value)) FILTER (WHERE key = 'enable_prefix_caching') AS prefix_caching,
        max(amount) FILTER (WHERE key = 'long_prefill_token_threshold') AS long_prefill_tokens
    FROM run_setting
    GROUP BY run_id
),

known AS (
    SELECT
        sourced.*,
        coalesce(offsets.open_count, 0) AS open_count,
        coalesce(requested.request_count, 0) AS request_count,
        coalesce(requested.staged_count, 0) AS staged_count,
        coalesce(requested.apart_count, 0) AS apart_count,
        coalesce(requested.streamed_count, 0) AS streamed_count,
        coalesce(requested.whole_count, 0) AS whole_count,
        CASE WHEN requested.cached_known_count > 0 THEN requested.cached_ratio ELSE hit.hit_ratio END AS hit_ratio,
        coalesce(gpu.gpu_sample_count, 0) AS gpu_sample_count,
        coalesce(gpu.dram_count, 0) AS dram_count,
        setting.is_moe,
        setting.prefix_caching,
        setting.long_prefill_tokens,
        curve.slope_s_per_1k_tokens,
        curve.intercept_s,
        coalesce(curve.sample_count, 0) AS curve_count
    FROM sourced
    LEFT JOIN offsets ON sourced.run_id = offsets.run_id
    LEFT JOIN requested ON sourced.run_id = requested.run_id
    LEFT JOIN hit ON sourced.run_id = hit.run_id
    LEFT JOIN gpu ON sourced.run_id = gpu.run_id
    LEFT JOIN setting ON sourced.run_id = setting.run_id
    LEFT JOIN prompt_length_curve AS curve ON sourced.run_id = curve.run_id
),

point AS (
    SELECT
        run_id,
        unnest([
            {
                'point': 1,
                'question': 'Are the queue and prefill times of each request recorded?',
                'answer': CASE WHEN staged_count >= 0.9 * request_count AND request_count > 0 THEN 'yes' ELSE 'no' END,
                'why': format('known for {} of {} requests', staged_count, request_count),
                'switch_on': '--otlp-traces-endpoint URL (aborted requests leave no span), or --enable-per-request-metrics'
            },
            {
                'point': 2,
                'question': 'Is it known how TTFT grows with the length of the prompt?',
                'answer': CASE
                    WHEN slope_s_per_1k_tokens IS NULL THEN 'no'
                    WHEN curve_count < 30 THEN 'cannot tell'
                    ELSE 'yes'
                END,
                'why': CASE
                    WHEN slope_s_per_1k_tokens IS NULL THEN 'no TTFT with the tokens of its prompt, for prompts of several lengths'
                    ELSE format(
                            '{:.3f} s + {:.3f} s for each 1000 tokens, over {} requests', intercept_s, slope_s_per_1k_tokens, curve_count
                        )
                END,
                'switch_on': 'spans, or a client that notes TTFT and prompt tokens, for 30 requests or more of several lengths'
            },
            {
                'point': 3,
                'question': 'Are TTFT and TPOT looked at apart?',
                'answer': CASE WHEN apart_count > 0 THEN 'yes' ELSE 'no' END,
                'why': format('both are known for {} of {} requests', apart_count, request_count),
                'switch_on': 'a streaming client that stamps every chunk, or spans'
            },
            {
                'point': 4,
                'question': 'Are long prompts limited, or is the prefix cache on and effective?',
                'answer': CASE
                    WHEN long_prefill_tokens > 0 OR hit_ratio >= 0.1 THEN 'yes'
                    WHEN prefix_caching = 'false' OR hit_ratio < 0.1 THEN 'no'
                    ELSE 'cannot tell'
                END,
                'why': CASE
                    WHEN long_prefill_tokens > 0 THEN format('a step takes at most {:.0f} tokens of a long prompt', long_prefill_tokens)
                    WHEN prefix_caching = 'false' THEN 'prefix caching is off, and nothing limits long prompts'
                    WHEN hit_ratio IS NULL THEN 'no source says how often the prefix cache hits'
                    ELSE format('prefix cache hits {:.0f} % of the prompt tokens', 100 * hit_ratio)
                END,
                'switch_on': '--enable-prefix-caching with a fixed prefix in front, or --long-prefill-token-threshold'
            },
            {
                'point': 5,
                'question': 'For a mixture of experts: is memory-bandwidth activity recorded, not only utilisation?',
                'answer': CASE
                    WHEN dram_count > 0 OR is_moe = 'false' THEN 'yes'
                    WHEN is_moe = 'true' THEN 'no'
                    ELSE 'cannot tell'
                END,
                'why': CASE
                    WHEN dram_count > 0 THEN format('in {} of {} GPU samples', dram_count, gpu_sample_count)
                    WHEN is_moe = 'true' THEN format('a mixture of experts; none of {} GPU samples has it', gpu_sample_count)
                    WHEN is_moe = 'false' THEN 'the model is no mixture of experts'
                    ELSE 'not recorded, and no line says whether the model is a mixture of experts'
                END,
                'switch_on': 'dcgmi dmon -e 1002,1004,1005, or nvidia-smi dmon --gpm-metrics'
            },
            {
                'point': 6,
                'question': 'Does the client stream?',
                'answer': CASE
                    WHEN whole_count > 0 THEN 'no'
                    WHEN streamed_count > 0 THEN 'yes'
                    ELSE 'cannot tell'
                END,
                'why': CASE
                    WHEN streamed_count + whole_count = 0 THEN 'no client file says so'
                    ELSE format('{} requests streamed, {} did not', streamed_count, whole_count)
                END,
                'switch_on': '"stream": true, and a client file with the stamps of every chunk'
            },
            {
                'point': 7,
                'question': 'Are clocks and zones known?',
                'answer': CASE
                    WHEN clock_count = 0 THEN 'cannot tell'
                    WHEN assumed_count > 0 OR open_count > 0 THEN 'no'
                    ELSE 'yes'
                END,
                'why': CASE
                    WHEN clock_count = 0 THEN 'no source has stamps'
                    WHEN assumed_count > 0 THEN format('{} of {} sources leave out their zone or zero', assumed_count, clock_count)
                    WHEN open_count > 0 THEN format('{} pairs of clocks share no request', open_count)
                    ELSE 'every source states them, or shares requests with one that does'
                END,
                'switch_on': 'ingest --tz, --gpu-tz, --client-tz; ids that client and server share; nvidia-smi dmon -o DT'
            }
        ]) AS entry
    FROM known
)

SELECT
    run_id,
    entry.point AS point,
    entry.question AS question,
    entry.answer AS answer,
    entry.why AS why,
    CASE WHEN entry.answer <> 'yes' THEN entry.switch_on END AS switch_on
FROM point
ORDER BY run_id ASC, point ASC
