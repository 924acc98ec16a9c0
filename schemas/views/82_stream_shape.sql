CREATE VIEW _stream_shape AS
SELECT
    run_id,
    source_id,
    line_no,
    chunk_count,
    first_s,
    stream_s,
    len(gaps_s) AS gap_count,
    list_median(gaps_s) AS usual_gap_s,
    list_max(gaps_s) AS longest_gap_s
FROM (
    SELECT
        run_id,
        source_id,
        line_no,
        len(chunk_offset_s) AS chunk_count,
        chunk_offset_s[1] AS first_s,
        chunk_offset_s[-1] - chunk_offset_s[1] AS stream_s,
        list_filter(
            list_transform(range(2, len(chunk_offset_s) + 1), LAMBDA i: chunk_offset_s[i] - chunk_offset_s[i - 1]),
            LAMBDA gap_s: gap_s IS NOT NULL
        ) AS gaps_s
    FROM client_stream
);

COMMENT ON VIEW _stream_shape IS 'One row per stream: its chunks, how long after the request the first came, from there to the last, the gaps that are known, their median, the longest of them.';
