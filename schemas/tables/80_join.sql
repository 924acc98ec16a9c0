CREATE TABLE client_link (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    request_id VARCHAR NOT NULL,
    basis VARCHAR NOT NULL
);
COMMENT ON TABLE client_link IS 'One row per client row that was found on the server side, and per gateway row whose client was found. Made anew by every ingest.';
COMMENT ON COLUMN client_link.run_id IS 'Run of both.';
COMMENT ON COLUMN client_link.source_id IS 'Source of the client row.';
COMMENT ON COLUMN client_link.line_no IS 'Line of the client row.';
COMMENT ON COLUMN client_link.request_id IS 'The request''s id on the server side.';
COMMENT ON COLUMN client_link.basis IS 'What joined them: trace id, response id, id sent by the client, id given by the gateway, place in the order of sending; where no server source has the request, the id that client and gateway share; lengths and times where the file has no id that the server knows (derived: one request alone fitted within the error).';

CREATE TABLE client_match (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    row_count BIGINT NOT NULL,
    request_count BIGINT NOT NULL,
    voter_count BIGINT,
    agreeing_count BIGINT,
    rival_count BIGINT,
    low_s DOUBLE,
    high_s DOUBLE,
    linked_count BIGINT NOT NULL,
    verdict VARCHAR NOT NULL
);
COMMENT ON TABLE client_match IS 'One row per client file of which no row has an id that the server knows: whether its rows could be matched by lengths and times. Made anew by every ingest.';
COMMENT ON COLUMN client_match.run_id IS 'Run of the source.';
COMMENT ON COLUMN client_match.source_id IS 'The client''s file.';
COMMENT ON COLUMN client_match.row_count IS 'Rows with a time of sending.';
COMMENT ON COLUMN client_match.request_count IS 'Requests on the server side that no other client file has.';
COMMENT ON COLUMN client_match.voter_count IS 'Rows of lengths that few others share: they vote on the difference of the clocks.';
COMMENT ON COLUMN client_match.agreeing_count IS 'Rows among them that the best difference fits.';
COMMENT ON COLUMN client_match.rival_count IS 'Rows that the best difference more than a second away from it fits.';
COMMENT ON COLUMN client_match.low_s IS 'Lower end of that difference, server clock less client clock, seconds (from the zero of its own for a clock without one); NULL where it is not sure: below 9 in 10 rows, or the rival comes within 5 rows or a tenth.';
COMMENT ON COLUMN client_match.high_s IS 'Upper end, seconds.';
COMMENT ON COLUMN client_match.linked_count IS 'Rows matched.';
COMMENT ON COLUMN client_match.verdict IS 'What came of it, and what would make it better.';
