//! Roles, their rights, and that both outlive the engine.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use alluvium::{Engine, Error, FileAccess, Outcome, Session, SqlState};

use crate::support::lines;

const RELATIONS: &str = "
    CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT); INSERT INTO t VALUES (1, 10);
    CREATE TABLE hidden (a BIGINT); INSERT INTO hidden VALUES (42);
    CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS x FROM hidden;
    CREATE SCHEMA s; CREATE TABLE s.u (a BIGINT); CREATE SEQUENCE q;";

const ROLES: &str = "
    CREATE ROLE root SUPERUSER LOGIN PASSWORD 'top secret';
    CREATE ROLE ada LOGIN PASSWORD 'ada secret'; CREATE ROLE bob LOGIN; CREATE ROLE readers;";

fn builder() -> alluvium::Builder {
    Engine::builder().workers(1).password_verifier(|password| {
        // Long enough for a reader to see that it is no password.
        format!("SCRAM-SHA-256$4096:salt${}:server", password.len())
    })
}

fn engine() -> Engine {
    let engine = builder().open_in_memory().unwrap();
    engine.execute(RELATIONS).unwrap();
    engine.execute(ROLES).unwrap();
    engine
}

fn session(engine: &Engine, role: &str) -> Session {
    let mut session = engine.session();
    session.set_role(role).unwrap();
    session
}

fn run(session: &mut Session, sql: &str) {
    session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn denied(session: &mut Session, sql: &str) {
    match session.execute(sql) {
        Err(Error::Denied { .. }) => {}
        other => panic!("{sql}: {other:?}"),
    }
}

fn fails(session: &mut Session, sql: &str, sqlstate: SqlState) -> String {
    match session.execute(sql) {
        Err(error) if error.sqlstate() == sqlstate => error.to_string(),
        other => panic!("{sql}: {other:?}"),
    }
}

fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    match session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop() {
        Some(Outcome::Rows(rows)) => lines(&rows.into_batches().unwrap()),
        other => panic!("rows are expected, not {other:?}"),
    }
}

/// All that is known of roles and rights, a line each.
fn known(engine: &Engine) -> Vec<String> {
    let mut all = engine.session();
    let roles = "SELECT name, superuser, create_role, login, connection_limit, valid_until, has_password, member_of FROM alluvium.roles";
    let mut known = rows(&mut all, roles);
    known.extend(rows(&mut all, "SELECT kind, name, role, privilege FROM alluvium.grants"));
    known.extend(engine.roles().iter().map(|role| format!("{:?}", role.verifier)));
    known
}

#[test]
fn a_role_may_do_what_it_is_granted() {
    let engine = engine();
    let mut ada = session(&engine, "ada");
    let mut root = session(&engine, "root");
    for sql in [
        "SELECT * FROM t",
        "SELECT x FROM m",
        "INSERT INTO t VALUES (2, 2)",
        "UPDATE t SET b = 1",
        "DELETE FROM t",
        "TRUNCATE t",
        "SUBSCRIBE m",
        "DROP TABLE t",
        "ALTER TABLE t RENAME TO x",
        "CREATE TABLE x (a INT)",
        "CREATE SCHEMA x",
        "CREATE SEQUENCE x",
        "CREATE VIEW x AS SELECT 1 AS a",
        "CREATE INDEX x ON t (b)",
        "COMMENT ON TABLE t IS 'x'",
        "CHECKPOINT",
        "GRANT SELECT ON t TO ada",
        "GRANT readers TO ada",
        "CREATE ROLE x",
        "ALTER ROLE bob SUPERUSER",
        "DROP ROLE bob",
        "ALTER TABLE t OWNER TO ada",
        "EXPLAIN SELECT * FROM t",
        "DESCRIBE t",
        "COPY t TO 'x.csv'",
        "SELECT * FROM 'x.csv'",
    ] {
        denied(&mut ada, sql);
        // A statement that is prepared is judged as well.
        if sql.starts_with("SELECT * FROM t") {
            assert!(ada.prepare(sql).is_err());
        }
    }
    fails(&mut ada, "SELECT nextval('q')", SqlState::DENIED);
    run(&mut root, "GRANT SELECT, INSERT ON t TO ada; GRANT USAGE ON SEQUENCE q TO ada");
    assert_eq!(rows(&mut ada, "SELECT nextval('q')"), ["1"]);
    assert_eq!(rows(&mut ada, "SELECT * FROM t"), ["1 10"]);
    let select = ada.prepare("SELECT a FROM t WHERE a = $1").unwrap();
    assert!(ada.execute_prepared(&select, &[1_i64.into()]).is_ok());
    run(&mut ada, "INSERT INTO t VALUES (2, 20)");
    denied(&mut ada, "UPDATE t SET b = 0");
    denied(&mut ada, "INSERT INTO t VALUES (2, 1) ON CONFLICT (a) DO UPDATE SET b = excluded.b");
    // A view reads with the rights of its owner.
    run(&mut root, "GRANT SELECT ON m TO public");
    assert_eq!(rows(&mut ada, "SELECT x FROM m"), ["43"]);
    denied(&mut ada, "SELECT x FROM m JOIN hidden ON x = a");
    run(&mut ada, "SUBSCRIBE m");
    run(&mut root, "REVOKE ALL ON t FROM ada; REVOKE SELECT ON m FROM public");
    denied(&mut ada, "SELECT * FROM t");
    denied(&mut ada, "SELECT x FROM m");
    assert!(ada.execute_prepared(&select, &[1_i64.into()]).is_err());
    assert!(!ada.may(alluvium::Action::Select, alluvium::Object::Relation("m")));
}

#[test]
fn the_first_role_is_a_superuser_and_one_stays() {
    let engine = builder().open_in_memory().unwrap();
    let mut session_ = engine.session();
    let said = fails(&mut session_, "CREATE ROLE ada LOGIN", SqlState::NOT_IN_STATE);
    assert!(said.contains("SUPERUSER LOGIN"), "{said}");
    run(&mut session_, "CREATE ROLE root SUPERUSER LOGIN; CREATE ROLE ada LOGIN");
    fails(&mut session_, "CREATE ROLE ada", SqlState::DUPLICATE_OBJECT);
    run(&mut session_, "CREATE ROLE IF NOT EXISTS ada");
    for sql in ["ALTER ROLE root NOSUPERUSER", "ALTER ROLE root NOLOGIN", "DROP ROLE root"] {
        fails(&mut session_, sql, SqlState::NOT_IN_STATE);
    }
    let mut root = session(&engine, "root");
    fails(&mut root, "CREATE ROLE two SUPERUSER LOGIN; DROP ROLE root", SqlState::OBJECT_IN_USE);
    run(&mut session_, "DROP ROLE IF EXISTS root, nobody");
    // A role that is gone may do nothing.
    denied(&mut root, "CREATE TABLE x (a INT)");
    fails(&mut session_, "DROP ROLE nobody", SqlState::NO_OBJECT);
    run(&mut session_, "DROP ROLE ada, two");
    assert!(engine.roles().is_empty());
    assert!(engine.session().set_role("ada").is_err());
}

#[test]
fn what_a_role_creates_is_its_own() {
    let engine = engine();
    let (mut ada, mut bob, mut root) =
        (session(&engine, "ada"), session(&engine, "bob"), session(&engine, "root"));
    run(
        &mut root,
        "GRANT CREATE ON SCHEMA public TO ada; GRANT CREATE ON DATABASE alluvium TO ada",
    );
    run(
        &mut ada,
        "CREATE TABLE own (id SERIAL PRIMARY KEY, a INT); INSERT INTO own (a) VALUES (7); CREATE SCHEMA mine;
         CREATE TABLE mine.x (a INT); CREATE VIEW v AS SELECT a FROM own; CREATE SEQUENCE mine.q;
         CREATE TEMPORARY TABLE tmp (a INT); INSERT INTO tmp VALUES (1)",
    );
    assert_eq!(rows(&mut ada, "SELECT a FROM own"), ["7"]);
    assert_eq!(rows(&mut ada, "SELECT currval('own_id_seq'), nextval('mine.q')"), ["1 1"]);
    // IF NOT EXISTS takes nothing from others.
    run(&mut root, "CREATE TABLE IF NOT EXISTS own (a INT); GRANT CREATE ON SCHEMA public TO bob");
    run(&mut bob, "CREATE TABLE IF NOT EXISTS own (a INT)");
    denied(&mut bob, "SELECT * FROM own");
    denied(&mut bob, "DROP TABLE own");
    denied(&mut bob, "SELECT * FROM mine.x");
    run(&mut ada, "GRANT SELECT ON mine.x TO bob");
    // The schema cannot be named yet.
    denied(&mut bob, "SELECT * FROM mine.x");
    run(&mut ada, "GRANT USAGE ON SCHEMA mine TO bob");
    assert!(rows(&mut bob, "SELECT * FROM mine.x").is_empty());
    // Rights follow names, and end with their objects.
    run(&mut ada, "ALTER TABLE mine.x RENAME TO y");
    assert!(rows(&mut bob, "SELECT * FROM mine.y").is_empty());
    run(&mut ada, "ALTER TABLE mine.y ADD COLUMN b INT");
    assert!(rows(&mut bob, "SELECT b FROM mine.y").is_empty());
    run(&mut ada, "DROP TABLE mine.y; CREATE TABLE mine.y (a INT)");
    denied(&mut bob, "SELECT * FROM mine.y");
    let said = fails(&mut root, "DROP ROLE ada", SqlState::DEPENDED_ON);
    assert!(said.contains("schema \"mine\"") && said.contains("\"own\""), "{said}");
    denied(&mut bob, "ALTER TABLE own OWNER TO bob");
    denied(&mut ada, "ALTER TABLE own OWNER TO bob");
    run(&mut root, "ALTER TABLE own OWNER TO bob; ALTER VIEW v OWNER TO bob");
    denied(&mut ada, "SELECT * FROM own");
    assert_eq!(rows(&mut bob, "SELECT a FROM v"), ["7"]);
    run(&mut root, "DROP SCHEMA mine CASCADE; DROP ROLE ada");
    assert!(known(&engine).iter().all(|line| !line.contains("ada")), "{:?}", known(&engine));
}

#[test]
fn members_have_the_rights_of_their_roles() {
    let engine = engine();
    let (mut ada, mut root) = (session(&engine, "ada"), session(&engine, "root"));
    run(
        &mut root,
        "CREATE ROLE inner_readers ROLE readers; GRANT readers TO ada; GRANT SELECT ON t TO inner_readers",
    );
    assert_eq!(rows(&mut ada, "SELECT a FROM t"), ["1"]);
    fails(&mut root, "GRANT ada TO inner_readers", SqlState::INVALID_GRANT);
    fails(&mut root, "GRANT ada TO ada", SqlState::INVALID_GRANT);
    let who = "SELECT current_user, session_user";
    run(&mut ada, "SET ROLE readers");
    assert_eq!(rows(&mut ada, who), ["readers ada"]);
    assert_eq!(
        rows(&mut ada, "SELECT current_role, user, session_user WHERE current_role = user"),
        ["readers readers ada"]
    );
    denied(&mut ada, "SET ROLE bob");
    denied(&mut ada, "SET SESSION AUTHORIZATION readers");
    run(&mut ada, "RESET ROLE");
    assert_eq!(rows(&mut ada, who), ["ada ada"]);
    run(&mut root, "SET SESSION AUTHORIZATION ada");
    assert_eq!(rows(&mut root, who), ["ada ada"]);
    denied(&mut root, "CREATE ROLE x");
    run(&mut root, "RESET SESSION AUTHORIZATION; REVOKE readers FROM ada");
    denied(&mut ada, "SELECT a FROM t");
    // All relations of a schema, now and later.
    run(&mut root, "GRANT SELECT ON SCHEMA s TO ada; CREATE TABLE s.later (a INT)");
    assert!(rows(&mut ada, "SELECT * FROM s.u, s.later").is_empty());
    run(
        &mut root,
        "REVOKE SELECT ON SCHEMA s FROM ada; GRANT SELECT ON ALL TABLES IN SCHEMA public TO ada",
    );
    denied(&mut ada, "SELECT * FROM s.u");
    assert_eq!(rows(&mut ada, "SELECT t.a, m.x FROM t, m"), ["1 43"]);
}

#[test]
fn roles_that_create_roles_do_not_become_superusers() {
    let engine = engine();
    let mut root = session(&engine, "root");
    run(&mut root, "CREATE ROLE manager LOGIN CREATEROLE");
    let mut manager = session(&engine, "manager");
    run(
        &mut manager,
        "CREATE ROLE hired LOGIN IN ROLE readers; ALTER ROLE hired CONNECTION LIMIT 2; GRANT bob TO hired",
    );
    for sql in [
        "CREATE ROLE boss SUPERUSER",
        "ALTER ROLE manager SUPERUSER",
        "ALTER ROLE root PASSWORD 'x'",
        "GRANT root TO manager",
        "CREATE ROLE boss IN ROLE root",
        "GRANT pg_read_server_files TO manager",
        "DROP ROLE root",
        "SELECT * FROM t",
    ] {
        denied(&mut manager, sql);
    }
    run(&mut manager, "ALTER ROLE manager PASSWORD 'new'; DROP ROLE hired");
    let mut ada = session(&engine, "ada");
    run(&mut ada, "ALTER USER ada PASSWORD 'my own'");
    denied(&mut ada, "ALTER ROLE ada VALID UNTIL '2030-01-01'");
}

#[test]
fn files_need_a_role_that_may_use_them() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("x.csv"), "a\n5\n").unwrap();
    let engine = engine();
    let mut root = session(&engine, "root");
    let mut ada = session(&engine, "ada");
    for session in [&mut root, &mut ada] {
        session.set_base(directory.path());
        session.set_file_access(FileAccess::Below(vec![directory.path().to_owned()]));
    }
    denied(&mut ada, "SELECT * FROM 'x.csv'");
    run(&mut root, "GRANT pg_read_server_files TO ada; GRANT SELECT ON t TO ada");
    // There is no reader of CSV in this engine; the file itself is no longer refused.
    let refused = ada.execute("SELECT * FROM 'x.csv'").unwrap_err();
    assert!(!matches!(refused, Error::Denied { .. }), "{refused}");
    denied(&mut ada, "COPY t TO 'y.csv'");
    denied(&mut ada, "SELECT * FROM '../x.csv'");
}

#[test]
fn definitions_of_roles_are_part_of_a_transaction() {
    let engine = engine();
    let mut root = session(&engine, "root");
    let before = known(&engine);
    run(
        &mut root,
        "BEGIN; CREATE ROLE eve LOGIN; CREATE TABLE e (a INT); GRANT SELECT ON e TO eve; GRANT SELECT ON t TO eve",
    );
    assert!(engine.session().set_role("eve").is_err());
    run(&mut root, "ROLLBACK");
    assert_eq!(known(&engine), before);
    run(&mut root, "GRANT CREATE ON SCHEMA public TO ada");
    let mut ada = session(&engine, "ada");
    run(
        &mut ada,
        "BEGIN; CREATE TABLE mine (a INT); INSERT INTO mine VALUES (1); SAVEPOINT x; GRANT SELECT ON mine TO bob;
         ROLLBACK TO x; GRANT INSERT ON mine TO bob",
    );
    assert_eq!(rows(&mut ada, "SELECT a FROM mine"), ["1"]);
    run(&mut ada, "COMMIT");
    let mut bob = session(&engine, "bob");
    run(&mut bob, "INSERT INTO mine VALUES (2)");
    denied(&mut bob, "SELECT a FROM mine");
    // Two tables have each other's names, and so have their rights.
    run(&mut root, "GRANT SELECT ON t TO bob; CREATE TABLE other (a BIGINT)");
    run(
        &mut root,
        "BEGIN; ALTER TABLE t RENAME TO x; ALTER TABLE other RENAME TO t; ALTER TABLE x RENAME TO other; COMMIT",
    );
    assert_eq!(rows(&mut bob, "SELECT a FROM other"), ["1"]);
    denied(&mut bob, "SELECT a FROM t");
}

#[test]
fn roles_and_rights_outlive_the_engine() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let state = format!("file:{}", directory.path().join("state").display());
        builder().state(&state).open().unwrap()
    };
    let engine = open();
    engine.execute(RELATIONS).unwrap();
    engine.execute(ROLES).unwrap();
    run(
        &mut session(&engine, "root"),
        "GRANT readers, pg_read_server_files TO ada; GRANT SELECT ON t TO readers; REVOKE CONNECT ON DATABASE alluvium FROM public;
         GRANT CONNECT ON DATABASE alluvium TO ada; REVOKE USAGE ON SCHEMA public FROM public; GRANT ALL ON SCHEMA s TO ada;
         ALTER ROLE bob CONNECTION LIMIT 3 VALID UNTIL '2030-01-01 12:00:00+02' PASSWORD NULL;
         GRANT UPDATE ON SEQUENCE q TO bob; BEGIN; CREATE TABLE late (a INT); GRANT DELETE ON late TO bob; COMMIT;
         ALTER TABLE late RENAME TO later; CREATE ROLE gone; GRANT gone TO bob; DROP ROLE gone",
    );
    run(&mut session(&engine, "ada"), "CREATE TABLE s.own (a INT)");
    let before = known(&engine);
    assert!(engine.roles().may_connect("ada") && !engine.roles().may_connect("bob"));
    drop(engine);
    // From the journal.
    let engine = open();
    assert_eq!(known(&engine), before);
    engine.checkpoint().unwrap();
    drop(engine);
    // From a checkpoint.
    let engine = open();
    assert_eq!(known(&engine), before);
    run(&mut session(&engine, "ada"), "SELECT * FROM s.own");
    drop(engine);
    // Passwords are nowhere in the state.
    let mut left = vec![directory.path().to_owned()];
    let mut files = 0;
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        files += 1;
        let bytes = std::fs::read(&path).unwrap();
        let found = bytes.windows(6).any(|window| window == b"secret");
        assert!(!found, "{} has a password", path.display());
    }
    assert!(files > 0);
}

#[test]
fn passwords_are_in_no_error() {
    let engine = Engine::builder().workers(1).open_in_memory().unwrap();
    let mut session = engine.session();
    for sql in [
        "CREATE ROLE r SUPERUSER LOGIN PASSWORD 'sesame'",
        "CREATE ROLE r LOGIN PASSWORD 'sesame'",
        "CREATE ROLE r PASSWORD sesame",
        "CREATE ROLE r PASSWORD 'sesame' WINGS",
        "CREATE ROLE r PASSWORD 'sesame' PASSWORD 'sesame'",
        "ALTER ROLE r PASSWORD 'sesame'",
    ] {
        let said = session.execute(sql).unwrap_err().to_string();
        assert!(!said.contains("sesame"), "{said}");
    }
    run(&mut session, "CREATE ROLE r SUPERUSER LOGIN PASSWORD 'SCRAM-SHA-256$4096:c2FsdA==$a:b'");
    assert!(engine.roles().get("r").unwrap().verifier.is_some());
    assert!(!format!("{:?}", engine.roles()).contains("c2FsdA"));
    let md5 = format!("ALTER ROLE r PASSWORD 'md5{}'", "0".repeat(32));
    fails(&mut session, &md5, SqlState::NOT_SUPPORTED);
    run(&mut session, "ALTER ROLE r PASSWORD ''");
    assert_eq!(engine.roles().get("r").unwrap().verifier, None);
}

/// A transaction that had staged a change of roles used to undo what others had changed meanwhile.
#[test]
fn a_transaction_does_not_undo_a_revocation() {
    let engine = engine();
    let mut root = session(&engine, "root");
    run(&mut root, "CREATE ROLE other SUPERUSER LOGIN; GRANT CREATE ON SCHEMA public TO ada");
    let (mut other, mut ada) = (session(&engine, "other"), session(&engine, "ada"));
    run(&mut other, "BEGIN; ALTER ROLE other PASSWORD 'p'");
    run(&mut root, "ALTER ROLE other NOSUPERUSER NOLOGIN");
    fails(&mut other, "COMMIT", SqlState::SERIALIZATION);
    assert!(!engine.roles().get("other").unwrap().is_superuser);
    run(&mut ada, "CREATE TABLE own (a INT); BEGIN; GRANT SELECT ON own TO bob");
    run(&mut root, "ALTER TABLE own OWNER TO root");
    fails(&mut ada, "COMMIT", SqlState::SERIALIZATION);
    // What others create meanwhile stands in nobody's way.
    let mut bob = session(&engine, "bob");
    run(&mut root, "GRANT CREATE ON SCHEMA public TO bob");
    run(&mut ada, "BEGIN; CREATE TABLE one (a INT); GRANT SELECT ON one TO bob");
    run(&mut bob, "CREATE TABLE two (a INT)");
    run(&mut ada, "COMMIT");
    assert!(rows(&mut bob, "SELECT * FROM one, two").is_empty());
}

/// Rights could be had on a name before anything had it.
#[test]
fn nobody_has_rights_on_what_is_not_there_yet() {
    let engine = engine();
    let mut root = session(&engine, "root");
    run(&mut root, "GRANT CREATE ON SCHEMA public TO ada");
    let mut ada = session(&engine, "ada");
    run(
        &mut ada,
        "BEGIN; CREATE TABLE payroll (a INT); GRANT SELECT ON payroll TO ada; DROP TABLE payroll; COMMIT;
         BEGIN; CREATE TABLE x (a INT); GRANT SELECT ON x TO bob; ALTER TABLE x RENAME TO y; COMMIT",
    );
    run(&mut root, "CREATE TABLE payroll (a INT); CREATE TABLE x (a INT)");
    denied(&mut ada, "SELECT * FROM payroll");
    let mut bob = session(&engine, "bob");
    denied(&mut bob, "SELECT * FROM x");
    assert!(rows(&mut bob, "SELECT * FROM y").is_empty());
    // A view that is replaced inside of a transaction has the rights of the one before.
    run(&mut ada, "CREATE VIEW v AS SELECT a FROM y; GRANT SELECT ON v TO bob");
    run(&mut ada, "BEGIN; CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM y; COMMIT");
    assert!(rows(&mut bob, "SELECT * FROM v").is_empty());
    run(&mut ada, "DROP VIEW v");
}

/// A role that creates others could get a superuser's rights through a member.
#[test]
fn members_of_superusers_are_managed_by_superusers() {
    let engine = engine();
    let mut root = session(&engine, "root");
    run(
        &mut root,
        "CREATE ROLE manager LOGIN CREATEROLE; CREATE ROLE ops LOGIN IN ROLE root; CREATE ROLE writers;
         GRANT pg_write_server_files TO writers",
    );
    let mut manager = session(&engine, "manager");
    for sql in [
        "GRANT ops TO manager",
        "ALTER ROLE ops PASSWORD 'mine'",
        "DROP ROLE ops",
        "GRANT writers TO manager",
        "CREATE ROLE x IN ROLE ops",
    ] {
        denied(&mut manager, sql);
    }
}

/// Another role of the same name is not the one that a session has logged in as.
#[test]
fn a_name_is_not_a_role() {
    let engine = engine();
    let mut root = session(&engine, "root");
    run(&mut root, "GRANT SELECT ON t TO ada");
    let mut ada = session(&engine, "ada");
    let Some(Outcome::Subscribed(mut changes)) = ada.execute("SUBSCRIBE t").unwrap().pop() else {
        panic!("a subscription")
    };
    assert!(changes.next().unwrap().unwrap().is_snapshot);
    run(
        &mut root,
        "DROP ROLE ada; CREATE ROLE ada LOGIN; GRANT SELECT ON t TO ada; INSERT INTO t VALUES (2, 2)",
    );
    denied(&mut ada, "SELECT * FROM t");
    assert!(matches!(changes.next(), Some(Err(Error::Denied { .. }))));
    assert_eq!(rows(&mut session(&engine, "ada"), "SELECT a FROM t").len(), 2);
}

#[test]
fn rights_of_inserts_and_sequences() {
    let engine = engine();
    let mut root = session(&engine, "root");
    run(
        &mut root,
        "CREATE TABLE k (id SERIAL PRIMARY KEY, a INT); GRANT INSERT ON k TO ada; GRANT CREATE ON SCHEMA public TO ada;
         GRANT USAGE ON SEQUENCE k_id_seq TO bob",
    );
    let mut ada = session(&engine, "ada");
    run(&mut ada, "INSERT INTO k (a) VALUES (1)");
    assert_eq!(rows(&mut ada, "SELECT currval('k_id_seq'), nextval('k_id_seq')"), ["1 2"]);
    // Rows of others are replaced by who may update them.
    denied(&mut ada, "INSERT OR REPLACE INTO k VALUES (1, 2)");
    denied(&mut ada, "ALTER SEQUENCE k_id_seq RESTART");
    let takes = "CREATE TABLE mine (a BIGINT DEFAULT nextval('q'), b INT)";
    denied(&mut ada, takes);
    run(&mut root, "GRANT USAGE ON SEQUENCE q TO ada");
    run(&mut ada, takes);
    // To take values is not to begin again.
    denied(&mut ada, "ALTER SEQUENCE q RESTART");
    // The sequence goes with its table, and leaves nothing behind.
    run(&mut root, "ALTER TABLE k OWNER TO bob; DROP TABLE k");
    run(&mut root, "DROP TABLE mine; DROP ROLE bob, ada");
}

#[test]
fn errors_show_no_rows_that_a_role_may_not_select() {
    let engine = engine();
    let (mut ada, mut root) = (session(&engine, "ada"), session(&engine, "root"));
    run(
        &mut root,
        "CREATE TABLE secret (id BIGINT PRIMARY KEY, pin TEXT, least BIGINT, other BIGINT, CHECK (least < other), UNIQUE (least, other));
         INSERT INTO secret VALUES (1, 'tops', 1, 37), (2, 'more', 1, 38);
         CREATE VIEW number AS SELECT id, CAST(pin AS BIGINT) AS n FROM secret; CREATE VIEW outer_number AS SELECT n FROM number;
         CREATE MATERIALIZED VIEW quotient AS SELECT id, 10 / (other - 37) AS q FROM secret;
         GRANT SELECT ON number, outer_number, quotient TO ada; GRANT UPDATE, INSERT, DELETE ON secret TO bob",
    );
    let errors = "SELECT view, \"row\", message FROM alluvium.errors ORDER BY view, \"row\"";
    let all = rows(&mut root, errors);
    assert!(all[0].starts_with("number id=1, pin='tops' "), "{all:?}");
    let hidden = rows(&mut ada, errors);
    assert_eq!(hidden.len(), 3, "{hidden:?}");
    let is_bare = |line: &String| line.contains("NULL the role may not SELECT from all");
    assert!(hidden.iter().all(is_bare), "{hidden:?}");
    for sql in ["SELECT n FROM number", "SELECT n + 1 FROM outer_number WHERE n > 0"] {
        let message = fails(&mut ada, sql, SqlState::INVALID_TEXT);
        assert!(!message.contains("tops") && message.contains("are not shown"), "{message}");
    }
    // Its own values are.
    let message = fails(&mut ada, "SELECT CAST('mine' AS BIGINT)", SqlState::INVALID_TEXT);
    assert!(message.contains("'mine'"), "{message}");
    run(&mut root, "GRANT SELECT ON secret TO ada");
    assert_eq!(rows(&mut ada, errors).len(), 3);
    assert_eq!(rows(&mut ada, errors)[0], all[0]);
    assert!(fails(&mut ada, "SELECT n FROM number", SqlState::INVALID_TEXT).contains("tops"));

    let mut bob = session(&engine, "bob");
    for (sql, sqlstate, constraint) in [
        ("UPDATE secret SET least = 1000", SqlState::CHECK, "secret_check"),
        ("UPDATE secret SET other = 37", SqlState::UNIQUE, "secret_least_other_key"),
        ("UPDATE secret SET id = 3", SqlState::UNIQUE, "same key"),
        ("INSERT INTO secret VALUES (9, 'x', 1, 37)", SqlState::UNIQUE, "secret_least_other_key"),
    ] {
        let shown = fails(&mut root, sql, sqlstate);
        assert!(shown.contains('3'), "{shown}");
        let message = fails(&mut bob, sql, sqlstate);
        assert!(message.contains(constraint) && !message.contains('3'), "{message}");
    }
}

#[test]
fn errors_propose_no_names_that_a_role_may_not_know() {
    let engine = engine();
    let (mut ada, mut root) = (session(&engine, "ada"), session(&engine, "root"));
    let sql = "SELECT * FROM hiden";
    assert!(fails(&mut root, sql, SqlState::NO_RELATION).contains("\"hidden\""));
    assert_eq!(fails(&mut ada, sql, SqlState::NO_RELATION), "no table or view \"hiden\"");
    let described = ada.describe(sql).unwrap_err().to_string();
    assert_eq!(described, "no table or view \"hiden\"");
    run(&mut root, "GRANT INSERT ON hidden TO ada");
    assert!(fails(&mut ada, sql, SqlState::NO_RELATION).contains("\"hidden\""));
}

#[test]
fn a_role_that_a_session_may_not_have_any_more_does_nothing() {
    let engine = engine();
    let (mut ada, mut root) = (session(&engine, "ada"), session(&engine, "root"));
    run(&mut root, "GRANT SELECT ON t TO readers; GRANT readers TO ada");
    run(&mut ada, "SET ROLE readers");
    assert_eq!(rows(&mut ada, "SELECT a FROM t"), ["1"]);
    run(&mut root, "REVOKE readers FROM ada");
    denied(&mut ada, "SELECT a FROM t");
    run(&mut ada, "RESET ROLE");
    denied(&mut ada, "SELECT a FROM t");
    // Nor does one of a superuser that is none any more.
    run(&mut root, "CREATE ROLE eve SUPERUSER LOGIN");
    let mut eve = session(&engine, "eve");
    run(&mut eve, "SET SESSION AUTHORIZATION root");
    assert_eq!(rows(&mut eve, "SELECT a FROM hidden"), ["42"]);
    run(&mut root, "ALTER ROLE eve NOSUPERUSER");
    denied(&mut eve, "SELECT a FROM hidden");
}

#[test]
fn a_role_fills_a_temporary_table_with_rows_that_it_may_select() {
    let engine = engine();
    let (mut ada, mut root) = (session(&engine, "ada"), session(&engine, "root"));
    run(&mut root, "GRANT SELECT ON t TO ada");
    run(&mut ada, "CREATE TEMP TABLE copied AS SELECT * FROM t");
    assert_eq!(rows(&mut ada, "SELECT * FROM copied"), ["1 10"]);
    denied(&mut ada, "CREATE TEMP TABLE stolen AS SELECT * FROM hidden");
}

#[test]
fn a_copy_without_roles_has_rows_alone() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let engine = builder().state(format!("file:{}", state.display())).open().unwrap();
    engine.execute(RELATIONS).unwrap();
    engine.execute(ROLES).unwrap();
    engine.execute("GRANT SELECT ON t TO ada; CHECKPOINT").unwrap();
    // In the journal: alone, in a transaction with others, and between rows.
    let later = "INSERT INTO t VALUES (2, 20); ALTER ROLE bob PASSWORD 'later secret';
        BEGIN; CREATE ROLE eve LOGIN PASSWORD 'eve secret'; CREATE TABLE made (a BIGINT); INSERT INTO made VALUES (5); COMMIT;
        ALTER TABLE made OWNER TO eve; INSERT INTO t VALUES (3, 30)";
    let mut root = session(&engine, "root");
    run(&mut root, later);
    let source = alluvium::StateDirectory::open(&state).unwrap();
    let listed = source.checkpoints().unwrap();
    assert!(!format!("{listed:?}").contains("SCRAM"));
    let (all, bare) = (directory.path().join("all"), directory.path().join("bare"));
    source.backup(&all).unwrap();
    source.backup_without_roles(&bare).unwrap();
    let quotes = |of: &std::path::Path| {
        let files =
            ["journal", "manifests"].map(|folder| std::fs::read_dir(of.join(folder)).unwrap());
        let files =
            files.into_iter().flatten().map(|file| std::fs::read(file.unwrap().path()).unwrap());
        let words = [&b"SCRAM-SHA-256"[..], b"ROLE", b"GRANT", b"OWNER"];
        let has = |bytes: Vec<u8>| {
            words.iter().any(|word| bytes.windows(word.len()).any(|part| part == *word))
        };
        files.filter(|bytes| has(bytes.clone())).count()
    };
    assert_eq!((quotes(&all), quotes(&bare)), (2, 0));
    assert!(!bare.join("journal.all").exists());
    let checked = alluvium::StateDirectory::open(&bare).unwrap().check().unwrap();
    assert!(checked.is_sound(), "{checked}");
    let copy = builder().state(format!("file:{}", bare.display())).open().unwrap();
    assert!(copy.roles().is_empty());
    let mut everybody = copy.session();
    let rows = rows(&mut everybody, "SELECT t.a, t.b, m.x, made.a FROM t, m, made ORDER BY 1");
    assert_eq!(rows, ["1 10 43 5", "2 20 43 5", "3 30 43 5"]);
    run(&mut everybody, "INSERT INTO t VALUES (4, 40); CHECKPOINT");
}
