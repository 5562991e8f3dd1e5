-- What a role may do, as functions tell, and the facts that has_privilege() judges by.
CREATE VIEW pg_internal.facts (fact) AS
SELECT make_array('role', CAST(oid AS VARCHAR), name, CAST(is_superuser AS VARCHAR)) FROM pg_internal.roles
UNION ALL SELECT make_array('member', member, role) FROM pg_internal.members
UNION ALL SELECT make_array('grant', kind, coalesce(schema, ''), object, role, privilege) FROM alluvium.grants
UNION ALL SELECT make_array('object', 'schema', CAST(oid AS VARCHAR), '', name) FROM pg_internal.schemas
UNION ALL SELECT make_array('object', 'database', '5', '', 'alluvium')
UNION ALL SELECT make_array('object', 'table', CAST(oid AS VARCHAR), schema, name) FROM pg_internal.relations
UNION ALL SELECT make_array('object', 'catalog', CAST(oid AS VARCHAR), 'pg_catalog', name) FROM pg_internal.catalogs
UNION ALL SELECT make_array('object', 'sequence', CAST(oid AS VARCHAR), schema, name, coalesce(relation, ''))
    FROM pg_internal.sequences;

CREATE FUNCTION has_table_privilege(arg, arg2, arg3) AS
    has_privilege('table', (SELECT array_agg(fact) FROM pg_internal.facts), current_user, arg, arg2, arg3, NULL);
CREATE FUNCTION has_any_column_privilege(arg, arg2, arg3) AS
    has_privilege('column', (SELECT array_agg(fact) FROM pg_internal.facts), current_user, arg, arg2, arg3, NULL);
CREATE FUNCTION has_column_privilege(arg, arg2, arg3, arg4) AS
    has_privilege('one column', (SELECT array_agg(fact) FROM pg_internal.facts), current_user, arg, arg2, arg3, arg4);
CREATE FUNCTION has_sequence_privilege(arg, arg2, arg3) AS
    has_privilege('sequence', (SELECT array_agg(fact) FROM pg_internal.facts), current_user, arg, arg2, arg3, NULL);
CREATE FUNCTION has_schema_privilege(arg, arg2, arg3) AS
    has_privilege('schema', (SELECT array_agg(fact) FROM pg_internal.facts), current_user, arg, arg2, arg3, NULL);
CREATE FUNCTION has_database_privilege(arg, arg2, arg3) AS
    has_privilege('database', (SELECT array_agg(fact) FROM pg_internal.facts), current_user, arg, arg2, arg3, NULL);
CREATE FUNCTION pg_has_role(arg, arg2, arg3) AS
    has_privilege('role', (SELECT array_agg(fact) FROM pg_internal.facts), current_user, arg, arg2, arg3, NULL);
-- All may call functions, and name types and languages.
CREATE FUNCTION has_function_privilege(arg, arg2, arg3) AS true;
CREATE FUNCTION has_tablespace_privilege(arg, arg2, arg3) AS true;
CREATE FUNCTION has_type_privilege(arg, arg2, arg3) AS true;
CREATE FUNCTION has_language_privilege(arg, arg2, arg3) AS true;
