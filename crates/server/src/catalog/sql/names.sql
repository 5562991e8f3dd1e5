-- Whether objects can be named without a schema: those of the search path and of pg_catalog.
CREATE FUNCTION pg_internal_visible(arg) AS
    coalesce(lookup(
        (SELECT array_agg(CAST(oid AS VARCHAR) || chr(31) || schema) FROM (
            SELECT oid, schema FROM pg_internal.relations
            UNION ALL SELECT oid, schema FROM pg_internal.indexes
            UNION ALL SELECT object_id('relation', schema, name), schema FROM alluvium.sequences
            UNION ALL SELECT oid, 'pg_catalog' FROM pg_internal.catalogs
        ) AS classes),
        CAST(arg AS VARCHAR)
    ), '');
CREATE FUNCTION pg_table_is_visible(arg) AS array_has(array_append(current_schemas(true), 'pg_temp'), pg_internal_visible(arg));
CREATE FUNCTION pg_type_is_visible(arg) AS arg IS NOT NULL;
CREATE FUNCTION pg_function_is_visible(arg) AS arg IS NOT NULL;
CREATE FUNCTION pg_operator_is_visible(arg) AS arg IS NOT NULL;
CREATE FUNCTION pg_opclass_is_visible(arg) AS arg IS NOT NULL;
CREATE FUNCTION pg_opfamily_is_visible(arg) AS arg IS NOT NULL;
CREATE FUNCTION pg_collation_is_visible(arg) AS arg IS NOT NULL;
CREATE FUNCTION pg_conversion_is_visible(arg) AS arg IS NOT NULL;
CREATE FUNCTION pg_statistics_obj_is_visible(arg) AS arg IS NOT NULL;
CREATE FUNCTION pg_ts_config_is_visible(arg) AS arg IS NOT NULL;
CREATE FUNCTION pg_ts_dict_is_visible(arg) AS arg IS NOT NULL;
