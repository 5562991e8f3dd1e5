-- Roles. Before the first one is created there is one that may do everything, and which owns, as Postgres's, what is nobody else's.
CREATE VIEW pg_internal.roles
    (oid, name, is_superuser, can_create_roles, can_create_databases, can_login, connection_limit, valid_until, has_password, member_of) AS
SELECT
    object_id('role', '', name), name, superuser, create_role, name = 'alluvium', login,
    CAST(coalesce(connection_limit, -1) AS INTEGER), CAST(valid_until AS TIMESTAMPTZ), has_password, member_of
FROM alluvium.roles
UNION ALL
SELECT
    object_id('role', '', 'alluvium'), 'alluvium', true, true, true, (SELECT count(*) FROM alluvium.roles) = 0,
    CAST(-1 AS INTEGER), CAST(NULL AS TIMESTAMPTZ), false, CAST(NULL AS VARCHAR[])
WHERE 'alluvium' NOT IN (SELECT name FROM alluvium.roles)
UNION ALL
SELECT
    object_id('role', '', name), name, false, false, false, false,
    CAST(-1 AS INTEGER), CAST(NULL AS TIMESTAMPTZ), false, CAST(NULL AS VARCHAR[])
FROM (VALUES ('pg_read_server_files'), ('pg_write_server_files')) AS predefined (name);

CREATE VIEW pg_internal.members (member, role) AS SELECT name, unnest(member_of) FROM pg_internal.roles;

CREATE VIEW pg_catalog.pg_roles AS
SELECT
    name AS rolname,
    is_superuser AS rolsuper,
    true AS rolinherit,
    can_create_roles AS rolcreaterole,
    can_create_databases AS rolcreatedb,
    can_login AS rolcanlogin,
    can_create_databases AS rolreplication,
    connection_limit AS rolconnlimit,
    '********' AS rolpassword,
    valid_until AS rolvaliduntil,
    can_create_databases AS rolbypassrls,
    CAST(NULL AS VARCHAR[]) AS rolconfig,
    oid
FROM pg_internal.roles;

-- Verifiers are for nobody to see.
CREATE VIEW pg_catalog.pg_authid AS
SELECT
    oid,
    name AS rolname,
    is_superuser AS rolsuper,
    true AS rolinherit,
    can_create_roles AS rolcreaterole,
    can_create_databases AS rolcreatedb,
    can_login AS rolcanlogin,
    can_create_databases AS rolreplication,
    can_create_databases AS rolbypassrls,
    connection_limit AS rolconnlimit,
    CASE WHEN has_password THEN '********' END AS rolpassword,
    valid_until AS rolvaliduntil
FROM pg_internal.roles;

CREATE VIEW pg_catalog.pg_auth_members AS
SELECT
    object_id('role', '', role) AS roleid,
    object_id('role', '', member) AS member,
    CAST(10 AS UINTEGER) AS grantor,
    false AS admin_option
FROM pg_internal.members;

CREATE VIEW pg_catalog.pg_shadow AS
SELECT rolname AS usename, oid AS usesysid, rolcreatedb AS usecreatedb, rolsuper AS usesuper,
    rolreplication AS userepl, rolbypassrls AS usebypassrls, rolpassword AS passwd, rolvaliduntil AS valuntil,
    CAST(NULL AS VARCHAR[]) AS useconfig
FROM pg_catalog.pg_authid WHERE rolcanlogin;

CREATE VIEW pg_catalog.pg_user AS
SELECT usename, usesysid, usecreatedb, usesuper, userepl, usebypassrls, '********' AS passwd, valuntil, useconfig
FROM pg_catalog.pg_shadow;

CREATE VIEW pg_catalog.pg_group AS
SELECT name AS groname, oid AS grosysid,
    (SELECT array_agg(object_id('role', '', member)) FROM pg_internal.members WHERE role = roles.name) AS grolist
FROM pg_internal.roles AS roles WHERE NOT can_login;

CREATE FUNCTION regrole(arg) AS
    role_reference(arg, (SELECT array_agg(CAST(oid AS VARCHAR) || chr(31) || name) FROM pg_internal.roles));
CREATE FUNCTION pg_get_userbyid(arg) AS
    coalesce(
        lookup((SELECT array_agg(CAST(oid AS VARCHAR) || chr(31) || name) FROM pg_internal.roles), CAST(arg AS VARCHAR)),
        'unknown (OID=' || CAST(arg AS VARCHAR) || ')'
    );
