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
COMMENT ON COLUMN client_link.basis IS 'What joined them: trace id, response id, id sent by the client, id given by the gateway, place in the order of sending; or, where no server source has the request, the id that client and gateway share.';
