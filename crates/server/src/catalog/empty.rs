//! Relations of Postgres without rows: of objects that the engine does not have, or that belong to Postgres alone.

/// Their names, and their columns with Postgres's types.
const EMPTY: &[(&str, &str)] = &[
    (
        "pg_policy",
        "oid oid, polname text, polrelid oid, polcmd text, polpermissive bool, polroles oid[], polqual text, polwithcheck text",
    ),
    (
        "pg_statistic_ext",
        "oid oid, stxrelid oid, stxname text, stxnamespace oid, stxowner oid, stxstattarget int4, stxkeys int2[], stxkind text[], stxexprs text",
    ),
    (
        "pg_publication",
        "oid oid, pubname text, pubowner oid, puballtables bool, pubinsert bool, pubupdate bool, pubdelete bool, pubtruncate bool, pubviaroot bool",
    ),
    ("pg_publication_namespace", "oid oid, pnpubid oid, pnnspid oid"),
    ("pg_publication_rel", "oid oid, prpubid oid, prrelid oid, prqual text, prattrs int2[]"),
    (
        "pg_trigger",
        "oid oid, tgrelid oid, tgparentid oid, tgname text, tgfoid oid, tgtype int2, tgenabled text, tgisinternal bool, tgconstrrelid oid, tgconstrindid oid, tgconstraint oid, tgdeferrable bool, tginitdeferred bool, tgnargs int2, tgattr int2[], tgargs text, tgqual text, tgoldtable text, tgnewtable text",
    ),
    ("pg_inherits", "inhrelid oid, inhparent oid, inhseqno int4, inhdetachpending bool"),
    (
        "pg_partitioned_table",
        "partrelid oid, partstrat text, partnatts int2, partdefid oid, partattrs int2[], partclass oid[], partcollation oid[], partexprs text",
    ),
    ("pg_foreign_table", "ftrelid oid, ftserver oid, ftoptions text[]"),
    (
        "pg_foreign_server",
        "oid oid, srvname text, srvowner oid, srvfdw oid, srvtype text, srvversion text, srvacl text[], srvoptions text[]",
    ),
    (
        "pg_foreign_data_wrapper",
        "oid oid, fdwname text, fdwowner oid, fdwhandler oid, fdwvalidator oid, fdwacl text[], fdwoptions text[]",
    ),
    ("pg_user_mapping", "oid oid, umuser oid, umserver oid, umoptions text[]"),
    ("pg_enum", "oid oid, enumtypid oid, enumsortorder float4, enumlabel text"),
    (
        "pg_range",
        "rngtypid oid, rngsubtype oid, rngmultitypid oid, rngcollation oid, rngsubopc oid, rngcanonical text, rngsubdiff text",
    ),
    (
        "pg_extension",
        "oid oid, extname text, extowner oid, extnamespace oid, extrelocatable bool, extversion text, extconfig oid[], extcondition text[]",
    ),
    (
        "pg_available_extensions",
        "name text, default_version text, installed_version text, comment text",
    ),
    ("pg_db_role_setting", "setdatabase oid, setrole oid, setconfig text[]"),
    ("pg_shdescription", "objoid oid, classoid oid, description text"),
    (
        "pg_shdepend",
        "dbid oid, classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, deptype text",
    ),
    (
        "pg_default_acl",
        "oid oid, defaclrole oid, defaclnamespace oid, defaclobjtype text, defaclacl text[]",
    ),
    (
        "pg_event_trigger",
        "oid oid, evtname text, evtevent text, evtowner oid, evtfoid oid, evtenabled text, evttags text[]",
    ),
    ("pg_seclabel", "objoid oid, classoid oid, objsubid int4, provider text, label text"),
    (
        "pg_conversion",
        "oid oid, conname text, connamespace oid, conowner oid, conforencoding int4, contoencoding int4, conproc text, condefault bool",
    ),
    (
        "pg_cast",
        "oid oid, castsource oid, casttarget oid, castfunc oid, castcontext text, castmethod text",
    ),
    (
        "pg_operator",
        "oid oid, oprname text, oprnamespace oid, oprowner oid, oprkind text, oprcanmerge bool, oprcanhash bool, oprleft oid, oprright oid, oprresult oid, oprcom oid, oprnegate oid, oprcode text, oprrest text, oprjoin text",
    ),
    (
        "pg_opclass",
        "oid oid, opcmethod oid, opcname text, opcnamespace oid, opcowner oid, opcfamily oid, opcintype oid, opcdefault bool, opckeytype oid",
    ),
    ("pg_opfamily", "oid oid, opfmethod oid, opfname text, opfnamespace oid, opfowner oid"),
    (
        "pg_aggregate",
        "aggfnoid oid, aggkind text, aggnumdirectargs int2, aggtransfn text, aggfinalfn text, aggtranstype oid, agginitval text",
    ),
    ("pg_rules", "schemaname text, tablename text, rulename text, definition text"),
    (
        "pg_policies",
        "schemaname text, tablename text, policyname text, permissive text, roles text[], cmd text, qual text, with_check text",
    ),
    (
        "pg_prepared_statements",
        "name text, statement text, prepare_time timestamptz, parameter_types text[], from_sql bool",
    ),
    (
        "pg_prepared_xacts",
        "transaction int8, gid text, prepared timestamptz, owner text, database text",
    ),
    (
        "pg_cursors",
        "name text, statement text, is_holdable bool, is_binary bool, is_scrollable bool, creation_time timestamptz",
    ),
    (
        "pg_locks",
        "locktype text, database oid, relation oid, page int4, tuple int2, virtualxid text, transactionid int8, classid oid, objid oid, objsubid int2, virtualtransaction text, pid int4, mode text, granted bool, fastpath bool, waitstart timestamptz",
    ),
    (
        "pg_stat_activity",
        "datid oid, datname text, pid int4, leader_pid int4, usesysid oid, usename text, application_name text, client_addr text, client_hostname text, client_port int4, backend_start timestamptz, xact_start timestamptz, query_start timestamptz, state_change timestamptz, wait_event_type text, wait_event text, state text, backend_xid int8, backend_xmin int8, query_id int8, query text, backend_type text",
    ),
    (
        "pg_stat_user_tables",
        "relid oid, schemaname text, relname text, seq_scan int8, seq_tup_read int8, idx_scan int8, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_live_tup int8, n_dead_tup int8",
    ),
    ("pg_largeobject_metadata", "oid oid, lomowner oid, lomacl text[]"),
    (
        "pg_subscription",
        "oid oid, subdbid oid, subname text, subowner oid, subenabled bool, subconninfo text, subslotname text, subpublications text[]",
    ),
    ("pg_ts_config", "oid oid, cfgname text, cfgnamespace oid, cfgowner oid, cfgparser oid"),
    (
        "pg_ts_dict",
        "oid oid, dictname text, dictnamespace oid, dictowner oid, dicttemplate oid, dictinitoption text",
    ),
];

/// The views.
pub(super) fn sql() -> String {
    let views = EMPTY.iter().map(|(name, columns)| {
        let columns = columns.split(", ").filter_map(|column| column.split_once(' '));
        let columns: Vec<String> =
            columns.map(|(name, of)| format!("CAST(NULL AS {}) AS {name}", written(of))).collect();
        format!("CREATE VIEW pg_catalog.{name} AS SELECT {} WHERE false;\n", columns.join(", "))
    });
    views.collect()
}

/// A type of Postgres as SQL here spells it.
fn written(of: &str) -> &str {
    match of {
        "oid" => "UINTEGER",
        "oid[]" => "UINTEGER[]",
        "bool" => "BOOLEAN",
        "int2" => "SMALLINT",
        "int2[]" => "SMALLINT[]",
        "int4" => "INTEGER",
        "int8" => "BIGINT",
        "float4" => "REAL",
        "text[]" => "VARCHAR[]",
        "timestamptz" => "TIMESTAMPTZ",
        _ => "VARCHAR",
    }
}
