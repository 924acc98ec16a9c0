CREATE VIEW prefix_sharing AS
WITH prompt AS (
    -- Of very many prompts the first 20,000: what can be shared shows long before.
    SELECT
        *,
        row_number() OVER (PARTITION BY source_id ORDER BY line_no, request_id) AS place
    FROM prompt_block
    WHERE len(chain) > 0
    QUALIFY place <= 20000
),

link AS (
    SELECT
        run_id,
        source_id,
        place,
        unnest(chain) AS print
    FROM prompt
),

passage AS (
    SELECT
        run_id,
        source_id,
        place,
        unnest(passage) AS print
    FROM prompt
),

first_link AS (
    SELECT
        run_id,
        source_id,
        print,
        min(place) AS first_place
    FROM link
    GROUP BY run_id, source_id, print
),

first_passage AS (
    SELECT
        run_id,
        source_id,
        print,
        min(place) AS first_place
    FROM passage
    GROUP BY run_id, source_id, print
),

link_count AS (
    SELECT
        link.run_id,
        link.source_id,
        link.place,
        count(*) AS block_count,
        count(*) FILTER (WHERE first_link.first_place < link.place) AS seen_count
    FROM link
    INNER JOIN first_link ON link.run_id = first_link.run_id AND link.source_id = first_link.source_id AND link.print = first_link.print
    GROUP BY link.run_id, link.source_id, link.place
),

passage_count AS (
    SELECT
        passage.run_id,
        passage.source_id,
        count(*) FILTER (WHERE passage.place > 1) AS passage_count,
        count(*) FILTER (WHERE first_passage.first_place < passage.place) AS seen_count
    FROM passage
    INNER JOIN first_passage
        ON
            passage.run_id = first_passage.run_id AND passage.source_id = first_passage.source_id
            AND passage.print = first_passage.print
    GROUP BY passage.run_id, passage.source_id
),

shared AS (
    SELECT
        prompt.run_id,
        prompt.source_id,
        min(prompt.line_no) AS first_line_no,
        list({'source_id': prompt.source_id, 'line_no': prompt.line_no} ORDER BY prompt.line_no)[:5] AS evidence,
        any_value(prompt.unit) AS unit,
        any_value(prompt.block_length) AS block_length,
        count(*) AS prompt_count,
        median(prompt.prompt_length) AS prompt_length_p50,
        sum(link_count.block_count)::BIGINT AS block_count,
        sum(link_count.seen_count) / sum(link_count.block_count) AS attainable_ratio,
        median(link_count.seen_count * prompt.block_length) FILTER (WHERE prompt.place > 1) AS parts_after
    FROM prompt
    INNER JOIN link_count
        ON prompt.run_id = link_count.run_id AND prompt.source_id = link_count.source_id AND prompt.place = link_count.place
    GROUP BY prompt.run_id, prompt.source_id
),

asked AS (
    SELECT
        run_id,
        sum(cached_input_tokens) / nullif(sum(input_tokens), 0) AS hit_ratio
    FROM request
    WHERE cached_input_tokens IS NOT NULL AND input_tokens IS NOT NULL
    GROUP BY run_id
),

sampled AS (
    SELECT
        run_id,
        arg_max(prefix_cache_hit_ratio, (source_id, line_no)) AS hit_ratio
    FROM engine_sample
    WHERE prefix_cache_hit_ratio IS NOT NULL
    GROUP BY run_id
)

SELECT
    shared.run_id,
    shared.source_id,
    shared.first_line_no,
    shared.evidence,
    shared.unit,
    shared.block_length,
    shared.prompt_count,
    shared.prompt_length_p50,
    shared.block_count,
    shared.attainable_ratio,
    shared.parts_after,
    passage_count.seen_count / nullif(passage_count.passage_count, 0) AS repeated_ratio,
    coalesce(asked.hit_ratio, sampled.hit_ratio) AS hit_ratio,
    CASE
        WHEN asked.hit_ratio IS NOT NULL THEN 'cached tokens of the requests'
        WHEN sampled.hit_ratio IS NOT NULL THEN 'last stats line (a window of requests)'
    END AS hit_basis
FROM shared
LEFT JOIN passage_count ON shared.run_id = passage_count.run_id AND shared.source_id = passage_count.source_id
LEFT JOIN asked ON shared.run_id = asked.run_id
LEFT JOIN sampled ON shared.run_id = sampled.run_id;

COMMENT ON VIEW prefix_sharing IS 'One row per source that has prompts: where they part, how much of them could come from a prefix cache in the order in which they came, and how much did.';
COMMENT ON COLUMN prefix_sharing.run_id IS 'Run.';
COMMENT ON COLUMN prefix_sharing.source_id IS 'Source that has the prompts.';
COMMENT ON COLUMN prefix_sharing.first_line_no IS 'Line of the first of them.';
COMMENT ON COLUMN prefix_sharing.evidence IS 'The first five of them: source and line.';
COMMENT ON COLUMN prefix_sharing.unit IS 'characters or tokens: what lengths are counted in.';
COMMENT ON COLUMN prefix_sharing.block_length IS 'Characters or tokens of a block.';
COMMENT ON COLUMN prefix_sharing.prompt_count IS 'Prompts of at least one whole block; of more than 20,000 the first ones.';
COMMENT ON COLUMN prefix_sharing.prompt_length_p50 IS 'Their median length.';
COMMENT ON COLUMN prefix_sharing.block_count IS 'Their blocks, at most 256 of a prompt.';
COMMENT ON COLUMN prefix_sharing.attainable_ratio IS 'Share of the blocks whose whole beginning an earlier prompt had: what a cache that forgets nothing would give, 0 to 1.';
COMMENT ON COLUMN prefix_sharing.parts_after IS 'Characters or tokens after which a prompt parts from all earlier ones, in whole blocks, the median.';
COMMENT ON COLUMN prefix_sharing.repeated_ratio IS 'Share of the passages (of all prompts but the first) that an earlier prompt had, wherever they stood: far above attainable_ratio where the same text comes after a difference. NULL where only token ids are known.';
COMMENT ON COLUMN prefix_sharing.hit_ratio IS 'Share of the prompt tokens that the prefix cache gave, 0 to 1.';
COMMENT ON COLUMN prefix_sharing.hit_basis IS 'Where that is from.';
