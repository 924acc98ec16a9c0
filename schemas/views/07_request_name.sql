-- An id as the client knows it, of one that a log line has: vLLM puts 8 hex digits behind it.
CREATE MACRO _without_hex(id) AS
regexp_replace(id, '-[0-9a-f]{8}$', '');

-- How surely a name that a request has beside its id is the one that is looked for, the surest first; NULL where it is not.
CREATE MACRO _match_rank(name, wanted) AS
CASE
    WHEN name = wanted THEN 1
    WHEN name = _without_hex(wanted) THEN 2
    WHEN starts_with(name, wanted) OR ends_with(name, wanted) THEN 3
    WHEN contains(name, wanted) THEN 4
END;
