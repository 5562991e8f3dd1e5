--- 1
COPY (select * from t) TO STDOUT WITH BINARY
--- 1
SELECT version();
--- 1
SELECT
    attrelid,
    attname,
    atttypid
FROM
    pg_catalog.pg_attribute
ORDER BY
    attrelid, attnum
--- 3
SELECT oid, typname, typreceive, typbasetype, typrelid, typarray FROM pg_catalog.pg_type WHERE (typreceive != 0 OR typsend != 0) AND typtype != 'r' AND typreceive::TEXT != 'array_recv'
--- 1
BEGIN TRANSACTION
--- 1
COPY (select * from t) TO STDOUT (FORMAT binary)
