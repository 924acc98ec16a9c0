CREATE VIEW run_setting AS
SELECT
    run_id,
    key,
    arg_max(value, (basis = 'stated', source_id, line_no)) AS value,
    try_cast(arg_max(value, (basis = 'stated', source_id, line_no)) AS DOUBLE) AS amount,
    arg_max(basis, (basis = 'stated', source_id, line_no)) AS basis,
    bool_or(basis = 'stated') AS is_stated,
    arg_max(source_id, (basis = 'stated', source_id, line_no)) AS source_id,
    arg_max(line_no, (basis = 'stated', source_id, line_no)) AS line_no
FROM server_setting
WHERE value IS NOT NULL AND value <> 'None'
GROUP BY run_id, key;

COMMENT ON VIEW run_setting IS 'One row per run and setting: the last stated value, else the version''s default.';
COMMENT ON COLUMN run_setting.run_id IS 'Run.';
COMMENT ON COLUMN run_setting.key IS 'Name of the setting, as in server_setting.';
COMMENT ON COLUMN run_setting.value IS 'The value, as text.';
COMMENT ON COLUMN run_setting.amount IS 'The value as a number, where it is one.';
COMMENT ON COLUMN run_setting.basis IS 'stated, or which version''s default.';
COMMENT ON COLUMN run_setting.is_stated IS 'Whether a source states it; a default is an assumption.';
COMMENT ON COLUMN run_setting.source_id IS 'Source of it.';
COMMENT ON COLUMN run_setting.line_no IS 'Line of it.';
