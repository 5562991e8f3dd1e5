-- The owners of objects, and the privileges on them. As in Postgres, an object has no list of them before somebody has one.
CREATE VIEW pg_internal.rights (kind, schema, object, owner, owner_oid, acl) AS
SELECT kind, schema, object, owner_of(grants), object_id('role', '', owner_of(grants)), acl_of(kind, grants)
FROM (
    SELECT kind, coalesce(schema, '') AS schema, object, array_agg(make_array(role, privilege)) AS grants
    FROM alluvium.grants GROUP BY kind, coalesce(schema, ''), object
) AS objects;

-- A sequence with its rights; that of a column is its table's.
CREATE VIEW pg_internal.sequences (oid, schema, name, relation, owner, owner_oid, acl, start, minimum, maximum, increment, cycles) AS
SELECT object_id('relation', sequences.schema, sequences.name), sequences.schema, sequences.name, relation, coalesce(owner, 'alluvium'),
    coalesce(owner_oid, CAST(10 AS UINTEGER)), CASE WHEN relation IS NULL THEN acl END, start, minimum, maximum, increment, cycles
FROM alluvium.sequences AS sequences
LEFT JOIN pg_internal.rights AS rights
    ON rights.kind = CASE WHEN relation IS NULL THEN 'sequence' ELSE 'table' END AND rights.schema = sequences.schema
    AND rights.object = coalesce(relation, sequences.name);
