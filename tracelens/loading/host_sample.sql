-- Rows of one host log: the share of busy CPU time comes from counters where the file states none.  A counter that goes back
-- (a reboot) or stands still tells nothing.
SELECT
    * REPLACE (
        coalesce(
            cpu_ratio,
            CASE
                WHEN cpu_total_ticks > lag(cpu_total_ticks) OVER in_order AND cpu_busy_ticks >= lag(cpu_busy_ticks) OVER in_order
                    THEN
                        (cpu_busy_ticks - lag(cpu_busy_ticks) OVER in_order)
                        / (cpu_total_ticks - lag(cpu_total_ticks) OVER in_order)
            END
        ) AS cpu_ratio
    )
FROM part
WINDOW in_order AS (PARTITION BY host ORDER BY line_no)
