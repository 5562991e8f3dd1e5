CREATE VIEW pg_catalog.pg_database AS
SELECT
    CAST(5 AS UINTEGER) AS oid,
    'alluvium' AS datname,
    coalesce(owner_oid, CAST(10 AS UINTEGER)) AS datdba,
    CAST(6 AS INTEGER) AS encoding,
    'c' AS datlocprovider,
    false AS datistemplate,
    true AS datallowconn,
    CAST(-1 AS INTEGER) AS datconnlimit,
    CAST(0 AS BIGINT) AS datfrozenxid,
    CAST(1 AS BIGINT) AS datminmxid,
    CAST(1663 AS UINTEGER) AS dattablespace,
    'C' AS datcollate,
    'C' AS datctype,
    CAST(NULL AS VARCHAR) AS daticulocale,
    CAST(NULL AS VARCHAR) AS datcollversion,
    CASE
        WHEN array_length(acl) = 2 AND array_to_string(acl, ' ') LIKE '% =Tc/%' THEN NULL
        ELSE coalesce(acl, acl_of_owner('database', coalesce(owner, 'alluvium')))
    END AS datacl
-- Without a right that anybody has there is no row of rights.
FROM (VALUES (5)) AS one (n) LEFT JOIN pg_internal.rights ON kind = 'database';

CREATE VIEW pg_catalog.pg_am (oid, amname, amhandler, amtype) AS
SELECT CAST(oid AS UINTEGER), name, handler, kind
FROM (VALUES (2, 'heap', 'heap_tableam_handler', 't'), (403, 'btree', 'bthandler', 'i')) AS known (oid, name, handler, kind);

CREATE VIEW pg_catalog.pg_language
    (oid, tableoid, lanname, lanowner, lanispl, lanpltrusted, lanplcallfoid, laninline, lanvalidator, lanacl) AS
SELECT CAST(oid AS UINTEGER), CAST(2612 AS UINTEGER), name, CAST(10 AS UINTEGER), false, true, CAST(0 AS UINTEGER),
    CAST(0 AS UINTEGER), CAST(0 AS UINTEGER), CAST(NULL AS VARCHAR[])
FROM (VALUES (12, 'internal'), (14, 'sql')) AS known (oid, name);

CREATE VIEW pg_catalog.pg_tablespace (oid, spcname, spcowner, spcacl, spcoptions) AS
SELECT CAST(oid AS UINTEGER), name, CAST(10 AS UINTEGER), CAST(NULL AS VARCHAR[]), CAST(NULL AS VARCHAR[])
FROM (VALUES (1663, 'pg_default'), (1664, 'pg_global')) AS known (oid, name);

CREATE VIEW pg_catalog.pg_collation AS
SELECT CAST(oid AS UINTEGER) AS oid, name AS collname, CAST(11 AS UINTEGER) AS collnamespace,
    CAST(10 AS UINTEGER) AS collowner, provider AS collprovider, true AS collisdeterministic,
    CAST(-1 AS INTEGER) AS collencoding, locale AS collcollate, locale AS collctype,
    CAST(NULL AS VARCHAR) AS colliculocale, CAST(NULL AS VARCHAR) AS collversion
FROM (VALUES (100, 'default', 'd', ''), (950, 'C', 'c', 'C'), (951, 'POSIX', 'c', 'POSIX')) AS known (oid, name, provider, locale);

CREATE VIEW pg_catalog.pg_settings AS
SELECT
    name, setting, CAST(NULL AS VARCHAR) AS unit, 'Client Connection Defaults' AS category, description AS short_desc,
    CAST(NULL AS VARCHAR) AS extra_desc, context, 'string' AS vartype, 'default' AS source,
    CAST(NULL AS VARCHAR) AS min_val, CAST(NULL AS VARCHAR) AS max_val, CAST(NULL AS VARCHAR[]) AS enumvals,
    setting AS boot_val, setting AS reset_val, CAST(NULL AS VARCHAR) AS sourcefile, CAST(NULL AS INTEGER) AS sourceline,
    false AS pending_restart
FROM (
    SELECT name, setting, description, 'user' AS context FROM alluvium.settings
    UNION ALL
    SELECT name, setting, description, 'internal' FROM pg_internal.constants
    WHERE name NOT IN (SELECT name FROM alluvium.settings)
) AS settings;

-- The words that a name cannot be without quotes.
CREATE VIEW pg_catalog.pg_get_keywords (word, catcode, barelabel, catdesc, baredesc) AS
SELECT word, 'R', true, 'reserved', 'can be bare label'
FROM (VALUES ('all'), ('and'), ('as'), ('asof'), ('case'), ('cast'), ('check'), ('constraint'), ('cross'), ('distinct'),
    ('else'), ('end'), ('except'), ('exists'), ('false'), ('fetch'), ('for'), ('foreign'), ('from'), ('full'), ('group'),
    ('having'), ('in'), ('index'), ('inner'), ('intersect'), ('interval'), ('into'), ('is'), ('join'), ('key'),
    ('lateral'), ('left'), ('like'), ('limit'), ('natural'), ('not'), ('null'), ('offset'), ('on'), ('or'), ('order'),
    ('outer'), ('primary'), ('qualify'), ('right'), ('select'), ('table'), ('then'), ('true'), ('union'), ('unique'),
    ('unnest'), ('using'), ('values'), ('when'), ('where'), ('window'), ('with')
) AS known (word);

CREATE FUNCTION version() AS 'PostgreSQL 15.0 (Alluvium {version})';
CREATE FUNCTION pg_backend_pid() AS CAST(coalesce(current_setting('alluvium.session', true), '0') AS INTEGER);
CREATE FUNCTION pg_is_in_recovery() AS false;
CREATE FUNCTION pg_my_temp_schema() AS CAST(0 AS UINTEGER);
CREATE FUNCTION pg_is_other_temp_schema(arg) AS false;
CREATE FUNCTION inet_server_addr() AS CAST(NULL AS VARCHAR);
CREATE FUNCTION inet_server_port() AS CAST(NULL AS INTEGER);
CREATE FUNCTION inet_client_addr() AS CAST(NULL AS VARCHAR);
CREATE FUNCTION inet_client_port() AS CAST(NULL AS INTEGER);
CREATE FUNCTION pg_encoding_to_char(arg) AS CASE arg WHEN 6 THEN 'UTF8' ELSE 'SQL_ASCII' END;
CREATE FUNCTION pg_client_encoding() AS 'UTF8';
CREATE FUNCTION pg_char_to_encoding(arg) AS CASE upper(arg) WHEN 'UTF8' THEN 6 ELSE -1 END;
CREATE FUNCTION pg_postmaster_start_time() AS CAST('2000-01-01 00:00:00+00' AS TIMESTAMPTZ);
CREATE FUNCTION pg_conf_load_time() AS CAST('2000-01-01 00:00:00+00' AS TIMESTAMPTZ);
CREATE FUNCTION txid_current() AS CAST(0 AS BIGINT);
