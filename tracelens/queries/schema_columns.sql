/*
The columns of a table or view: type and meaning.
[params]
table = ""
*/
SELECT
    table_name,
    column_name,
    CASE WHEN starts_with(data_type, 'ENUM') THEN replace(data_type, 'ENUM', 'one of ') ELSE data_type END AS type,
    comment
FROM duckdb_columns()
WHERE schema_name = 'main' AND NOT internal AND $table IN ('', table_name) AND NOT starts_with(table_name, '_')
ORDER BY table_name ASC, column_index ASC
