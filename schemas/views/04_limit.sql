-- From where on a limit counts as reached: the one place for the views and rules that name what a queue waits for.
-- vLLM rounds the cache's share and frees blocks between steps: a scheduler that finds none shows 0.9 and more.
CREATE MACRO _full_kv_ratio() AS 0.9;
-- Between two steps a seat or two of a full server is free for a moment.
CREATE MACRO _full_seats_ratio() AS 0.98;

-- What a line is ranked by as evidence: the measure, and where two are equal its place, so that the choice is always the same one.
CREATE MACRO _ranked(measure, source_id, line_no) AS
CASE WHEN measure IS NOT NULL AND line_no IS NOT NULL THEN {'measure': measure, 'source_id': source_id, 'line_no': line_no} END;
