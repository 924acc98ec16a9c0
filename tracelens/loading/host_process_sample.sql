-- Rows of one host log: the cores that a process used come from its counter of CPU seconds where the file states none.
SELECT
    * REPLACE (
        coalesce(
            cpu_cores,
            CASE
                WHEN sample_ts > lag(sample_ts) OVER in_order AND cpu_s >= lag(cpu_s) OVER in_order
                    THEN (cpu_s - lag(cpu_s) OVER in_order) / epoch(sample_ts - lag(sample_ts) OVER in_order)
            END
        ) AS cpu_cores
    )
FROM part
WINDOW in_order AS (PARTITION BY host, process, position, pid ORDER BY line_no)
