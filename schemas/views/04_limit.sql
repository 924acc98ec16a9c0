-- From where on a limit counts as reached: the one place for the views and rules that name what a queue waits for.
-- vLLM rounds the cache's share and frees blocks between steps: a scheduler that finds none shows 0.9 and more.
CREATE MACRO _full_kv_ratio() AS 0.9;
-- Between two steps a seat or two of a full server is free for a moment.
CREATE MACRO _full_seats_ratio() AS 0.98;
