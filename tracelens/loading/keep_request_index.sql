-- One request by its id, for the many questions about one: without it each reads all ids.
CREATE INDEX _request_timing_id ON _request_timing_row (request_id);
