-- Which values are of one scrape.  Where a line between the scrapes tells the time, a new time is a new scrape; in a file
-- without times, a series that comes again begins the next one: the first series of the file is the one to look at.
-- Values that have times of their own (Prometheus' answers and dumps) are of one scrape where the time is the same.
--
-- Of a stamp before each line, a scrape has several: the first one is its time, and what they span its error.
--
-- Numbers that a server log states beside its stats line come this way too: they have no timing and are of no scrape.
WITH every AS (
    SELECT NULL::VARCHAR AS timing
    WHERE FALSE
    UNION ALL BY NAME
    SELECT *
    FROM part
),

written AS (
    SELECT
        *,
        CASE WHEN timing = 'line' THEN sample_ts END AS told_ts
    FROM every
),

first_series AS (
    SELECT
        arg_min(name, line_no) AS name,
        arg_min(labels, line_no) AS labels
    FROM written
),

beginning AS (
    SELECT min(line_no) AS first_line_no
    FROM written
    WHERE timing <> 'own'
    GROUP BY told_ts
    UNION
    SELECT line_no AS first_line_no
    FROM (
        SELECT
            written.line_no,
            row_number() OVER (PARTITION BY written.told_ts ORDER BY written.line_no) AS occurrence
        FROM written
        INNER JOIN first_series
            ON written.name = first_series.name AND written.labels = first_series.labels
        WHERE written.timing <> 'own'
    )
    WHERE occurrence > 1
),

numbered AS (
    SELECT
        first_line_no,
        row_number() OVER (ORDER BY first_line_no) - 1 AS scrape_index
    FROM beginning
),

instant AS (
    SELECT
        sample_ts,
        row_number() OVER (ORDER BY sample_ts) - 1 AS scrape_index
    FROM (SELECT DISTINCT sample_ts FROM written WHERE timing = 'own')
),

counted AS (
    SELECT
        written.* EXCLUDE (told_ts, scrape_index),
        coalesce(instant.scrape_index, numbered.scrape_index) AS scrape_index
    FROM written
    ASOF LEFT JOIN numbered ON written.line_no >= numbered.first_line_no
    LEFT JOIN instant
        ON written.timing = 'own' AND written.sample_ts IS NOT DISTINCT FROM instant.sample_ts
),

span AS (
    SELECT
        scrape_index,
        min(sample_ts) AS first_ts,
        epoch(max(sample_ts) - min(sample_ts)) AS span_s
    FROM counted
    WHERE timing = 'prefix'
    GROUP BY scrape_index
)

SELECT
    counted.* EXCLUDE (timing) REPLACE (
        coalesce(span.first_ts, counted.sample_ts) AS sample_ts,
        counted.error_s + coalesce(span.span_s, 0) AS error_s
    )
FROM counted
LEFT JOIN span ON counted.scrape_index = span.scrape_index
