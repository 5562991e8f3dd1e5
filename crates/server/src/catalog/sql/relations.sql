CREATE VIEW pg_catalog.pg_namespace AS
SELECT oid, name AS nspname, coalesce(owner_oid, CAST(10 AS UINTEGER)) AS nspowner,
    coalesce(acl, CASE name WHEN 'public' THEN acl_of_owner('schema', coalesce(owner, 'alluvium')) END) AS nspacl
FROM pg_internal.schemas LEFT JOIN pg_internal.rights ON kind = 'schema' AND object = name;

CREATE VIEW pg_catalog.pg_class AS
SELECT
    oid,
    relname,
    object_id('schema', '', schema) AS relnamespace,
    reltype,
    CAST(0 AS UINTEGER) AS reloftype,
    relowner,
    CAST(CASE WHEN relkind IN ('r', 'm') THEN 2 WHEN relkind = 'i' THEN 403 ELSE 0 END AS UINTEGER) AS relam,
    oid AS relfilenode,
    CAST(0 AS UINTEGER) AS reltablespace,
    CAST(0 AS INTEGER) AS relpages,
    CAST(coalesce(tuples, -1) AS REAL) AS reltuples,
    CAST(0 AS INTEGER) AS relallvisible,
    CAST(0 AS UINTEGER) AS reltoastrelid,
    indexes > 0 AS relhasindex,
    false AS relisshared,
    persistence AS relpersistence,
    relkind,
    CAST(columns AS SMALLINT) AS relnatts,
    CAST(checks AS SMALLINT) AS relchecks,
    relkind IN ('v', 'm') AS relhasrules,
    false AS relhastriggers,
    false AS relhassubclass,
    false AS relrowsecurity,
    false AS relforcerowsecurity,
    true AS relispopulated,
    CASE WHEN relkind IN ('r', 'm') THEN 'd' ELSE 'n' END AS relreplident,
    false AS relispartition,
    CAST(0 AS UINTEGER) AS relrewrite,
    CAST(0 AS BIGINT) AS relfrozenxid,
    CAST(0 AS BIGINT) AS relminmxid,
    relacl,
    CAST(NULL AS VARCHAR[]) AS reloptions,
    CAST(NULL AS VARCHAR) AS relpartbound
FROM (
    SELECT oid, schema, name AS relname, object_id('type', schema, name) AS reltype, kind AS relkind, persistence,
        columns, indexes, checks, CAST(tuples AS DOUBLE) AS tuples, owner_oid AS relowner, acl AS relacl
    FROM pg_internal.relations
    UNION ALL
    SELECT oid, schema, name, CAST(0 AS UINTEGER), 'i', 'p', CAST(array_length(columns) AS BIGINT), 0, 0, CAST(0 AS DOUBLE),
        owner_oid, CAST(NULL AS VARCHAR[])
    FROM pg_internal.indexes
    UNION ALL
    SELECT oid, schema, name, CAST(0 AS UINTEGER), 'S', 'p', 3, 0, 0, CAST(1 AS DOUBLE), owner_oid, acl
    FROM pg_internal.sequences
    UNION ALL
    SELECT oid, 'pg_catalog', name, CAST(0 AS UINTEGER), 'r', 'p', 0, 0, 0, CAST(0 AS DOUBLE), CAST(10 AS UINTEGER),
        make_array('alluvium=arwdDxt/alluvium', '=r/alluvium')
    FROM pg_internal.catalogs
) AS classes;

CREATE VIEW pg_catalog.pg_type AS
SELECT
    oid,
    typname,
    object_id('schema', '', schema) AS typnamespace,
    typowner,
    CAST(length AS SMALLINT) AS typlen,
    by_value AS typbyval,
    kind AS typtype,
    category AS typcategory,
    oid IN (16, 25, 701, 1184, 1186) AS typispreferred,
    true AS typisdefined,
    ',' AS typdelim,
    typrelid,
    CASE WHEN functions = 'array_' THEN 'array_subscript_handler' ELSE '-' END AS typsubscript,
    typelem,
    typarray,
    function_reference(functions || 'in') AS typinput,
    function_reference(functions || 'out') AS typoutput,
    function_reference(functions || 'recv') AS typreceive,
    function_reference(functions || 'send') AS typsend,
    function_reference('-') AS typmodin,
    function_reference('-') AS typmodout,
    function_reference('-') AS typanalyze,
    'i' AS typalign,
    'p' AS typstorage,
    false AS typnotnull,
    CAST(0 AS UINTEGER) AS typbasetype,
    CAST(-1 AS INTEGER) AS typtypmod,
    CAST(0 AS INTEGER) AS typndims,
    typcollation,
    CAST(NULL AS VARCHAR) AS typdefaultbin,
    CAST(NULL AS VARCHAR) AS typdefault,
    CAST(NULL AS VARCHAR[]) AS typacl
FROM (
    SELECT CAST(oid AS UINTEGER) AS oid, name AS typname, 'pg_catalog' AS schema, length, by_value, kind, category,
        CAST(0 AS UINTEGER) AS typrelid, CAST(element AS UINTEGER) AS typelem, CAST(array_oid AS UINTEGER) AS typarray,
        functions, CAST(collation AS UINTEGER) AS typcollation, CAST(10 AS UINTEGER) AS typowner
    FROM pg_internal.types
    UNION ALL
    SELECT object_id('type', schema, name), name, schema, -1, false, 'c', 'C', oid, CAST(0 AS UINTEGER),
        CAST(0 AS UINTEGER), 'record_', CAST(0 AS UINTEGER), owner_oid
    FROM pg_internal.relations
) AS types;

CREATE VIEW pg_catalog.pg_attribute AS
SELECT
    attrelid,
    attname,
    atttypid,
    CAST(-1 AS INTEGER) AS attstattarget,
    CAST(CASE
        WHEN atttypid IN (16) THEN 1 WHEN atttypid IN (21) THEN 2 WHEN atttypid IN (23, 700, 1082) THEN 4
        WHEN atttypid IN (20, 701, 1083, 1114, 1184) THEN 8 WHEN atttypid IN (1186) THEN 16 ELSE -1
    END AS SMALLINT) AS attlen,
    attnum,
    CAST(CASE WHEN right(type, 1) = ']' THEN 1 ELSE 0 END AS INTEGER) AS attndims,
    CAST(-1 AS INTEGER) AS attcacheoff,
    column_type_modifier(type) AS atttypmod,
    false AS attbyval,
    'i' AS attalign,
    'p' AS attstorage,
    '' AS attcompression,
    attnotnull,
    atthasdef,
    false AS atthasmissing,
    attidentity,
    '' AS attgenerated,
    false AS attisdropped,
    true AS attislocal,
    CAST(0 AS INTEGER) AS attinhcount,
    CAST(CASE WHEN atttypid IN (25, 1009) THEN 100 ELSE 0 END AS UINTEGER) AS attcollation,
    CAST(NULL AS VARCHAR[]) AS attacl,
    CAST(NULL AS VARCHAR[]) AS attoptions,
    CAST(NULL AS VARCHAR[]) AS attfdwoptions,
    CAST(NULL AS VARCHAR[]) AS attmissingval
FROM (
    SELECT
        object_id('relation', schema, relation) AS attrelid,
        name AS attname,
        column_type_id(type) AS atttypid,
        type,
        CAST(position AS SMALLINT) AS attnum,
        NOT nullable AS attnotnull,
        "default" IS NOT NULL AND coalesce(generated, '') <> 'always' AS atthasdef,
        CASE WHEN generated = 'always' THEN 'a' ELSE '' END AS attidentity
    FROM alluvium.columns
) AS attributes;

CREATE VIEW pg_catalog.pg_attrdef AS
SELECT
    object_id('default', schema, relation || '.' || name) AS oid,
    object_id('relation', schema, relation) AS adrelid,
    CAST(position AS SMALLINT) AS adnum,
    "default" AS adbin
FROM alluvium.columns
WHERE "default" IS NOT NULL AND coalesce(generated, '') <> 'always';

CREATE VIEW pg_catalog.pg_index AS
SELECT
    oid AS indexrelid,
    relation_oid AS indrelid,
    CAST(array_length(positions) AS SMALLINT) AS indnatts,
    CAST(array_length(positions) AS SMALLINT) AS indnkeyatts,
    is_unique AS indisunique,
    false AS indnullsnotdistinct,
    is_primary AS indisprimary,
    false AS indisexclusion,
    true AS indimmediate,
    false AS indisclustered,
    true AS indisvalid,
    false AS indcheckxmin,
    true AS indisready,
    true AS indislive,
    false AS indisreplident,
    as_vector(positions) AS indkey,
    oidvector(array_repeat(0, CAST(array_length(positions) AS BIGINT))) AS indcollation,
    oidvector(array_repeat(0, CAST(array_length(positions) AS BIGINT))) AS indclass,
    int2vector(array_repeat(0, CAST(array_length(positions) AS BIGINT))) AS indoption,
    CAST(NULL AS VARCHAR) AS indexprs,
    CAST(NULL AS VARCHAR) AS indpred
FROM pg_internal.indexes;

CREATE VIEW pg_internal.constraints (oid, schema, relation, name, kind, positions, definition, condition) AS
SELECT
    object_id('constraint', schema, relation || '.' || name),
    schema,
    relation,
    name,
    CASE kind WHEN 'primary key' THEN 'p' WHEN 'unique' THEN 'u' ELSE 'c' END,
    positions,
    CASE kind
        WHEN 'primary key' THEN 'PRIMARY KEY (' || quoted_names(columns) || ')'
        WHEN 'unique' THEN 'UNIQUE (' || quoted_names(columns) || ')'
        ELSE 'CHECK (' || condition || ')'
    END,
    condition
FROM alluvium.constraints;

CREATE VIEW pg_catalog.pg_constraint AS
SELECT
    oid,
    name AS conname,
    object_id('schema', '', schema) AS connamespace,
    kind AS contype,
    false AS condeferrable,
    false AS condeferred,
    true AS convalidated,
    object_id('relation', schema, relation) AS conrelid,
    CAST(0 AS UINTEGER) AS contypid,
    CASE WHEN kind = 'c' THEN CAST(0 AS UINTEGER) ELSE object_id('relation', schema, name) END AS conindid,
    CAST(0 AS UINTEGER) AS conparentid,
    CAST(0 AS UINTEGER) AS confrelid,
    ' ' AS confupdtype,
    ' ' AS confdeltype,
    ' ' AS confmatchtype,
    true AS conislocal,
    CAST(0 AS INTEGER) AS coninhcount,
    true AS connoinherit,
    positions AS conkey,
    CAST(NULL AS SMALLINT[]) AS confkey,
    CAST(NULL AS UINTEGER[]) AS conpfeqop,
    CAST(NULL AS UINTEGER[]) AS conppeqop,
    CAST(NULL AS UINTEGER[]) AS conffeqop,
    CAST(NULL AS SMALLINT[]) AS confdelsetcols,
    CAST(NULL AS UINTEGER[]) AS conexclop,
    condition AS conbin
FROM pg_internal.constraints;

CREATE VIEW pg_catalog.pg_sequence AS
SELECT
    object_id('relation', schema, name) AS seqrelid,
    CAST(20 AS UINTEGER) AS seqtypid,
    start AS seqstart,
    increment AS seqincrement,
    maximum AS seqmax,
    minimum AS seqmin,
    CAST(1 AS BIGINT) AS seqcache,
    cycles AS seqcycle
FROM alluvium.sequences;

CREATE VIEW pg_catalog.pg_rewrite AS
SELECT
    object_id('rule', schema, name) AS oid,
    '_RETURN' AS rulename,
    oid AS ev_class,
    '1' AS ev_type,
    'O' AS ev_enabled,
    true AS is_instead,
    CAST(NULL AS VARCHAR) AS ev_qual,
    CAST(NULL AS VARCHAR) AS ev_action
FROM pg_internal.relations
WHERE kind IN ('v', 'm');

-- A view depends on its rule, and the rule on what the view reads.
CREATE VIEW pg_catalog.pg_depend AS
SELECT
    CAST(2618 AS UINTEGER) AS classid,
    object_id('rule', schema, relation) AS objid,
    CAST(0 AS INTEGER) AS objsubid,
    CAST(1259 AS UINTEGER) AS refclassid,
    read AS refobjid,
    CAST(0 AS INTEGER) AS refobjsubid,
    deptype
FROM (
    SELECT schema, name AS relation, oid AS read, 'i' AS deptype FROM pg_internal.relations WHERE kind IN ('v', 'm')
    UNION ALL
    SELECT schema, relation, object_id('relation', read_schema, read_relation), 'n' FROM alluvium.dependencies
) AS dependencies;

CREATE VIEW pg_catalog.pg_description AS
SELECT objoid, CAST(1259 AS UINTEGER) AS classoid, objsubid, description
FROM (
    SELECT oid AS objoid, CAST(0 AS INTEGER) AS objsubid, comment AS description FROM pg_internal.relations
    UNION ALL SELECT oid, CAST(0 AS INTEGER), comment FROM pg_internal.indexes
    UNION ALL SELECT object_id('relation', schema, relation), position, comment FROM alluvium.columns
) AS descriptions
WHERE description IS NOT NULL;

CREATE VIEW pg_catalog.pg_tables AS
SELECT schema AS schemaname, name AS tablename, owner AS tableowner, CAST(NULL AS VARCHAR) AS tablespace,
    indexes > 0 AS hasindexes, false AS hasrules, false AS hastriggers, false AS rowsecurity
FROM pg_internal.relations WHERE kind = 'r';

CREATE VIEW pg_catalog.pg_views AS
SELECT schema AS schemaname, name AS viewname, owner AS viewowner, definition
FROM pg_internal.relations WHERE kind = 'v';

CREATE VIEW pg_catalog.pg_matviews AS
SELECT schema AS schemaname, name AS matviewname, owner AS matviewowner, CAST(NULL AS VARCHAR) AS tablespace,
    indexes > 0 AS hasindexes, true AS ispopulated, definition
FROM pg_internal.relations WHERE kind = 'm';

CREATE VIEW pg_internal.index_definitions (oid, definition, relation, columns) AS
SELECT
    oid,
    'CREATE ' || CASE WHEN is_unique THEN 'UNIQUE ' ELSE '' END || 'INDEX ' || quoted_name(name) || ' ON ',
    CASE schema WHEN 'public' THEN '' ELSE quoted_name(schema) || '.' END || quoted_name(relation),
    columns
FROM pg_internal.indexes;

CREATE VIEW pg_catalog.pg_indexes AS
SELECT schema AS schemaname, relation AS tablename, name AS indexname, CAST(NULL AS VARCHAR) AS tablespace,
    'CREATE ' || CASE WHEN is_unique THEN 'UNIQUE ' ELSE '' END || 'INDEX ' || quoted_name(name) || ' ON '
    || quoted_name(schema) || '.' || quoted_name(relation) || ' USING btree (' || quoted_names(columns) || ')' AS indexdef
FROM pg_internal.indexes;

CREATE VIEW pg_catalog.pg_sequences AS
SELECT schema AS schemaname, name AS sequencename, owner AS sequenceowner, 'bigint' AS data_type,
    start AS start_value, minimum AS min_value, maximum AS max_value, increment AS increment_by, cycles AS "cycle",
    CAST(1 AS BIGINT) AS cache_size, CAST(NULL AS BIGINT) AS last_value
FROM pg_internal.sequences;
