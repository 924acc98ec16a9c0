-- From where on a limit counts as reached: the one place for the views and rules that name what a queue waits for.
-- vLLM rounds the cache's share and frees blocks between steps: a scheduler that finds none shows 0.9 and more.
CREATE MACRO _full_kv_ratio() AS 0.9;
-- Between two steps a seat or two of a full server is free for a moment.
CREATE MACRO _full_seats_ratio() AS 0.98;

-- A line as one number, in the order of sources and of their lines: aggregates over all requests compare it several times as quick as a
-- struct.  And what such numbers stand for.
CREATE MACRO _line_key(source_id, line_no) AS
source_id::BIGINT * 1099511627776 + line_no;

CREATE MACRO _lines(keys) AS
list_transform(keys, LAMBDA key: {'source_id': (key // 1099511627776)::INTEGER, 'line_no': key % 1099511627776});


-- What a line is ranked by as evidence: the measure, and where two are equal its place, so that the choice is always the same one.
CREATE MACRO _ranked(measure, source_id, line_no) AS
CASE WHEN measure IS NOT NULL AND line_no IS NOT NULL THEN {'measure': measure, 'line': _line_key(source_id, line_no)} END;
