-- Schemas, and the names of objects that others refer to.
CREATE VIEW pg_internal.schemas (oid, name) AS
SELECT object_id('schema', '', name), name
FROM (SELECT schema_name AS name FROM information_schema.schemata UNION SELECT 'pg_catalog') AS names;

-- The catalogs that clients name as values of regclass.
CREATE VIEW pg_internal.catalogs (oid, name) AS
SELECT CAST(oid AS UINTEGER), name
FROM (VALUES
    (1247, 'pg_type'), (1249, 'pg_attribute'), (1255, 'pg_proc'), (1259, 'pg_class'), (1260, 'pg_authid'),
    (1262, 'pg_database'), (1213, 'pg_tablespace'), (2604, 'pg_attrdef'), (2606, 'pg_constraint'), (2608, 'pg_depend'),
    (2609, 'pg_description'), (2610, 'pg_index'), (2611, 'pg_inherits'), (2615, 'pg_namespace'), (2618, 'pg_rewrite'),
    (2620, 'pg_trigger'), (2601, 'pg_am'), (2616, 'pg_opclass'), (3456, 'pg_collation'), (3501, 'pg_enum'),
    (2224, 'pg_sequence'), (3079, 'pg_extension'), (3541, 'pg_range'), (2617, 'pg_operator')
) AS known (oid, name);

CREATE VIEW pg_internal.relations
    (oid, schema, name, kind, persistence, columns, indexes, checks, tuples, definition, comment, owner, owner_oid, acl) AS
SELECT
    object_id('relation', relations.schema, relation),
    relations.schema,
    relation,
    CASE relations.kind WHEN 'table' THEN 'r' WHEN 'materialized view' THEN 'm' ELSE 'v' END,
    CASE WHEN temporary THEN 't' ELSE 'p' END,
    columns, indexes, checks, rows, definition, comment,
    coalesce(owner, 'alluvium'), coalesce(owner_oid, CAST(10 AS UINTEGER)), acl
FROM alluvium.relations AS relations
LEFT JOIN pg_internal.rights AS rights
    ON rights.kind = 'table' AND rights.schema = relations.schema AND rights.object = relation
WHERE relations.kind <> 'index';

-- The order of a table by its primary key is an index, too.
CREATE VIEW pg_internal.indexes
    (oid, relation_oid, schema, relation, name, columns, positions, is_unique, is_primary, comment, owner_oid) AS
SELECT
    object_id('relation', indexes.schema, name), object_id('relation', indexes.schema, relation),
    indexes.schema, relation, name, columns, positions, is_unique, is_primary, comment, coalesce(owner_oid, CAST(10 AS UINTEGER))
FROM (
    SELECT schema, relation, name, columns, positions, "unique" AS is_unique, false AS is_primary, comment
    FROM alluvium.indexes
    UNION ALL
    SELECT schema, relation, name, columns, positions, true, true, CAST(NULL AS VARCHAR)
    FROM alluvium.constraints WHERE kind = 'primary key'
) AS indexes
LEFT JOIN pg_internal.rights AS rights
    ON rights.kind = 'table' AND rights.schema = indexes.schema AND rights.object = relation;

-- Everything that is a row of pg_class, with its name as regclass shows it.
CREATE VIEW pg_internal.classes (oid, name) AS
SELECT oid, CASE schema WHEN 'public' THEN quoted_name(name) ELSE quoted_name(schema) || '.' || quoted_name(name) END
FROM (
    SELECT oid, schema, name FROM pg_internal.relations
    UNION ALL SELECT oid, schema, name FROM pg_internal.indexes
    UNION ALL SELECT object_id('relation', schema, name), schema, name FROM alluvium.sequences
    UNION ALL SELECT oid, 'public', name FROM pg_internal.catalogs
) AS classes;

CREATE FUNCTION regclass(arg) AS
    relation_reference(arg, (SELECT array_agg(CAST(oid AS VARCHAR) || chr(31) || name) FROM pg_internal.classes));
CREATE FUNCTION to_regclass(arg) AS
    relation_or_null(arg, (SELECT array_agg(CAST(oid AS VARCHAR) || chr(31) || name) FROM pg_internal.classes));

-- A type has the name that SQL gives it and that of pg_type, of which the first is shown.
CREATE VIEW pg_internal.type_entries (entry, place) AS
SELECT CAST(oid AS VARCHAR) || chr(31) || name, place
FROM (
    SELECT oid, name, 1 AS place FROM pg_internal.types
    UNION ALL SELECT oid, name, 2 FROM pg_internal.shown_types
) AS names;

CREATE FUNCTION regtype(arg) AS type_reference(arg, (SELECT array_agg(entry ORDER BY place) FROM pg_internal.type_entries));
CREATE FUNCTION _regtype(arg) AS type_reference(arg, (SELECT array_agg(entry ORDER BY place) FROM pg_internal.type_entries));
CREATE FUNCTION to_regtype(arg) AS type_or_null(arg, (SELECT array_agg(entry ORDER BY place) FROM pg_internal.type_entries));
CREATE FUNCTION regnamespace(arg) AS
    schema_reference(arg, (SELECT array_agg(CAST(oid AS VARCHAR) || chr(31) || name) FROM pg_internal.schemas));
