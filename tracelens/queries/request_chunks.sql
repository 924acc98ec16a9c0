/*
The chunks with content of one request's stream, in seconds since it was sent, each with the gap before it. A gap is a stall
where it is both longer than a second and longer than ten times the median gap of the stream.
[params]
request = ""
run = ""
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
        offset_s - lag(offset_s) OVER arrival AS gap_s
    FROM chunk
    WHERE kind IN ('c', 't', 'e', '?')
    WINDOW arrival AS (PARTITION BY run_id ORDER BY offset_s)
),

judged AS (
    SELECT
        run_id,
        chunk_number,
        offset_s,
        gap_s,
        quantile_cont(gap_s, 0.5) OVER (PARTITION BY run_id) AS median_gap_s,
        max(gap_s) OVER (PARTITION BY run_id) AS longest_gap_s,
        gap_s > 1 AND gap_s > 10 * quantile_cont(gap_s, 0.5) OVER (PARTITION BY run_id) AS is_stall
    FROM gap
)

SELECT
    *,
    count(*) OVER stream AS chunk_count,
    count(*) FILTER (WHERE is_stall) OVER stream AS stall_count,
    max(gap_s) FILTER (WHERE is_stall) OVER stream AS longest_stall_s
FROM judged
WINDOW stream AS (PARTITION BY run_id)
ORDER BY run_id ASC, chunk_number ASC
