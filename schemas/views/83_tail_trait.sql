-- Who is slow, and what is known of each: below tail_excess and tail_factors.

-- Two-sided p of a standard normal z (Numerical Recipes' erfcc: relative error below 1.2e-7).
CREATE MACRO _erfc_power(t) AS
(
    -1.26551223
    + 1.00002368 * t
    + 0.37409196 * t ** 2
    + 0.09678418 * t ** 3
    - 0.18628806 * t ** 4
    + 0.27886807 * t ** 5
    - 1.13520398 * t ** 6
    + 1.48851587 * t ** 7
    - 0.82215223 * t ** 8
    + 0.17087277 * t ** 9
);
CREATE MACRO _two_sided_p(z) AS
least(1.0, exp(_erfc_power(1 / (1 + abs(z) / sqrt(8.0))) - z * z / 2) / (1 + abs(z) / sqrt(8.0)));

-- A number of a trait in words: tokens and counts whole, shares in percent, the rest to three digits.
CREATE MACRO _trait_said(amount, unit) AS
CASE
    WHEN amount IS NULL THEN 'not known'
    WHEN unit = '%' THEN format('{:.0f} %', amount * 100)
    WHEN unit = 's' AND abs(amount) < 1 THEN format('{:.3g} ms', amount * 1000)
    WHEN unit = 's' THEN format('{:.3g} s', amount)
    WHEN unit = '' THEN format('{:,}', round(amount)::BIGINT)
    ELSE format('{:,} {}', round(amount)::BIGINT, unit)
END;

-- Mean of what lies between two sums, NULL where nothing does.
CREATE MACRO _mean_between(high_sum, low_sum, high_count, low_count) AS
CASE
    WHEN high_count > coalesce(low_count, 0) THEN (high_sum - coalesce(low_sum, 0)) / (high_count - coalesce(low_count, 0))
END;

-- What can set a request apart.
CREATE VIEW _trait_kind AS
SELECT
    kind.factor_index,
    kind.factor,
    kind.title,
    kind.unit,
    kind.needs
FROM (
    VALUES
    (1, 'input_tokens', 'prompt length', 'tokens', 'prompt tokens per request'),
    (
        2,
        'mates_prefill_tokens',
        'prefill of batch-mates around its arrival',
        'tokens',
        'prefill time and prompt tokens of each request (spans)'
    ),
    (3, 'line_count', 'requests before it that had no first token', '', 'arrival and TTFT of each request'),
    (4, 'arrivals_in_second', 'arrivals in the second up to its own', '', 'the arrival of each request'),
    (5, 'there_count', 'requests in the server when it arrived', '', 'arrival and end of each request'),
    (6, 'since_start_s', 'arrival after the beginning of the run', 's', 'the arrival of each request'),
    (7, 'output_tokens', 'answer length', 'tokens', 'output tokens per request'),
    (8, 'cached_ratio', 'share of the prompt from the prefix cache', '%', 'cached tokens per request (--enable-prompt-tokens-details)'),
    (9, 'preemption_count', 'preemptions of it', '', 'preemptions per request'),
    (10, 'step_s', 'engine step that ran when it arrived', 's', 'step lines (--enable-logging-iteration-details)'),
    (11, 'gap_s', 'longest gap within its stream', 's', 'a streaming client that stamps every chunk'),
    (12, 'sm_ratio', 'GPU busy around its arrival', '%', 'a GPU log of the same time'),
    (13, 'sm_clock_mhz', 'GPU clock around its arrival', 'MHz', 'a GPU log with clocks'),
    (14, 'power_w', 'GPU power around its arrival', 'W', 'a GPU log with power'),
    (15, 'engine', 'engine', '%', 'spans or logs of each engine'),
    (16, 'client', 'client', '%', 'a client file'),
    (17, 'streamed', 'kind of answer', '%', 'a client file')
) AS kind (factor_index, factor, title, unit, needs);

-- The slowest tenth of each run by each measure (the slowest hundredth from 1000 requests on), and of the others at most
-- about 5,000, chosen by their ids: those say as much as a million, in a fraction of the time.
CREATE VIEW _tail_candidate AS
WITH timed AS (
    SELECT
        run_id,
        request_id,
        arrival_ts,
        coalesce(client_ttft_s, ttft_s) AS ttft_s,
        -- How long an answer took that broke off says when it broke off.
        CASE WHEN end_status = 'ok' THEN coalesce(client_e2e_s, e2e_s) END AS e2e_s,
        CASE WHEN end_status = 'ok' THEN tpot_s END AS tpot_s
    FROM request
),

middle AS (
    SELECT
        run_id,
        count(ttft_s) AS ttft_count,
        count(e2e_s) AS e2e_count,
        count(tpot_s) AS tpot_count,
        quantile_cont(ttft_s, [0.4, 0.5, 0.6, 0.9, 0.99]) AS ttft_quantiles,
        quantile_cont(e2e_s, [0.4, 0.5, 0.6, 0.9, 0.99]) AS e2e_quantiles,
        quantile_cont(tpot_s, [0.4, 0.5, 0.6, 0.9, 0.99]) AS tpot_quantiles
    FROM timed
    GROUP BY run_id
),

limits AS (
    SELECT
        run_id,
        one.measure,
        one.request_count,
        one.quantiles[1] AS typical_low_s,
        one.quantiles[2] AS median_s,
        one.quantiles[3] AS typical_high_s,
        CASE WHEN one.request_count >= 1000 THEN 0.01 ELSE 0.1 END::DOUBLE AS tail_ratio,
        CASE WHEN one.request_count >= 1000 THEN one.quantiles[5] ELSE one.quantiles[4] END AS threshold_s,
        greatest(1, ceil(one.request_count / 5000))::UBIGINT AS every
    FROM (
        SELECT
            run_id,
            unnest([
                {'measure': 'ttft', 'request_count': ttft_count, 'quantiles': ttft_quantiles},
                {'measure': 'e2e', 'request_count': e2e_count, 'quantiles': e2e_quantiles},
                {'measure': 'tpot', 'request_count': tpot_count, 'quantiles': tpot_quantiles}
            ]) AS one
        FROM middle
    )
    WHERE one.request_count > 0
),

wide AS (
    SELECT
        timed.run_id,
        timed.request_id,
        timed.arrival_ts,
        limits.* EXCLUDE (run_id),
        CASE limits.measure WHEN 'ttft' THEN timed.ttft_s WHEN 'e2e' THEN timed.e2e_s ELSE timed.tpot_s END AS measure_s
    FROM timed
    INNER JOIN limits ON timed.run_id = limits.run_id
)

SELECT
    run_id,
    request_id,
    measure,
    measure_s,
    arrival_ts,
    request_count,
    tail_ratio,
    median_s,
    threshold_s,
    -- Where all are alike, none is slow.
    measure_s >= threshold_s AND threshold_s > median_s AS is_slow,
    measure_s BETWEEN typical_low_s AND typical_high_s AS is_typical
FROM wide
WHERE measure_s IS NOT NULL AND ((measure_s >= threshold_s AND threshold_s > median_s) OR hash(request_id) % every = 0);

-- How many requests came, left the line, and ended up to each moment at which something happened, and what the GPUs (their mean)
-- said, on a grid of at most 100,000 moments a run.
CREATE VIEW _request_load AS
WITH placed AS (
    SELECT
        run_id,
        arrival_ts,
        coalesce(ttft_s, client_ttft_s) AS ttft_s,
        coalesce(e2e_s, client_e2e_s) AS e2e_s,
        CASE WHEN ttft_s >= prefill_s THEN prefill_s END AS prefill_s,
        input_tokens
    FROM request
    WHERE arrival_ts IS NOT NULL
),

span AS (
    SELECT
        run_id,
        min(arrival_ts) AS zero_ts,
        greatest(0.001, epoch(max(arrival_ts) - min(arrival_ts)) / 100000) AS width_s,
        -- All buckets that a request looks at lie before this one.
        floor(epoch(max(arrival_ts) - min(arrival_ts)) / greatest(0.001, epoch(max(arrival_ts) - min(arrival_ts)) / 100000))::BIGINT
        + 2 AS last_bucket
    FROM placed
    GROUP BY run_id
),

timed AS (
    SELECT
        placed.run_id,
        span.width_s,
        span.last_bucket,
        epoch(placed.arrival_ts - span.zero_ts) AS at_s,
        coalesce(placed.ttft_s, placed.e2e_s) AS line_s,
        placed.ttft_s,
        placed.e2e_s,
        placed.prefill_s,
        placed.input_tokens
    FROM placed
    INNER JOIN span ON placed.run_id = span.run_id
),

happened AS (
    SELECT
        run_id,
        least(floor(at_s / width_s), last_bucket)::BIGINT AS bucket,
        count(*) AS arrival_count,
        count(line_s) AS joined_line_count,
        0 AS left_line_count,
        count(e2e_s) AS begun_count,
        0 AS ended_count,
        0 AS prefill_from_tokens,
        0 AS prefill_to_tokens,
        0 AS prefill_from_count,
        0 AS sm_count,
        0.0 AS sm_sum,
        0 AS clock_count,
        0.0 AS clock_sum,
        0 AS power_count,
        0.0 AS power_sum
    FROM timed
    GROUP BY ALL
    UNION ALL BY NAME
    SELECT
        run_id,
        least(floor((at_s + line_s) / width_s), last_bucket)::BIGINT AS bucket,
        count(*) AS left_line_count,
        coalesce(sum(input_tokens) FILTER (WHERE prefill_s IS NOT NULL), 0) AS prefill_to_tokens
    FROM timed
    WHERE abs(line_s) < 1e10
    GROUP BY ALL
    UNION ALL BY NAME
    SELECT
        run_id,
        least(floor((at_s + e2e_s) / width_s), last_bucket)::BIGINT AS bucket,
        count(*) AS ended_count
    FROM timed
    WHERE abs(e2e_s) < 1e10
    GROUP BY ALL
    UNION ALL BY NAME
    SELECT
        run_id,
        least(floor((at_s + ttft_s - prefill_s) / width_s), last_bucket)::BIGINT AS bucket,
        coalesce(sum(input_tokens), 0) AS prefill_from_tokens,
        count(*) AS prefill_from_count
    FROM timed
    WHERE abs(ttft_s) < 1e10 AND prefill_s IS NOT NULL
    GROUP BY ALL
    UNION ALL BY NAME
    SELECT
        gpu_sample.run_id,
        floor(epoch(gpu_sample.sample_ts - span.zero_ts) / span.width_s)::BIGINT AS bucket,
        count(coalesce(gpu_sample.sm_ratio, gpu_sample.gr_active_ratio)) AS sm_count,
        coalesce(sum(coalesce(gpu_sample.sm_ratio, gpu_sample.gr_active_ratio)), 0) AS sm_sum,
        count(gpu_sample.sm_clock_mhz) AS clock_count,
        coalesce(sum(gpu_sample.sm_clock_mhz), 0) AS clock_sum,
        count(gpu_sample.power_w) AS power_count,
        coalesce(sum(gpu_sample.power_w), 0) AS power_sum
    FROM gpu_sample
    INNER JOIN span ON gpu_sample.run_id = span.run_id
    WHERE
        gpu_sample.sample_ts >= span.zero_ts - INTERVAL 10 SECONDS
        AND epoch(gpu_sample.sample_ts - span.zero_ts) < span.width_s * span.last_bucket
    GROUP BY ALL
),

counted AS (
    -- Sums of whole numbers would be HUGEINT, and those are slow; a double is exact up to 2^53.
    SELECT
        run_id,
        bucket,
        sum(arrival_count::DOUBLE) AS arrival_count,
        sum(joined_line_count::DOUBLE) AS joined_line_count,
        sum(left_line_count::DOUBLE) AS left_line_count,
        sum(begun_count::DOUBLE) AS begun_count,
        sum(ended_count::DOUBLE) AS ended_count,
        sum(prefill_from_tokens::DOUBLE) AS prefill_from_tokens,
        sum(prefill_to_tokens::DOUBLE) AS prefill_to_tokens,
        sum(prefill_from_count::DOUBLE) AS prefill_from_count,
        sum(sm_count::DOUBLE) AS sm_count,
        sum(sm_sum::DOUBLE) AS sm_sum,
        sum(clock_count::DOUBLE) AS clock_count,
        sum(clock_sum::DOUBLE) AS clock_sum,
        sum(power_count::DOUBLE) AS power_count,
        sum(power_sum::DOUBLE) AS power_sum
    FROM happened
    GROUP BY run_id, bucket
)

SELECT
    counted.run_id,
    counted.bucket,
    span.zero_ts,
    span.width_s,
    span.last_bucket,
    sum(counted.arrival_count) OVER upto AS arrived_count,
    sum(counted.joined_line_count) OVER upto AS joined_line_count,
    sum(counted.left_line_count) OVER upto AS left_line_count,
    sum(counted.begun_count) OVER upto AS begun_count,
    sum(counted.ended_count) OVER upto AS ended_count,
    sum(counted.prefill_from_tokens) OVER upto AS prefill_from_tokens,
    sum(counted.prefill_to_tokens) OVER upto AS prefill_to_tokens,
    sum(counted.prefill_from_count) OVER upto AS prefill_from_count,
    sum(counted.sm_count) OVER upto AS sm_count,
    sum(counted.sm_sum) OVER upto AS sm_sum,
    sum(counted.clock_count) OVER upto AS clock_count,
    sum(counted.clock_sum) OVER upto AS clock_sum,
    sum(counted.power_count) OVER upto AS power_count,
    sum(counted.power_sum) OVER upto AS power_sum
FROM counted
INNER JOIN span ON counted.run_id = span.run_id
WINDOW upto AS (PARTITION BY counted.run_id ORDER BY counted.bucket);

-- The candidates and what is known of each.  What happens around a request is looked at over one length of time, the run's median of
-- the measure, for slow and fast alike: whoever stays longer sees more of everything, and that would set apart nothing.
CREATE VIEW _tail_request AS
WITH placed AS (
    SELECT
        c.run_id,
        c.request_id,
        c.measure,
        c.measure_s,
        c.request_count,
        c.tail_ratio,
        c.median_s,
        c.threshold_s,
        c.is_slow,
        c.arrival_ts,
        _later(c.arrival_ts, CASE c.measure WHEN 'tpot' THEN coalesce(r.ttft_s, r.client_ttft_s, 0) + 1 ELSE c.median_s END) AS until_ts,
        r.input_tokens,
        r.output_tokens,
        r.cached_input_tokens,
        r.preemption_count,
        r.streamed,
        r.label,
        r.client_source_id,
        r.client_line_no,
        r.server_source_id,
        r.server_line_no,
        coalesce(r.ttft_s, r.client_ttft_s) AS ttft_s,
        coalesce(r.e2e_s, r.client_e2e_s) AS e2e_s,
        CASE WHEN r.ttft_s >= r.prefill_s THEN r.prefill_s END AS prefill_s
    FROM _tail_candidate AS c
    INNER JOIN request AS r ON c.run_id = r.run_id AND c.request_id = r.request_id
),

load AS MATERIALIZED (
    SELECT *
    FROM _request_load
),

grid AS (
    SELECT
        run_id,
        any_value(zero_ts) AS zero_ts,
        any_value(width_s) AS width_s,
        any_value(last_bucket) AS last_bucket,
        max(prefill_from_count) > 0 AS has_prefill,
        max(prefill_from_tokens) > 0 AS has_tokens
    FROM load
    GROUP BY run_id
),

bucketed AS (
    SELECT
        placed.*,
        grid.has_prefill AND grid.has_tokens AS has_mates,
        floor(epoch(placed.arrival_ts - grid.zero_ts) / grid.width_s)::BIGINT AS from_bucket,
        floor((epoch(placed.arrival_ts - grid.zero_ts) - 1) / grid.width_s)::BIGINT AS second_bucket,
        floor((epoch(placed.arrival_ts - grid.zero_ts)) / grid.width_s)::BIGINT - 1 AS before_bucket,
        floor((epoch(placed.arrival_ts - grid.zero_ts) - 10) / grid.width_s)::BIGINT AS ten_before_bucket,
        least(grid.last_bucket, floor(epoch(placed.until_ts - grid.zero_ts) / grid.width_s))::BIGINT AS until_bucket,
        -- Where the request itself stands in the sums that it is compared with.
        least(
            grid.last_bucket, floor((epoch(placed.arrival_ts - grid.zero_ts) + coalesce(placed.ttft_s, placed.e2e_s)) / grid.width_s)
        ) AS own_line_bucket,
        least(grid.last_bucket, floor((epoch(placed.arrival_ts - grid.zero_ts) + placed.e2e_s) / grid.width_s)) AS own_end_bucket,
        least(
            grid.last_bucket, floor((epoch(placed.arrival_ts - grid.zero_ts) + placed.ttft_s - placed.prefill_s) / grid.width_s)
        ) AS own_prefill_bucket
    FROM placed
    LEFT JOIN grid ON placed.run_id = grid.run_id
),

loaded AS (
    SELECT
        b.*,
        at_arrival.arrived_count - coalesce(second_before.arrived_count, 0) AS arrivals_in_second,
        CASE
            WHEN at_arrival.joined_line_count > 0
                THEN at_arrival.joined_line_count - at_arrival.left_line_count - coalesce(b.own_line_bucket > b.from_bucket, FALSE)::INTEGER
        END AS line_count,
        CASE
            WHEN at_arrival.begun_count > 0
                THEN at_arrival.begun_count - at_arrival.ended_count - coalesce(b.own_end_bucket > b.from_bucket, FALSE)::INTEGER
        END AS there_count,
        CASE
            WHEN b.has_mates
                THEN at_until.prefill_from_tokens - at_arrival.prefill_to_tokens
                    - CASE
                        WHEN b.own_prefill_bucket <= b.until_bucket AND b.own_line_bucket > b.from_bucket THEN coalesce(b.input_tokens, 0)
                        ELSE 0
                    END
        END AS mates_tokens,
        -- The mean of the readings within; where none lies within, of the ten seconds before it as well.
        coalesce(
            _mean_between(at_until.sm_sum, before.sm_sum, at_until.sm_count, before.sm_count),
            _mean_between(at_until.sm_sum, ten_before.sm_sum, at_until.sm_count, ten_before.sm_count)
        ) AS sm_ratio,
        coalesce(
            _mean_between(at_until.clock_sum, before.clock_sum, at_until.clock_count, before.clock_count),
            _mean_between(at_until.clock_sum, ten_before.clock_sum, at_until.clock_count, ten_before.clock_count)
        ) AS sm_clock_mhz,
        coalesce(
            _mean_between(at_until.power_sum, before.power_sum, at_until.power_count, before.power_count),
            _mean_between(at_until.power_sum, ten_before.power_sum, at_until.power_count, ten_before.power_count)
        ) AS power_w
    FROM bucketed AS b
    ASOF LEFT JOIN load AS at_arrival ON b.run_id = at_arrival.run_id AND b.from_bucket >= at_arrival.bucket
    ASOF LEFT JOIN load AS second_before ON b.run_id = second_before.run_id AND b.second_bucket >= second_before.bucket
    ASOF LEFT JOIN load AS before ON b.run_id = before.run_id AND b.before_bucket >= before.bucket
    ASOF LEFT JOIN load AS ten_before ON b.run_id = ten_before.run_id AND b.ten_before_bucket >= ten_before.bucket
    ASOF LEFT JOIN load AS at_until ON b.run_id = at_until.run_id AND b.until_bucket >= at_until.bucket
),

step AS (
    SELECT
        run_id,
        step_ts,
        max(elapsed_s) AS elapsed_s
    FROM engine_step
    WHERE step_ts IS NOT NULL AND elapsed_s IS NOT NULL
    GROUP BY run_id, step_ts
),

stepped AS (
    SELECT
        l.*,
        CASE WHEN epoch(step.step_ts - l.arrival_ts) - step.elapsed_s <= 1 THEN step.elapsed_s END AS step_s
    FROM loaded AS l
    ASOF LEFT JOIN step ON l.run_id = step.run_id AND l.arrival_ts <= step.step_ts
),

mine AS (
    SELECT DISTINCT
        server_source_id AS source_id,
        server_line_no AS line_no,
        request_id
    FROM placed
),

served AS (
    -- One line can hold several spans.
    SELECT
        mine.source_id,
        mine.line_no,
        mine.request_id,
        min(server_request.service) AS service
    FROM mine
    INNER JOIN server_request
        ON
            mine.source_id = server_request.source_id AND mine.line_no = server_request.line_no
            AND mine.request_id = server_request.request_id
    GROUP BY mine.source_id, mine.line_no, mine.request_id
)

SELECT
    w.run_id,
    w.request_id,
    w.measure,
    w.measure_s,
    w.request_count,
    w.tail_ratio,
    w.median_s,
    w.threshold_s,
    w.is_slow,
    w.arrival_ts,
    w.input_tokens,
    w.output_tokens,
    w.cached_input_tokens,
    w.preemption_count,
    w.streamed,
    w.arrivals_in_second,
    w.line_count,
    w.there_count,
    w.mates_tokens,
    w.sm_ratio,
    w.sm_clock_mhz,
    w.power_w,
    w.step_s,
    server.service,
    server_source.path AS server_path,
    coalesce(w.label, client_source.path) AS client_name,
    CASE WHEN stream.chunk_count > 2 THEN stream.longest_gap_s END AS gap_s
FROM stepped AS w
LEFT JOIN served AS server
    ON w.server_source_id = server.source_id AND w.server_line_no = server.line_no AND w.request_id = server.request_id
LEFT JOIN source AS server_source ON w.server_source_id = server_source.source_id
LEFT JOIN source AS client_source ON w.client_source_id = client_source.source_id
LEFT JOIN _stream_shape AS stream
    ON w.measure <> 'ttft' AND w.client_source_id = stream.source_id AND w.client_line_no = stream.line_no;

-- One row per candidate and trait.
CREATE VIEW _tail_trait AS
SELECT
    run_id,
    request_id,
    measure,
    measure_s,
    request_count,
    tail_ratio,
    median_s,
    threshold_s,
    is_slow,
    trait.factor_index AS factor_index,
    trait.amount AS amount,
    trait.level AS level
FROM (
    SELECT
        *,
        unnest([
            {'factor_index': 1, 'amount': input_tokens::DOUBLE, 'level': NULL},
            {'factor_index': 2, 'amount': mates_tokens::DOUBLE, 'level': NULL},
            {'factor_index': 3, 'amount': line_count::DOUBLE, 'level': NULL},
            {'factor_index': 4, 'amount': arrivals_in_second::DOUBLE, 'level': NULL},
            {'factor_index': 5, 'amount': there_count::DOUBLE, 'level': NULL},
            {'factor_index': 6, 'amount': epoch(arrival_ts - min(arrival_ts) OVER (PARTITION BY run_id)), 'level': NULL},
            {'factor_index': 7, 'amount': output_tokens::DOUBLE, 'level': NULL},
            {'factor_index': 8, 'amount': cached_input_tokens / nullif(input_tokens, 0), 'level': NULL},
            {'factor_index': 9, 'amount': preemption_count::DOUBLE, 'level': NULL},
            {'factor_index': 10, 'amount': step_s, 'level': NULL},
            {'factor_index': 11, 'amount': gap_s::DOUBLE, 'level': NULL},
            {'factor_index': 12, 'amount': sm_ratio, 'level': NULL},
            {'factor_index': 13, 'amount': sm_clock_mhz, 'level': NULL},
            {'factor_index': 14, 'amount': power_w, 'level': NULL},
            {'factor_index': 15, 'amount': NULL, 'level': coalesce(service, server_path)},
            {'factor_index': 16, 'amount': NULL, 'level': client_name},
            {'factor_index': 17, 'amount': NULL, 'level': CASE WHEN streamed THEN 'streamed' WHEN NOT streamed THEN 'not streamed' END}
        ]) AS trait
    FROM _tail_request
)
WHERE trait.factor_index <> 11 OR measure <> 'ttft';

COMMENT ON VIEW _trait_kind IS 'One row per thing that can set a request apart.';
COMMENT ON VIEW _tail_candidate IS 'One row per run, measure and request that is compared.';
COMMENT ON VIEW _request_load IS 'One row per run and moment of its grid: what had happened up to it.';
COMMENT ON VIEW _tail_request IS 'One row per run, measure and compared request, with what is known of it.';
COMMENT ON VIEW _tail_trait IS 'One row per run, measure, compared request and thing that can set it apart.';
