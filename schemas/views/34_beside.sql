-- Which clock places a request among the others: the server's where it saw the whole of it.
CREATE MACRO _placed_by(arrival_basis, e2e_s) AS
CASE WHEN arrival_basis <> 'client sent' AND e2e_s IS NOT NULL THEN 'server' ELSE 'client' END;

-- One request, and beside it each other that can have been in the server while it was (or began within the longest stay of one
-- that did): my_ columns are its own.  Times are those of my clock.
CREATE MACRO _beside(wanted, wanted_run) AS TABLE
    WITH me AS MATERIALIZED (
        SELECT
            *,
            _placed_by(arrival_basis, e2e_s) AS clock
        FROM _request_called(wanted, wanted_run)
    ),

    mine AS (
        SELECT
            run_id,
            request_id,
            clock,
            CASE clock WHEN 'server' THEN arrival_ts ELSE client_sent_ts END AS from_ts,
            CASE clock WHEN 'server' THEN e2e_s ELSE client_e2e_s END AS length_s,
            CASE clock WHEN 'server' THEN ttft_s ELSE client_ttft_s END AS first_token_s,
            CASE clock WHEN 'server' THEN ttft_s - prefill_s END AS scheduled_s,
            CASE clock WHEN 'server' THEN _later(arrival_ts, ttft_s) ELSE client_first_chunk_ts END AS first_token_ts
        FROM me
    ),

    bound AS (
        -- Over all runs that have the id: what is too much is left out by the join.  A clock that places none gets no bounds that any
        -- request could lie in; the bounds are there always, so that the table is not read without them.
        SELECT
            coalesce(min(low_ts) FILTER (WHERE clock = 'server'), TIMESTAMP 'infinity') AS server_low_ts,
            coalesce(max(high_ts) FILTER (WHERE clock = 'server'), TIMESTAMP '-infinity') AS server_high_ts,
            coalesce(min(low_ts) FILTER (WHERE clock = 'client'), TIMESTAMP 'infinity') AS client_low_ts,
            coalesce(max(high_ts) FILTER (WHERE clock = 'client'), TIMESTAMP '-infinity') AS client_high_ts
        FROM (
            SELECT
                mine.clock,
                _later(mine.from_ts, -least(greatest(stay.max_s, waited.max_s), 1e9)) AS low_ts,
                greatest(mine.from_ts, _later(mine.from_ts, mine.length_s), mine.first_token_ts) AS high_ts
            FROM mine
            INNER JOIN _run_measure AS stay ON mine.run_id = stay.run_id AND stay.measure = 'stay, ' || mine.clock
            INNER JOIN _run_measure AS waited ON mine.run_id = waited.run_id AND waited.measure = 'first token, ' || mine.clock
        )
    ),

    near AS (
        SELECT
            'server' AS clock,
            arrival_ts AS from_ts,
            e2e_s AS length_s,
            ttft_s AS first_token_s,
            ttft_s - prefill_s AS scheduled_s,
            _later(arrival_ts, ttft_s) AS first_token_ts,
            *
        FROM request
        WHERE arrival_ts >= (SELECT server_low_ts FROM bound) -- noqa: RF02
            AND arrival_ts <= (SELECT server_high_ts FROM bound) -- noqa: RF02
            AND arrival_basis <> 'client sent'
        UNION ALL
        SELECT
            'client' AS clock,
            client_sent_ts AS from_ts,
            client_e2e_s AS length_s,
            client_ttft_s AS first_token_s,
            NULL AS scheduled_s,
            client_first_chunk_ts AS first_token_ts,
            *
        FROM request
        WHERE client_sent_ts >= (SELECT client_low_ts FROM bound) -- noqa: RF02
            AND client_sent_ts <= (SELECT client_high_ts FROM bound) -- noqa: RF02
    )

    SELECT
        mine.run_id,
        mine.clock,
        mine.from_ts AS my_from_ts,
        _later(mine.from_ts, mine.length_s) AS my_to_ts,
        mine.length_s AS my_length_s,
        mine.scheduled_s AS my_scheduled_s,
        mine.first_token_s AS my_first_token_s,
        mine.first_token_ts AS my_first_token_ts,
        other.request_id,
        other.status,
        other.from_ts,
        _later(other.from_ts, other.length_s) AS to_ts,
        other.length_s,
        other.scheduled_s,
        other.first_token_s,
        _later(other.from_ts, coalesce(other.scheduled_s, CASE mine.clock WHEN 'server' THEN other.first_token_s END)) AS prefill_ts,
        other.first_token_ts,
        coalesce(other.client_ttft_s, other.ttft_s) AS ttft_s,
        other.queue_s,
        other.input_tokens,
        other.cached_input_tokens,
        other.output_tokens,
        other.preemption_count
    FROM mine
    LEFT JOIN near AS other ON mine.run_id = other.run_id AND mine.clock = other.clock AND mine.request_id <> other.request_id;
