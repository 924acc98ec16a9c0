-- A GPU log shares no event with a server: its stamps are local, and where neither zone nor date is known the only tie is
-- that GPUs are busy while requests run.  Trials on logs cut to 20 minutes and more found no wrong offset where the best
-- correlation was 0.2 or more and 0.05 ahead of the next; shorter ones were wrong up to one time in three.
CREATE VIEW gpu_alignment AS
WITH gpu_source AS (
    SELECT
        source.run_id,
        source.source_id,
        source.clock,
        contains(source.time_basis, 'UTC assumed') OR source.clock = 'none' AS is_assumed,
        min(sample.sample_ts) AS first_ts,
        max(sample.sample_ts) AS last_ts,
        coalesce(stddev_pop(sample.sm_ratio), 0) >= 0.05 OR count(sample.power_w) = 0 AS sm_moves
    FROM source
    LEFT JOIN gpu_sample AS sample ON source.source_id = sample.source_id
    WHERE source.side = 'gpu'
    GROUP BY ALL
),

-- Running requests: as the stats lines say, else from the spans' beginnings and ends.
counted AS (
    SELECT
        run_id,
        epoch(sample_ts) AS at_s,
        epoch(sample_ts) + 15 AS until_s,
        sum(running_count) AS running_count
    FROM engine_sample
    WHERE sample_ts IS NOT NULL AND running_count IS NOT NULL AND run_id IN (SELECT gpu_source.run_id FROM gpu_source)
    GROUP BY run_id, sample_ts
),

come_and_gone AS (
    SELECT
        run_id,
        unnest([{'at_s': epoch(arrival_ts), 'step': 1}, {'at_s': epoch(arrival_ts) + e2e_s, 'step': -1}]) AS turn
    FROM server_request
    WHERE measured_by IN ('span', 'log') AND arrival_ts IS NOT NULL AND e2e_s BETWEEN 0 AND 1e6
        AND run_id IN (SELECT gpu_source.run_id FROM gpu_source)
        AND run_id NOT IN (SELECT counted.run_id FROM counted)
),

running AS (
    SELECT
        run_id,
        at_s,
        least(until_s, lead(at_s) OVER (PARTITION BY run_id ORDER BY at_s)) AS until_s,
        running_count
    FROM counted
    UNION ALL
    SELECT
        run_id,
        turn.at_s AS at_s,
        lead(turn.at_s) OVER in_time AS until_s,
        sum(turn.step) OVER in_time AS running_count
    FROM come_and_gone
    WINDOW in_time AS (PARTITION BY run_id ORDER BY turn.at_s ASC, turn.step DESC ROWS UNBOUNDED PRECEDING)
),

server_span AS (
    SELECT
        run_id,
        min(at_s) AS first_s,
        max(at_s) AS last_s
    FROM running
    GROUP BY run_id
),

asked AS (
    SELECT
        gpu_source.*,
        server_span.first_s,
        server_span.last_s,
        gpu_source.is_assumed
        OR coalesce(epoch(gpu_source.first_ts) > server_span.last_s OR epoch(gpu_source.last_ts) < server_span.first_s, FALSE)
            AS is_needed,
        -- Two hours are told apart at 5 s; longer logs more coarsely, so that the work stays the same.
        (5 * ceil(greatest(
            1, least(epoch(gpu_source.last_ts - gpu_source.first_ts), server_span.last_s - server_span.first_s) / 7200
        )))::BIGINT AS grid_s
    FROM gpu_source
    LEFT JOIN server_span ON gpu_source.run_id = server_span.run_id
),

gpu_slot AS (
    SELECT
        asked.run_id,
        asked.source_id,
        floor(epoch(sample.sample_ts) / asked.grid_s)::BIGINT AS slot,
        avg(CASE WHEN asked.sm_moves THEN sample.sm_ratio ELSE sample.power_w END) AS activity
    FROM asked
    INNER JOIN gpu_sample AS sample ON asked.source_id = sample.source_id
    WHERE asked.is_needed AND asked.grid_s IS NOT NULL AND sample.sample_ts IS NOT NULL
    GROUP BY ALL
    HAVING activity IS NOT NULL
),

server_slot AS (
    SELECT
        source_id,
        slot,
        avg(running_count) AS activity
    FROM (
        SELECT
            asked.source_id,
            running.running_count,
            unnest(range(
                floor(running.at_s / asked.grid_s)::BIGINT,
                floor(least(running.until_s, running.at_s + 3600) / asked.grid_s)::BIGINT + 1
            )) AS slot
        FROM asked
        INNER JOIN running ON asked.run_id = running.run_id
        WHERE asked.is_needed AND running.until_s IS NOT NULL
    )
    GROUP BY source_id, slot
),

gpu_extent AS (
    SELECT
        run_id,
        source_id,
        count(*) AS slot_count,
        min(slot) AS first_slot,
        max(slot) AS last_slot
    FROM gpu_slot
    GROUP BY run_id, source_id
),

server_extent AS (
    SELECT
        source_id,
        count(*) AS slot_count,
        min(slot) AS first_slot,
        max(slot) AS last_slot
    FROM server_slot
    GROUP BY source_id
),

extent AS (
    SELECT
        asked.source_id,
        asked.grid_s,
        gpu_extent.slot_count AS gpu_count,
        server_extent.slot_count AS server_count,
        server_extent.first_slot - gpu_extent.last_slot AS lowest_lag,
        server_extent.last_slot - gpu_extent.first_slot AS highest_lag
    FROM asked
    INNER JOIN gpu_extent ON asked.source_id = gpu_extent.source_id
    INNER JOIN server_extent ON asked.source_id = server_extent.source_id
),

-- Zones are multiples of 15 minutes from -14 to +14 h; clocks are off by up to two minutes.
zone AS (
    SELECT unnest(range(-56, 57)) * 900 AS zone_s
),

aside AS (
    SELECT unnest(range(-24, 25)) AS step
),

lag AS (
    SELECT DISTINCT
        extent.source_id,
        extent.grid_s,
        extent.gpu_count,
        extent.server_count,
        round(zone.zone_s / extent.grid_s)::BIGINT + aside.step AS lag
    FROM extent
    CROSS JOIN zone
    INNER JOIN aside ON abs(aside.step) * extent.grid_s <= 120
    WHERE round(zone.zone_s / extent.grid_s)::BIGINT + aside.step BETWEEN extent.lowest_lag AND extent.highest_lag
),

correlated AS (
    SELECT
        lag.source_id,
        lag.grid_s,
        lag.lag * lag.grid_s AS lag_s,
        count(*) * lag.grid_s AS overlap_s,
        CASE
            WHEN stddev_pop(gpu_slot.activity) > 0 AND stddev_pop(server_slot.activity) > 0
                THEN corr(gpu_slot.activity, server_slot.activity)
        END AS correlation
    FROM lag
    INNER JOIN gpu_slot ON lag.source_id = gpu_slot.source_id
    INNER JOIN server_slot ON lag.source_id = server_slot.source_id AND gpu_slot.slot + lag.lag = server_slot.slot
    GROUP BY lag.source_id, lag.grid_s, lag.lag, lag.gpu_count, lag.server_count
    HAVING count(*) * lag.grid_s >= 1200 AND count(*) >= 0.5 * least(lag.gpu_count, lag.server_count)
),

best AS (
    SELECT
        source_id,
        max(overlap_s) AS longest_overlap_s,
        max(correlation) AS correlation,
        arg_max(lag_s, correlation) AS lag_s
    FROM correlated
    GROUP BY source_id
),

placed AS (
    SELECT
        best.source_id,
        best.longest_overlap_s,
        best.correlation,
        best.lag_s,
        max(correlated.correlation) FILTER (WHERE abs(correlated.lag_s - best.lag_s) > 60) AS rival_correlation,
        stddev_pop(correlated.correlation) FILTER (WHERE abs(correlated.lag_s - best.lag_s) > 60) AS spread,
        arg_max(correlated.lag_s, correlated.correlation) FILTER (WHERE abs(correlated.lag_s - best.lag_s) > 60) AS rival_lag_s,
        min(correlated.lag_s - correlated.grid_s) FILTER (
            WHERE abs(correlated.lag_s - best.lag_s) <= 60 AND correlated.correlation > best.correlation - 0.05
        ) AS low_s,
        max(correlated.lag_s + correlated.grid_s) FILTER (
            WHERE abs(correlated.lag_s - best.lag_s) <= 60 AND correlated.correlation > best.correlation - 0.05
        ) AS high_s
    FROM best
    INNER JOIN correlated ON best.source_id = correlated.source_id
    GROUP BY ALL
),

-- Two loads that have nothing to do with each other correlate too, the more the shorter the time and the longer their
-- bursts.  Of 24 such pairs half passed the two thresholds alone, none this third one: three times the spread of the
-- correlations at all other offsets, or of bursts of a minute.
weighed AS (
    SELECT
        *,
        correlation - coalesce(rival_correlation, 0) AS lead,
        greatest(coalesce(spread, 0), sqrt(60 / longest_overlap_s)) AS chance_correlation
    FROM placed
),

judged AS (
    SELECT
        asked.*,
        weighed.* EXCLUDE (source_id),
        asked.is_needed AND weighed.correlation >= 0.2 AND weighed.lead >= 0.05
        AND weighed.correlation >= 3 * weighed.chance_correlation AS is_aligned
    FROM asked
    LEFT JOIN weighed ON asked.source_id = weighed.source_id
)

SELECT
    run_id,
    source_id,
    is_needed,
    CASE WHEN is_aligned THEN low_s::DOUBLE END AS low_s,
    CASE WHEN is_aligned THEN high_s::DOUBLE END AS high_s,
    correlation,
    lead,
    chance_correlation,
    longest_overlap_s::DOUBLE AS overlap_s,
    CASE
        WHEN NOT is_needed AND clock = 'utc' THEN 'not needed: its stamps are instants'
        WHEN NOT is_needed THEN 'not needed: its zone was given, and it overlaps what the server logged'
        WHEN is_aligned
            THEN format(
                    'aligned by activity: the server is {:.0f} s ahead of this log (correlation {:.2f}, {:.2f} ahead of any other offset)',
                    (low_s + high_s) / 2.0, correlation, lead
                )
        ELSE 'cannot align: ' || CASE
                WHEN first_ts IS NULL THEN 'it has no stamps'
                WHEN first_s IS NULL THEN 'nothing says how many requests ran (stats lines, spans)'
                WHEN longest_overlap_s IS NULL THEN 'fewer than 20 minutes in common with what the server logged'
                WHEN correlation IS NULL THEN 'the GPUs'' activity, or the number of running requests, never changes'
                WHEN correlation < 0.2 OR (lead >= 0.05 AND correlation < 3 * chance_correlation)
                    THEN format(
                            'GPUs and running requests do not move together (correlation {:.2f}, {:.2f} is needed)',
                            correlation, greatest(0.2, 3 * chance_correlation)
                        )
                ELSE format(
                        'offsets of {:.0f} s and {:.0f} s fit alike (correlation {:.2f} and {:.2f})',
                        lag_s::DOUBLE, rival_lag_s::DOUBLE, correlation, rival_correlation
                    )
            END || '; say the zone with --gpu-tz (the day with --date), or record it: TZ=UTC nvidia-smi dmon -o DT'
    END AS verdict
FROM judged;
COMMENT ON VIEW gpu_alignment IS 'One row per GPU log: where its zone or date is not known (or it lies outside the server''s log), whether its activity places it beside the running requests. Stamps are never rewritten.';
COMMENT ON COLUMN gpu_alignment.run_id IS 'Run.';
COMMENT ON COLUMN gpu_alignment.source_id IS 'The GPU log.';
COMMENT ON COLUMN gpu_alignment.is_needed IS 'Whether its stamps leave the zone open (UTC was assumed), or do not overlap the server''s.';
COMMENT ON COLUMN gpu_alignment.low_s IS 'Lower end of server clock less the log''s stamps, seconds; NULL where it cannot be aligned, or need not be.';
COMMENT ON COLUMN gpu_alignment.high_s IS 'Upper end, seconds.';
COMMENT ON COLUMN gpu_alignment.correlation IS 'Correlation of sm (power where sm never moves) with running requests at the best offset; aligned from 0.2 on. Offsets tried: multiples of 15 minutes, two minutes either way.';
COMMENT ON COLUMN gpu_alignment.lead IS 'How far it is ahead of the best offset more than a minute away; aligned from 0.05 on.';
COMMENT ON COLUMN gpu_alignment.chance_correlation IS 'Correlation that loads without anything in common have in this time; aligned from three times that on.';
COMMENT ON COLUMN gpu_alignment.overlap_s IS 'Longest time in common at any offset, seconds; below 20 minutes nothing is tried.';
COMMENT ON COLUMN gpu_alignment.verdict IS 'aligned, not needed, or why it cannot be and what would settle it.';
