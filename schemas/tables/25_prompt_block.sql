CREATE TABLE prompt_block (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    request_id VARCHAR,
    unit VARCHAR NOT NULL,
    block_length BIGINT NOT NULL,
    prompt_length BIGINT NOT NULL,
    chain UBIGINT[],
    passage UBIGINT[]
);
COMMENT ON TABLE prompt_block IS 'One row per prompt that a source has: fingerprints that show which prompts begin alike, and no word of any. They are keyed with case_property prompt_key and compare within one source.';
COMMENT ON COLUMN prompt_block.run_id IS 'Run of the source.';
COMMENT ON COLUMN prompt_block.source_id IS 'Source that has the prompt.';
COMMENT ON COLUMN prompt_block.line_no IS 'Its line number, from 1.';
COMMENT ON COLUMN prompt_block.request_id IS 'Request, as the line names it.';
COMMENT ON COLUMN prompt_block.unit IS 'What blocks are counted in: characters of the text as the file has it, or tokens where it lists ids only.';
COMMENT ON COLUMN prompt_block.block_length IS 'Characters or tokens of a block: 64 or 16.';
COMMENT ON COLUMN prompt_block.prompt_length IS 'Characters or tokens of the whole prompt.';
COMMENT ON COLUMN prompt_block.chain IS 'One link per whole block, at most 256: two prompts have the same n-th link where their first n blocks are the same, as in vLLM''s prefix cache.';
COMMENT ON COLUMN prompt_block.passage IS 'One hash per passage (between line ends and full stops, 24 bytes at least), at most 256, whatever stands before it: the same text after a difference. NULL where only token ids are known.';
