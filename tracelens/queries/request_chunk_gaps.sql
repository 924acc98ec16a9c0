/*
The longest gaps in one request's stream: the time between two chunks with content, as the client saw them arrive.
[params]
request = ""
run = ""
top = 5
*/
WITH chunk AS (
    SELECT
        stream.run_id,
        stream.source_id,
        stream.line_no,
        r.client_sent_ts,
        unnest(stream.chunk_offset_s)::DOUBLE AS offset_s,
        unnest(string_split(coalesce(stream.chunk_kind, repeat('?', len(stream.chunk_offset_s))), '')) AS kind
    FROM client_stream AS stream
    INNER JOIN request AS r
        ON stream.run_id = r.run_id AND stream.source_id = r.client_source_id AND stream.line_no = r.client_line_no
    WHERE r.request_id = $request AND ($run = '' OR stream.run_id = $run)
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
