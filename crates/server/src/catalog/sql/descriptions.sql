-- Expressions are kept as SQL.
CREATE FUNCTION pg_get_expr(arg, arg2, arg3) AS CAST(arg AS VARCHAR);

CREATE FUNCTION pg_get_constraintdef(arg, arg2) AS
    lookup((SELECT array_agg(CAST(oid AS VARCHAR) || chr(31) || definition) FROM pg_internal.constraints), CAST(arg AS VARCHAR));

-- The definition with a schema, without one, and each of the columns, as parts of a text.
CREATE FUNCTION pg_get_indexdef(arg, arg2, arg3) AS
    split_part(
        lookup(
            (SELECT array_agg(
                CAST(indexes.oid AS VARCHAR) || chr(31) || indexdef || chr(31)
                || replace(indexdef, ' ON public.', ' ON ') || chr(31) || array_to_string(columns, chr(31)))
            FROM pg_internal.indexes JOIN pg_catalog.pg_indexes ON schema = schemaname AND name = indexname),
            CAST(arg AS VARCHAR)
        ),
        chr(31),
        CASE
            WHEN coalesce(CAST(arg2 AS BIGINT), 0) > 0 THEN CAST(arg2 AS BIGINT) + 2
            WHEN coalesce(CAST(arg3 AS BOOLEAN), false) THEN 2
            ELSE 1
        END
    );

CREATE FUNCTION pg_get_viewdef(arg, arg2) AS
    lookup(
        (SELECT array_agg(CAST(oid AS VARCHAR) || chr(31) || regexp_replace(definition, '(?is)^.*?\sAS\s+', ''))
        FROM pg_internal.relations WHERE kind IN ('v', 'm')),
        CAST(arg AS VARCHAR)
    );

CREATE FUNCTION pg_get_serial_sequence(arg, arg2) AS
    lookup(
        (SELECT array_agg(
            CASE schema WHEN 'public' THEN '' ELSE quoted_name(schema) || '.' END || quoted_name(relation) || '.' || name
            || chr(31) || schema || '.' || split_part('.' || sequence, '.', -1))
        FROM alluvium.columns WHERE sequence IS NOT NULL),
        replace(arg, 'public.', '') || '.' || arg2
    );

CREATE FUNCTION col_description(arg, arg2) AS
    lookup(
        (SELECT array_agg(CAST(objoid AS VARCHAR) || '.' || CAST(objsubid AS VARCHAR) || chr(31) || description)
        FROM pg_catalog.pg_description WHERE objsubid > 0),
        CAST(arg AS VARCHAR) || '.' || CAST(arg2 AS VARCHAR)
    );

CREATE FUNCTION obj_description(arg, arg2) AS
    CASE WHEN coalesce(CAST(arg2 AS VARCHAR), 'pg_class') = 'pg_class' THEN lookup(
        (SELECT array_agg(CAST(objoid AS VARCHAR) || chr(31) || description)
        FROM pg_catalog.pg_description WHERE objsubid = 0),
        CAST(arg AS VARCHAR)
    ) END;
CREATE FUNCTION shobj_description(arg, arg2) AS CAST(NULL AS VARCHAR);

-- Of objects that there are none of.
CREATE FUNCTION pg_get_triggerdef(arg, arg2) AS CAST(NULL AS VARCHAR);
CREATE FUNCTION pg_get_ruledef(arg, arg2) AS CAST(NULL AS VARCHAR);
CREATE FUNCTION pg_get_functiondef(arg) AS CAST(NULL AS VARCHAR);
CREATE FUNCTION pg_get_function_result(arg) AS CAST(NULL AS VARCHAR);
CREATE FUNCTION pg_get_function_arguments(arg) AS CAST(NULL AS VARCHAR);
CREATE FUNCTION pg_get_function_identity_arguments(arg) AS CAST(NULL AS VARCHAR);
CREATE FUNCTION pg_get_function_sqlbody(arg) AS CAST(NULL AS VARCHAR);
CREATE FUNCTION pg_get_partkeydef(arg) AS CAST(NULL AS VARCHAR);
CREATE FUNCTION pg_get_statisticsobjdef_columns(arg) AS CAST(NULL AS VARCHAR);
CREATE FUNCTION pg_relation_is_publishable(arg) AS false;
CREATE FUNCTION pg_partition_ancestors(arg) AS unnest(CAST(make_array(arg) AS UINTEGER[]));
CREATE FUNCTION pg_relation_size(arg, arg2) AS CAST(NULL AS BIGINT);
CREATE FUNCTION pg_table_size(arg) AS CAST(NULL AS BIGINT);
CREATE FUNCTION pg_indexes_size(arg) AS CAST(NULL AS BIGINT);
CREATE FUNCTION pg_total_relation_size(arg) AS CAST(NULL AS BIGINT);
CREATE FUNCTION pg_database_size(arg) AS CAST(NULL AS BIGINT);
CREATE FUNCTION pg_tablespace_location(arg) AS '';
CREATE FUNCTION getdatabaseencoding() AS 'UTF8';
CREATE FUNCTION pg_size_pretty(arg) AS CAST(arg AS VARCHAR) || ' bytes';
