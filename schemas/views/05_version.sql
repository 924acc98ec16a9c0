-- A stated version of vLLM as minor * 1000 + patch (0.16.0 is 16000); NULL where it is no release's.
CREATE MACRO _version_code(version) AS
CASE
    WHEN regexp_matches(version, '^0\.\d{1,3}\.\d{1,3}(?:\D|$)') AND NOT starts_with(version, '0.1.dev')
        THEN
            try_cast(regexp_extract(version, '^0\.(\d+)\.(\d+)', 1) AS INTEGER) * 1000
            + try_cast(regexp_extract(version, '^0\.(\d+)\.(\d+)', 2) AS INTEGER)
END;
