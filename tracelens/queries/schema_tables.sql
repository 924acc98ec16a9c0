/*
The tables and views of a case, one line each: what one row is.
*/
SELECT
    table_name AS name,
    'table' AS kind,
    comment
FROM duckdb_tables()
WHERE schema_name = 'main' AND NOT internal AND NOT temporary AND NOT starts_with(table_name, '_')
UNION ALL
SELECT
    view_name AS name,
    'view' AS kind,
    comment
FROM duckdb_views()
WHERE schema_name = 'main' AND NOT internal AND NOT temporary AND NOT starts_with(view_name, '_')
ORDER BY kind ASC, name ASC
