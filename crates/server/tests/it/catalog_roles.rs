//! What the catalog tells of roles and rights: to psql's commands, by functions, and to each role.

use alluvium::arrow::util::display::{ArrayFormatter, FormatOptions};
use alluvium::{Engine, Outcome, Session};
use alluvium_server::with_catalog;
use tokio_postgres::types::Type;

use super::secure::{log_in, quick, with_roles};
use super::served::{field, read_message, served, startup};

const ROLES: &str = "
    CREATE ROLE root SUPERUSER LOGIN PASSWORD 'r00t'; CREATE ROLE ada LOGIN PASSWORD 'pencil' CONNECTION LIMIT 3; CREATE ROLE bob LOGIN;
    CREATE ROLE readers; CREATE ROLE \"Odd one\" LOGIN VALID UNTIL '2040-01-01'; GRANT readers TO bob; GRANT pg_read_server_files TO bob;
    CREATE TABLE t (id SERIAL PRIMARY KEY, a INT); CREATE VIEW v AS SELECT a FROM t; CREATE TABLE hidden (a INT);
    CREATE SCHEMA s; CREATE TABLE s.u (a INT); CREATE SEQUENCE q;
    ALTER TABLE t OWNER TO ada; ALTER SCHEMA s OWNER TO ada;
    GRANT SELECT, INSERT ON t TO readers; GRANT SELECT ON v TO public; GRANT UPDATE ON t TO \"Odd one\";
    GRANT SELECT ON SCHEMA s TO bob; GRANT USAGE ON SEQUENCE q TO bob; GRANT CREATE ON DATABASE alluvium TO ada";

fn engine() -> Engine {
    let engine = with_catalog(Engine::builder().workers(1)).open_in_memory().expect("a catalog");
    engine.execute(ROLES).expect("roles");
    engine
}

fn session(engine: &Engine, role: &str) -> Session {
    let mut session = engine.session();
    session.set_role(role).expect("a role");
    session
}

/// The rows of a query, with bars between their values.
fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    let outcome = session.execute_with(sql, &[]).unwrap_or_else(|error| panic!("{error}\n{sql}"));
    let Outcome::Rows(rows) = outcome else { panic!("{sql} has no rows") };
    let mut lines = Vec::new();
    for batch in rows.into_batches().unwrap_or_else(|error| panic!("{error}\n{sql}")) {
        let options = FormatOptions::default();
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|it| ArrayFormatter::try_new(it, &options).expect("a column that can be shown"))
            .collect();
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| column.value(row).to_string());
            lines.push(values.collect::<Vec<_>>().join("|"));
        }
    }
    lines
}

#[test]
fn roles_are_listed_with_oids_that_stay() {
    let engine = engine();
    let mut root = session(&engine, "root");
    // As \du asks.
    let du = "SELECT r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolconnlimit,
        r.rolvaliduntil IS NULL, ARRAY(SELECT b.rolname FROM pg_catalog.pg_auth_members m
            JOIN pg_catalog.pg_roles b ON (m.roleid = b.oid) WHERE m.member = r.oid) as memberof, r.rolreplication, r.rolbypassrls
        FROM pg_catalog.pg_roles r WHERE r.rolname !~ '^pg_' ORDER BY 1";
    assert_eq!(
        rows(&mut root, du),
        [
            "Odd one|false|true|false|false|true|-1|false|[]|false|false",
            "ada|false|true|false|false|true|3|true|[]|false|false",
            "alluvium|true|true|true|true|false|-1|true|[]|true|true",
            "bob|false|true|false|false|true|-1|true|[readers, pg_read_server_files]|false|false",
            "readers|false|true|false|false|false|-1|true|[]|false|false",
            "root|true|true|false|false|true|-1|true|[]|false|false",
        ]
        .map(|line| line.replace("[readers, pg_read_server_files]", &members(&mut root)))
    );
    let known = "SELECT oid, rolname FROM pg_roles WHERE oid < 16384 ORDER BY oid";
    assert_eq!(
        rows(&mut root, known),
        ["10|alluvium", "4569|pg_read_server_files", "4570|pg_write_server_files"]
    );
    let oid = rows(&mut root, "SELECT 'ada'::regrole::oid");
    assert_eq!(rows(&mut root, "SELECT oid FROM pg_roles WHERE rolname = 'ada'"), oid);
    assert_eq!(rows(&mut root, &format!("SELECT pg_get_userbyid({})", oid[0])), ["ada"]);
    assert_eq!(rows(&mut root, "SELECT pg_get_userbyid(7)"), ["unknown (OID=7)"]);
    assert_eq!(
        rows(&mut root, "SELECT usename FROM pg_user ORDER BY 1"),
        ["Odd one", "ada", "bob", "root"]
    );
    assert_eq!(
        rows(
            &mut root,
            "SELECT groname, grolist = ARRAY['bob'::regrole::oid] FROM pg_group WHERE groname = 'readers'"
        ),
        ["readers|true"]
    );
    // Verifiers are nowhere.
    for relation in ["pg_authid", "pg_shadow", "pg_roles", "pg_user"] {
        let all = rows(&mut root, &format!("SELECT * FROM {relation}")).join("\n");
        assert!(all.contains("********") && !all.contains("SCRAM"), "{relation}: {all}");
    }
}

/// The roles of bob, in the order in which they are listed.
fn members(session: &mut Session) -> String {
    let sql = "SELECT ARRAY(SELECT b.rolname FROM pg_auth_members m JOIN pg_roles b ON m.roleid = b.oid WHERE m.member = r.oid) FROM pg_roles r WHERE rolname = 'bob'";
    rows(session, sql).swap_remove(0)
}

#[test]
fn objects_have_their_owners_and_lists_of_rights() {
    let engine = engine();
    let mut root = session(&engine, "root");
    let relations =
        "SELECT relname, pg_get_userbyid(relowner), array_to_string(relacl, ' ') FROM pg_class
        WHERE relnamespace <> 11 AND relname NOT LIKE '%pkey' ORDER BY 1";
    assert_eq!(
        rows(&mut root, relations),
        [
            "hidden|alluvium|",
            "q|alluvium|alluvium=rwU/alluvium bob=U/alluvium",
            "t|ada|ada=arwdDxt/ada \"Odd one\"=w/ada readers=ar/ada",
            "t_id_seq|ada|",
            "u|alluvium|",
            "v|alluvium|alluvium=arwdDxt/alluvium =r/alluvium",
        ]
    );
    assert_eq!(
        rows(&mut root, "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 't_pkey'"),
        ["ada"]
    );
    assert_eq!(
        rows(
            &mut root,
            "SELECT nspname, nspowner::regrole, array_to_string(nspacl, ' ') FROM pg_namespace WHERE nspname IN ('public', 's') ORDER BY 1"
        ),
        ["public|alluvium|alluvium=UC/alluvium =U/alluvium", "s|ada|ada=UC/ada bob=r/ada"]
    );
    assert_eq!(
        rows(
            &mut root,
            "SELECT pg_get_userbyid(datdba), array_to_string(datacl, ' ') FROM pg_database"
        ),
        ["alluvium|alluvium=CTc/alluvium =Tc/alluvium ada=C/alluvium"]
    );
    assert_eq!(
        rows(
            &mut root,
            "SELECT pg_get_userbyid(typowner) FROM pg_type WHERE typname IN ('t', 'v', 'int4') ORDER BY typname"
        ),
        ["alluvium", "ada", "alluvium"]
    );
    assert_eq!(rows(&mut root, "SELECT tableowner FROM pg_tables WHERE tablename = 't'"), ["ada"]);
    assert_eq!(
        rows(&mut root, "SELECT sequenceowner FROM pg_sequences ORDER BY sequencename"),
        ["alluvium", "ada"]
    );
    root.execute(
        "REVOKE ALL ON DATABASE alluvium FROM public, ada; REVOKE ALL ON SCHEMA public FROM public",
    )
    .expect("no rights");
    assert_eq!(rows(&mut root, "SELECT datacl FROM pg_database"), ["[alluvium=CTc/alluvium]"]);
    assert_eq!(
        rows(&mut root, "SELECT nspacl FROM pg_namespace WHERE nspname = 'public'"),
        ["[alluvium=UC/alluvium]"]
    );
    assert_eq!(
        rows(
            &mut session(&engine, "ada"),
            "SELECT has_schema_privilege('public', 'USAGE'), has_database_privilege('alluvium', 'CONNECT')"
        ),
        ["false|false"]
    );
}

#[test]
fn functions_tell_what_a_role_may_do() {
    let engine = engine();
    let (mut root, mut ada, mut bob) =
        (session(&engine, "root"), session(&engine, "ada"), session(&engine, "bob"));
    for (question, of_root, of_ada, of_bob) in [
        ("has_table_privilege('t', 'SELECT')", "true", "true", "true"),
        ("has_table_privilege('t', 'UPDATE')", "true", "true", "false"),
        ("has_table_privilege('public.t'::regclass, 'insert, delete')", "true", "true", "true"),
        ("has_table_privilege('t', 'SELECT WITH GRANT OPTION')", "true", "true", "false"),
        ("has_table_privilege('v', 'SELECT')", "true", "true", "true"),
        ("has_table_privilege('v', 'INSERT')", "true", "false", "false"),
        ("has_table_privilege('readers', 't', 'SELECT')", "true", "true", "true"),
        (
            "has_table_privilege('readers'::regrole, 't'::regclass, 'DELETE')",
            "false",
            "false",
            "false",
        ),
        ("has_table_privilege('public', 'v', 'SELECT')", "true", "true", "true"),
        ("has_table_privilege(77, 't', 'SELECT')", "false", "false", "false"),
        ("has_table_privilege(77, 'SELECT')", "", "", ""),
        ("has_table_privilege('pg_class', 'SELECT')", "true", "true", "true"),
        ("has_table_privilege('pg_class', 'DELETE')", "true", "false", "false"),
        ("has_table_privilege('s.u', 'SELECT')", "true", "false", "true"),
        ("has_table_privilege('t', NULL::VARCHAR)", "", "", ""),
        ("has_any_column_privilege('t', 'UPDATE')", "true", "true", "false"),
        ("has_column_privilege('t', 'a', 'SELECT')", "true", "true", "true"),
        ("has_column_privilege('bob', 't', 'a', 'UPDATE')", "false", "false", "false"),
        ("has_schema_privilege('s', 'USAGE')", "true", "true", "true"),
        ("has_schema_privilege('s', 'CREATE')", "true", "true", "false"),
        ("has_schema_privilege('public', 'USAGE')", "true", "true", "true"),
        ("has_schema_privilege('public', 'CREATE')", "true", "false", "false"),
        ("has_schema_privilege('pg_catalog'::regnamespace, 'USAGE')", "true", "true", "true"),
        ("has_database_privilege('alluvium', 'CREATE')", "true", "true", "false"),
        ("has_database_privilege(5, 'CONNECT')", "true", "true", "true"),
        ("has_sequence_privilege('t_id_seq', 'USAGE')", "true", "true", "true"),
        ("has_sequence_privilege('bob', 'q'::regclass, 'USAGE')", "true", "", "true"),
        ("pg_has_role('readers', 'MEMBER')", "true", "false", "true"),
        ("pg_has_role('bob', 'readers', 'USAGE')", "true", "true", "true"),
        ("pg_has_role('pg_read_server_files', 'USAGE')", "true", "false", "true"),
    ] {
        let sql = format!("SELECT {question}");
        for (session, expected) in [(&mut root, of_root), (&mut ada, of_ada), (&mut bob, of_bob)] {
            let role = session.role().map(str::to_owned);
            // Ada is not told of the sequence.
            let is_hidden = role.as_deref() == Some("ada") && question.contains("'q'");
            match is_hidden {
                true => assert!(session.execute(&sql).is_err(), "{sql}"),
                false => assert_eq!(rows(session, &sql), [expected], "{role:?}: {sql}"),
            }
        }
    }
    for wrong in [
        "has_table_privilege('nobody', 't', 'SELECT')",
        "has_table_privilege('none', 'SELECT')",
        "has_table_privilege('t', 'FLY')",
        "has_schema_privilege('none', 'USAGE')",
        "pg_has_role('nobody', 'USAGE')",
    ] {
        assert!(root.execute(&format!("SELECT {wrong}")).is_err(), "{wrong}");
    }
    // For each row, by OID.
    let all = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v') AND relnamespace <> 11 AND has_table_privilege(oid, 'SELECT') ORDER BY 1";
    assert_eq!(rows(&mut bob, all), ["t", "u", "v"]);
    // Without roles all may do everything.
    let free = with_catalog(Engine::builder().workers(1)).open_in_memory().expect("an engine");
    free.execute("CREATE TABLE t (a INT)").expect("a table");
    assert_eq!(
        rows(
            &mut free.session(),
            "SELECT has_table_privilege('t', 'DELETE'), pg_has_role('pg_read_server_files', 'USAGE')"
        ),
        ["true|true"]
    );
}

#[test]
fn the_schema_of_information_has_the_privileges_of_a_role() {
    let engine = engine();
    let mut bob = session(&engine, "bob");
    assert_eq!(
        rows(&mut bob, "SELECT role_name FROM information_schema.enabled_roles ORDER BY 1"),
        ["bob", "pg_read_server_files", "readers"]
    );
    assert_eq!(
        rows(&mut bob, "SELECT * FROM information_schema.applicable_roles ORDER BY 2"),
        ["bob|pg_read_server_files|NO", "bob|readers|NO"]
    );
    assert_eq!(
        rows(
            &mut bob,
            "SELECT grantor, grantee, table_schema, table_name, privilege_type, is_grantable FROM information_schema.table_privileges ORDER BY 4, 5"
        ),
        [
            "ada|readers|public|t|INSERT|NO",
            "ada|readers|public|t|SELECT|NO",
            "alluvium|PUBLIC|public|v|SELECT|NO"
        ]
    );
    let own = "SELECT count(*) FROM information_schema.role_table_grants WHERE table_name = 't' AND grantee = 'ada'";
    assert_eq!(rows(&mut session(&engine, "ada"), own), ["7"]);
    assert_eq!(rows(&mut bob, own), ["0"]);
}

#[test]
fn a_role_finds_nothing_of_what_it_may_not_use() {
    let engine = engine();
    let mut bob = session(&engine, "bob");
    for (sql, expected) in [
        (
            "SELECT relname FROM pg_class WHERE relnamespace <> 11 AND relkind IN ('r', 'v', 'S') ORDER BY 1",
            vec!["q", "t", "t_id_seq", "u", "v"],
        ),
        (
            "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg%' ORDER BY 1",
            vec!["alluvium", "information_schema", "public", "s"],
        ),
        ("SELECT count(*) FROM pg_attribute WHERE attname = 'a'", vec!["3"]),
    ] {
        assert_eq!(rows(&mut bob, sql), expected, "{sql}");
    }
    assert!(bob.execute("SELECT 'hidden'::regclass").is_err());
}

/// A client is told at first who it is, and whenever that changes.
#[test]
fn parameters_of_a_connection_tell_who_is_a_superuser() {
    let sql = [
        "CREATE ROLE root SUPERUSER LOGIN PASSWORD 'r00t'",
        "CREATE ROLE ada LOGIN PASSWORD 'pencil'",
    ];
    let served_ = with_roles(quick(), None, &sql);
    served_.clients.block_on(async {
        for (role, password, is_superuser) in [("root", "r00t", "on"), ("ada", "pencil", "off")] {
            let client = log_in(served_.address(), role, password).await.expect("a login");
            for (setting, expected) in
                [("is_superuser", is_superuser), ("session_authorization", role)]
            {
                let row =
                    client.query_typed(&format!("SHOW {setting}"), &[]).await.expect("a setting");
                assert_eq!(row[0].columns()[0].type_(), &Type::TEXT);
                assert_eq!(row[0].get::<_, &str>(0), expected);
            }
        }
    });
    // Without roles, over bytes.
    let free = served();
    let mut stream = free.raw();
    std::io::Write::write_all(&mut stream, &startup(&[("user", "someone")]))
        .expect("a startup message");
    let mut told = Vec::new();
    loop {
        let (kind, body) = read_message(&mut stream);
        match kind {
            b'S' => told.push(
                body.split(|byte| *byte == 0)
                    .map(|text| String::from_utf8_lossy(text).into_owned())
                    .take(2)
                    .collect::<Vec<_>>()
                    .join("="),
            ),
            b'Z' => break,
            b'E' => panic!("{:?}", field(&body, b'M')),
            _ => {}
        }
    }
    for expected in ["is_superuser=on", "session_authorization=alluvium"] {
        assert!(told.iter().any(|it| it == expected), "{told:?}");
    }
}
