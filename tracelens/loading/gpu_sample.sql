-- Rows of one GPU log, in the order of its lines: ticks and runs of the tool are counted, and the hour that a wall clock
-- goes through twice is put in order.  A row's own cells say nothing of that; the rows around it do.
--
-- The parts come in file order, and windows without ORDER BY stream over them: a log of any length takes the same
-- memory.  Should rows ever come in another order, the load fails.  Joins do not keep the order of what they stream, so what all
-- rows are judged by is looked up in variables.
SET VARIABLE gpu_index_count = (SELECT count(gpu_index) FROM part);

-- What stands in the place of an index, in the order in which it came: a UUID, or the label of a MIG instance.
SET VARIABLE gpu_entities = (
    SELECT map(list(entity), list({'position': position, 'first_line_no': first_line_no}))
    FROM (
        SELECT
            entity,
            min(line_no) AS first_line_no,
            row_number() OVER (ORDER BY min(line_no)) - 1 AS position
        FROM (
            SELECT
                line_no,
                coalesce(gpu_uuid, regexp_extract(other, '"entity":"([^"]*)"', 1)) AS entity
            FROM part
            WHERE gpu_index IS NULL
        )
        WHERE entity <> ''
        GROUP BY entity
    )
);

CREATE OR REPLACE TEMP VIEW gpu_step AS
WITH named AS NOT MATERIALIZED (
    SELECT
        *,
        CASE
            WHEN gpu_index IS NULL THEN getvariable('gpu_entities')[coalesce(gpu_uuid, regexp_extract(other, '"entity":"([^"]*)"', 1))]
        END AS entity
    FROM part
),

ranked AS NOT MATERIALIZED (
    SELECT
        * EXCLUDE (entity),
        entity.position AS position,
        -- Tools print the GPUs of a tick in the order of their indices, so that is the order of a tick; without any
        -- index it is the order in which the entities came first.
        coalesce(gpu_index, CASE WHEN getvariable('gpu_index_count') = 0 THEN entity.first_line_no END) AS place,
        gpu_index IS NULL AND entity IS NULL AS is_unnumbered
    FROM named
),

passed AS NOT MATERIALIZED (
    SELECT
        *,
        arg_max(sample_ts, line_no) OVER so_far AS passed_ts,
        arg_max(place, line_no) OVER so_far AS passed_place,
        lag(line_no) OVER () AS passed_line_no,
        lag(segment) OVER () AS passed_layout,
        lag(sample_ts) OVER () AS passed_row_ts
    FROM ranked
    WINDOW so_far AS (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)  -- noqa: PRS, CP02
)

SELECT
    *,
    coalesce(error_s, 0) AS resolution_s,
    epoch(sample_ts - lag(passed_ts) OVER ()) AS step_s,
    coalesce(place <= lag(passed_place) OVER (), place IS NOT NULL) AS is_again,
    (segment IS DISTINCT FROM passed_layout) OR passed_line_no IS NULL AS is_new_layout
FROM passed;

SET VARIABLE gpu_pace = (
    SELECT
        {
            -- Seconds from tick to tick; NULL where no time is known.
            'tick_s': coalesce(
                median(step_s) FILTER (WHERE is_again AND step_s > 0),
                quantile_cont(step_s, 0.97) FILTER (WHERE step_s > 0)
            ),
            -- Where rows have nothing to tell GPUs by, n of them come at once, and one step in n is long.
            'burst_s': quantile_cont(step_s, 0.97) FILTER (WHERE is_unnumbered AND step_s > 0),
            'in_wall_time': any_value(source.clock IN ('local', 'yearless', 'dayless')),
            -- Whether any step may be a change of the hour (as hour_step below): where none is, the rows are not gone
            -- through once more for it.
            'has_hour_steps': coalesce(bool_or(step_s BETWEEN -3602 AND -3480 OR step_s BETWEEN 3598 AND 3720), FALSE)
        }
    FROM gpu_step
    LEFT JOIN source ON source.source_id = $source
);

WITH paced AS NOT MATERIALIZED (
    SELECT
        *,
        getvariable('gpu_pace') AS pace
    FROM gpu_step
),

told AS NOT MATERIALIZED (
    SELECT
        * EXCLUDE (pace),
        CASE
            WHEN NOT pace.in_wall_time THEN NULL
            -- An hour and a period: the same bounds as in ingest/parts.py, which says so in source.time_basis.
            WHEN step_s + 3600 BETWEEN -2 AND 120 THEN 'back'
            WHEN step_s - 3600 BETWEEN -2 AND 120 THEN 'forward'
        END AS hour_step,
        step_s < -2 - resolution_s OR step_s > greatest(3600, 100 * pace.tick_s) AS is_apart,
        CASE
            WHEN is_unnumbered THEN coalesce(step_s > pace.burst_s / 4 OR step_s < 0, pace.burst_s IS NULL)
            ELSE is_again OR coalesce(place IS NOT NULL AND step_s > greatest(pace.tick_s / 2, 0.1) + resolution_s, FALSE)
        END AS begins_tick
    FROM paced
),

begun AS NOT MATERIALIZED (
    SELECT
        *,
        is_new_layout OR coalesce(is_apart AND hour_step IS NULL, FALSE) AS begins_run
    FROM told
),

counted AS NOT MATERIALIZED (
    SELECT
        *,
        count(hour_step) OVER so_far AS hour_no,
        sum(begins_run::INTEGER) OVER so_far - 1 AS run_no,
        sum((begins_run OR begins_tick)::INTEGER) OVER so_far - 1 AS tick_no,
        row_number() OVER () AS row_no,
        lead(line_no) OVER () AS next_line_no,
        lead(sample_ts) OVER () AS next_row_ts
    FROM begun
    WINDOW so_far AS (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)  -- noqa: PRS, CP02
),

placed AS NOT MATERIALIZED (
    SELECT
        *,
        row_no - max(CASE WHEN begins_run OR begins_tick THEN row_no END) OVER so_far AS place_in_tick
    FROM counted
    WINDOW so_far AS (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)  -- noqa: PRS, CP02
),

hour_change AS (
    SELECT
        hour_no AS change_no,
        run_no AS change_run_no,
        hour_step AS change_step
    FROM counted
    WHERE getvariable('gpu_pace').has_hour_steps AND hour_step IS NOT NULL
)

SELECT
    placed.* EXCLUDE (
        tick, position, place, is_unnumbered, passed_ts, passed_place, passed_line_no, passed_layout, resolution_s, step_s, is_again,
        is_new_layout, hour_step, is_apart, begins_tick, begins_run, hour_no, run_no, tick_no, row_no, next_line_no, place_in_tick,
        passed_row_ts, next_row_ts
    ) REPLACE (
        -- Of an hour that comes twice, what lies before the step back is the earlier one.
        CASE WHEN change_step = 'back' THEN sample_ts - INTERVAL 1 HOUR ELSE sample_ts END AS sample_ts,
        -- GPUs that have no index are numbered as they come; MIG instances are none.
        coalesce(
            gpu_index,
            CASE WHEN is_unnumbered THEN place_in_tick WHEN gpu_uuid IS NOT NULL THEN position END
        )::INTEGER AS gpu_index,
        run_no::INTEGER AS segment
    ),
    CASE
        WHEN passed_line_no > line_no THEN error('parts of gpu_sample are not in the order of lines')::BIGINT
        -- Several stamps on one line: lines do not tell what belongs together.  Several GPUs with one stamp are one tick.
        WHEN line_no = passed_line_no AND (sample_ts IS DISTINCT FROM passed_row_ts) THEN NULL
        WHEN line_no = next_line_no AND (sample_ts IS DISTINCT FROM next_row_ts) THEN NULL
        ELSE tick_no
    END AS tick
FROM placed
LEFT JOIN hour_change ON placed.hour_no + 1 = hour_change.change_no AND placed.run_no = hour_change.change_run_no
