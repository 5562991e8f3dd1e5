CREATE VIEW information_schema.table_constraints AS
SELECT 'alluvium' AS constraint_catalog, schema AS constraint_schema, name AS constraint_name,
    'alluvium' AS table_catalog, schema AS table_schema, relation AS table_name, upper(kind) AS constraint_type,
    'NO' AS is_deferrable, 'NO' AS initially_deferred, CASE WHEN enforced THEN 'YES' ELSE 'NO' END AS enforced,
    CASE WHEN kind = 'unique' THEN 'YES' END AS nulls_distinct
FROM alluvium.constraints;

CREATE VIEW information_schema.key_column_usage AS
SELECT 'alluvium' AS constraint_catalog, schema AS constraint_schema, name AS constraint_name,
    'alluvium' AS table_catalog, schema AS table_schema, relation AS table_name, column_name,
    CAST(ordinal_position AS INTEGER) AS ordinal_position, CAST(NULL AS INTEGER) AS position_in_unique_constraint
FROM (
    SELECT schema, name, relation, unnest(columns) AS column_name,
        unnest(generate_series(1, CAST(array_length(columns) AS BIGINT))) AS ordinal_position
    FROM alluvium.constraints WHERE kind <> 'check'
) AS keys;

CREATE VIEW information_schema.constraint_column_usage AS
SELECT 'alluvium' AS table_catalog, schema AS table_schema, relation AS table_name, column_name,
    'alluvium' AS constraint_catalog, schema AS constraint_schema, name AS constraint_name
FROM (SELECT schema, name, relation, unnest(columns) AS column_name FROM alluvium.constraints) AS keys;

CREATE VIEW information_schema.check_constraints AS
SELECT 'alluvium' AS constraint_catalog, schema AS constraint_schema, name AS constraint_name, condition AS check_clause
FROM alluvium.constraints WHERE kind = 'check';

CREATE VIEW information_schema.referential_constraints AS
SELECT CAST(NULL AS VARCHAR) AS constraint_catalog, CAST(NULL AS VARCHAR) AS constraint_schema,
    CAST(NULL AS VARCHAR) AS constraint_name, CAST(NULL AS VARCHAR) AS unique_constraint_catalog,
    CAST(NULL AS VARCHAR) AS unique_constraint_schema, CAST(NULL AS VARCHAR) AS unique_constraint_name,
    CAST(NULL AS VARCHAR) AS match_option, CAST(NULL AS VARCHAR) AS update_rule, CAST(NULL AS VARCHAR) AS delete_rule
WHERE false;

CREATE VIEW information_schema.views AS
SELECT 'alluvium' AS table_catalog, schema AS table_schema, name AS table_name, definition AS view_definition,
    'NONE' AS check_option, 'NO' AS is_updatable, 'NO' AS is_insertable_into
FROM pg_internal.relations WHERE kind = 'v';

CREATE VIEW information_schema.sequences AS
SELECT 'alluvium' AS sequence_catalog, schema AS sequence_schema, name AS sequence_name, 'bigint' AS data_type,
    CAST(start AS VARCHAR) AS start_value, CAST(minimum AS VARCHAR) AS minimum_value,
    CAST(maximum AS VARCHAR) AS maximum_value, CAST(increment AS VARCHAR) AS "increment",
    CASE WHEN cycles THEN 'YES' ELSE 'NO' END AS cycle_option
FROM alluvium.sequences;

CREATE VIEW information_schema.routines AS
SELECT CAST(NULL AS VARCHAR) AS specific_catalog, CAST(NULL AS VARCHAR) AS specific_schema,
    CAST(NULL AS VARCHAR) AS specific_name, CAST(NULL AS VARCHAR) AS routine_catalog,
    CAST(NULL AS VARCHAR) AS routine_schema, CAST(NULL AS VARCHAR) AS routine_name,
    CAST(NULL AS VARCHAR) AS routine_type, CAST(NULL AS VARCHAR) AS data_type
WHERE false;

CREATE VIEW pg_internal.table_grants (grantor, grantee, schema, name, privilege, is_owner) AS
SELECT owner, owner, schema, name, privilege, true
FROM pg_internal.relations
CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE'), ('REFERENCES'), ('TRIGGER')) AS privileges (privilege)
UNION ALL
SELECT owner, role, relations.schema, relations.name, privilege, false
FROM pg_internal.relations AS relations
JOIN alluvium.grants AS grants
    ON grants.kind = 'table' AND grants.schema = relations.schema AND object = relations.name AND role <> owner AND privilege <> 'OWNER';

-- The roles that the session's has the rights of.
CREATE VIEW information_schema.enabled_roles AS
SELECT name AS role_name FROM pg_internal.roles WHERE pg_has_role(oid, 'USAGE');

CREATE VIEW information_schema.applicable_roles AS
SELECT member AS grantee, role AS role_name, 'NO' AS is_grantable
FROM pg_internal.members WHERE member IN (SELECT role_name FROM information_schema.enabled_roles);

CREATE VIEW information_schema.table_privileges AS
SELECT grantor, CASE grantee WHEN 'public' THEN 'PUBLIC' ELSE grantee END AS grantee, 'alluvium' AS table_catalog,
    schema AS table_schema, name AS table_name, privilege AS privilege_type,
    CASE WHEN is_owner THEN 'YES' ELSE 'NO' END AS is_grantable,
    CASE privilege WHEN 'SELECT' THEN 'YES' ELSE 'NO' END AS with_hierarchy
FROM pg_internal.table_grants
WHERE grantee = 'public' OR grantee IN (SELECT role_name FROM information_schema.enabled_roles)
    OR grantor IN (SELECT role_name FROM information_schema.enabled_roles);

CREATE VIEW information_schema.role_table_grants AS
SELECT * FROM information_schema.table_privileges WHERE grantee <> 'PUBLIC';
