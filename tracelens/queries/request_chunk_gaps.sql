/*
The longest gaps in one request's stream: the time between two chunks with content, as the client saw them arrive.
[params]
request = ""
run = ""
top = 5
*/
WITH me AS MATERIALIZED (
    SELECT *
    FROM _request_called($request, $run)
),

bound AS (
    SELECT
        min(client_line_no) AS low_no,
        max(client_line_no) AS high_no
    FROM me
),

chunk AS (
    SELECT
        stream.run_id,
        stream.source_id,
        stream.line_no,
        me.client_sent_ts,
        unnest(stream.chunk_offset_s)::DOUBLE AS offset_s,
        unnest(string_split(coalesce(stream.chunk_kind, repeat('?', len(stream.chunk_offset_s))), '')) AS kind
    FROM client_stream AS stream
    INNER JOIN me
        ON stream.run_id = me.run_id AND stream.source_id = me.client_source_id AND stream.line_no = me.client_line_no
    -- So that the lists of other streams are not read.
    WHERE stream.line_no >= (SELECT low_no FROM bound) -- noqa: RF02
        AND stream.line_no <= (SELECT high_no FROM bound) -- noqa: RF02
),

gap AS (
    SELECT
        *,
        row_number() OVER arrival AS chunk_number,
        lag(offset_s) OVER arrival AS before_s,
        offset_s - lag(offset_s) OVER arrival AS gap_s
    FROM chunk
    WHERE kind IN ('c', 't', 'e', '?')
    WINDOW arrival AS (PARTITION BY run_id ORDER BY offset_s)
)

SELECT
    gap.run_id,
    gap.chunk_number,
    gap.gap_s,
    gap.before_s AS after_sent_s,
    gap.client_sent_ts + to_microseconds((gap.before_s * 1e6)::BIGINT) AS from_ts,
    quantile_cont(gap.gap_s, 0.5) OVER (PARTITION BY gap.run_id) AS median_gap_s,
    count(*) OVER (PARTITION BY gap.run_id) AS gap_count,
    source.path,
    gap.line_no
FROM gap
INNER JOIN source ON gap.source_id = source.source_id
WHERE gap.gap_s IS NOT NULL
ORDER BY gap.run_id ASC, gap.gap_s DESC, gap.chunk_number ASC
LIMIT $top
