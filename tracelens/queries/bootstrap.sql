/*
Draws from the bootstrap distribution of each measure's quantiles and mean, for the intervals of a comparison.
The quantile of a resample is an order statistic of the sample whose rank is binomial: drawing that rank (here by its normal limit) gives
the same distribution without resampling. Means are drawn by their standard error. The draws are a fixed, evenly spread sequence, another
one for each side (a or b), so that the same case always gives the same interval. Fewer than 5 requests give no draws.
[params]
run = ""
side = "a"
draws = 1000
*/
WITH listed AS (
    SELECT
        run_id,
        unnest([
            {'place': 1, 'measure': 'ttft', 'measure_s': coalesce(client_ttft_s, ttft_s)},
            {'place': 2, 'measure': 'tpot', 'measure_s': tpot_s},
            {'place': 3, 'measure': 'e2e', 'measure_s': coalesce(client_e2e_s, e2e_s)}
        ]) AS piece
    FROM request
    WHERE ($run = '' OR run_id = $run)
    UNION ALL
    SELECT
        run_id,
        {'place': 10 + stage_index, 'measure': stage, 'measure_s': duration_s} AS piece
    FROM request_stage
    WHERE ($run = '' OR run_id = $run)
),

collected AS (
    SELECT
        run_id,
        piece.place AS place,
        piece.measure AS measure,
        list(piece.measure_s ORDER BY piece.measure_s) AS sorted_s,
        count(*) AS known_count,
        avg(piece.measure_s) AS mean_s,
        coalesce(stddev_samp(piece.measure_s), 0) AS deviation_s
    FROM listed
    WHERE piece.measure_s IS NOT NULL
    GROUP BY run_id, piece.place, piece.measure
),

-- Points of a sequence that fills the square evenly (Roberts), turned into standard normal numbers (Box and Muller).
point AS (
    SELECT
        greatest((0.5 + draw * CASE $side WHEN 'a' THEN 0.8566748838545029 ELSE 0.6287067210378087 END) % 1, 1e-9) AS u,
        (0.5 + draw * CASE $side WHEN 'a' THEN 0.733891856627126 ELSE 0.5385972572236101 END) % 1 AS v
    FROM (SELECT unnest(range(1, $draws + 1)) AS draw)
),

normal AS (
    SELECT list(sqrt(-2 * ln(u)) * cos(2 * pi() * v)) AS z FROM point
),

statistic AS (
    SELECT
        collected.*,
        unnest([
            {'order': 1, 'name': 'p50', 'quantile': 0.5},
            {'order': 2, 'name': 'p90', 'quantile': 0.9},
            {'order': 3, 'name': 'p99', 'quantile': 0.99},
            {'order': 4, 'name': 'mean', 'quantile': NULL}
        ]) AS wanted
    FROM collected
)

SELECT
    statistic.run_id,
    statistic.measure,
    statistic.wanted.name AS statistic,
    CASE
        WHEN statistic.wanted.quantile IS NULL THEN statistic.mean_s
        ELSE
            -- Between two order statistics, as quantile_cont has it.
            statistic.sorted_s[(floor((statistic.known_count - 1) * statistic.wanted.quantile) + 1)::BIGINT]
            + (
                statistic.sorted_s[(ceil((statistic.known_count - 1) * statistic.wanted.quantile) + 1)::BIGINT]
                - statistic.sorted_s[(floor((statistic.known_count - 1) * statistic.wanted.quantile) + 1)::BIGINT]
            ) * ((statistic.known_count - 1) * statistic.wanted.quantile - floor((statistic.known_count - 1) * statistic.wanted.quantile))
    END AS measured_s,
    statistic.known_count,
    CASE
        WHEN statistic.known_count < 5 THEN []
        WHEN statistic.wanted.quantile IS NULL
            THEN list_transform(normal.z, LAMBDA x: statistic.mean_s + x * statistic.deviation_s / sqrt(statistic.known_count))
        ELSE
            list_transform(
                normal.z,
                LAMBDA x: statistic.sorted_s[
                    greatest(
                        1,
                        least(
                            statistic.known_count,
                            round(
                                statistic.known_count * statistic.wanted.quantile + 0.5
                                + x * sqrt(statistic.known_count * statistic.wanted.quantile * (1 - statistic.wanted.quantile))
                            )
                        )
                    )::BIGINT
                ]
            )
    END AS draws_s
FROM statistic
CROSS JOIN normal
ORDER BY statistic.run_id ASC, statistic.place ASC, statistic.wanted.order ASC
