CREATE TABLE case_property (
    key VARCHAR PRIMARY KEY,
    value VARCHAR NOT NULL
);
COMMENT ON TABLE case_property IS 'One row per property of the case file itself: schema_version, tracelens_version, created_ts.';
COMMENT ON COLUMN case_property.key IS 'Name of the property.';
COMMENT ON COLUMN case_property.value IS 'Its value, as text.';

CREATE TABLE source (
    source_id INTEGER PRIMARY KEY,
    run_id VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    format VARCHAR NOT NULL,
    variant VARCHAR,
    side VARCHAR,
    sha256 VARCHAR NOT NULL,
    size_bytes BIGINT NOT NULL,
    line_count BIGINT NOT NULL,
    understood_count BIGINT NOT NULL,
    skipped_count BIGINT NOT NULL,
    record_count BIGINT NOT NULL,
    first_ts TIMESTAMP,
    last_ts TIMESTAMP,
    clock VARCHAR NOT NULL,
    time_basis VARCHAR NOT NULL,
    options VARCHAR NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE source IS 'One row per ingested file. line_count = understood_count + skipped_count, always.';
COMMENT ON COLUMN source.source_id IS 'Number of the source in this case; every fact row names it.';
COMMENT ON COLUMN source.run_id IS 'Run that the file belongs to (ingest --run).';
COMMENT ON COLUMN source.path IS 'Path as given; a member of an archive as archive!member.';
COMMENT ON COLUMN source.format IS 'Name of the format that read it (tracelens formats).';
COMMENT ON COLUMN source.variant IS 'Dialect or version that was seen in it.';
COMMENT ON COLUMN source.side IS 'Whose clock wrote its stamps: server, gpu or client.';
COMMENT ON COLUMN source.sha256 IS 'Hash of the file''s bytes; the same file again changes nothing.';
COMMENT ON COLUMN source.size_bytes IS 'Bytes of the file as it lies on the disk.';
COMMENT ON COLUMN source.line_count IS 'Lines read.';
COMMENT ON COLUMN source.understood_count IS 'Lines that the format understood, blank ones included.';
COMMENT ON COLUMN source.skipped_count IS 'Lines not understood; each is a row of ingest_issue.';
COMMENT ON COLUMN source.record_count IS 'Fact rows it gave, over all tables.';
COMMENT ON COLUMN source.first_ts IS 'Earliest instant in it, UTC.';
COMMENT ON COLUMN source.last_ts IS 'Latest instant in it, UTC.';
COMMENT ON COLUMN source.clock IS 'What its stamps state: utc, local (no zone), yearless, dayless, relative (unknown zero) or none.';
COMMENT ON COLUMN source.time_basis IS 'What was taken for what its stamps leave out (year, date, zone, zero), and from where.';
COMMENT ON COLUMN source.options IS 'What ingest was told, as JSON: format, tz, gpu_tz, client_tz, date, keep_text; folder: where a relative path begins, seen from the case. For reingest.';

CREATE TABLE ingest_issue (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    reason VARCHAR NOT NULL,
    excerpt VARCHAR
);
COMMENT ON TABLE ingest_issue IS 'One row per line that was not understood. Nothing is dropped silently.';
COMMENT ON COLUMN ingest_issue.run_id IS 'Run of the source.';
COMMENT ON COLUMN ingest_issue.source_id IS 'Source that the line stands in.';
COMMENT ON COLUMN ingest_issue.line_no IS 'Its line number, from 1.';
COMMENT ON COLUMN ingest_issue.reason IS 'Why it was not understood, in a few words.';
COMMENT ON COLUMN ingest_issue.excerpt IS 'The first 400 characters of it, as written: a line that nobody understands may hold anything.';
