//! What a session is told of: definitions it may use, who it is, and only relations that it has the right to.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use alluvium::unstable::owned_key;
use alluvium::{Access, Action, Authorizer, Engine, Error, Outcome, Session};

use crate::support::{engine_with, lines};

const RELATIONS: &str = "
    CREATE ROLE root SUPERUSER LOGIN; CREATE ROLE ada LOGIN; CREATE ROLE bob LOGIN; CREATE ROLE writers;
    CREATE TABLE seen (id SERIAL PRIMARY KEY, a BIGINT); CREATE TABLE hidden (id SERIAL PRIMARY KEY, a BIGINT);
    CREATE TABLE written (a BIGINT); CREATE SEQUENCE seen_q; CREATE SEQUENCE hidden_q;
    CREATE VIEW v AS SELECT seen.a, hidden.a AS b FROM seen, hidden;
    CREATE SCHEMA used; CREATE SCHEMA inside; CREATE SCHEMA secret; CREATE SCHEMA owned;
    CREATE TABLE secret.t (a INT); CREATE TABLE inside.t (a INT);
    GRANT SELECT ON seen, v TO ada; GRANT USAGE ON SEQUENCE seen_q TO ada; GRANT USAGE ON SCHEMA used TO ada;
    GRANT INSERT ON written TO writers; GRANT writers TO ada; GRANT USAGE ON SCHEMA inside TO ada; GRANT SELECT ON inside.t TO ada;
    GRANT SELECT ON hidden TO bob; GRANT USAGE ON SEQUENCE hidden_q TO bob; GRANT USAGE ON SCHEMA secret TO bob;
    ALTER SCHEMA owned OWNER TO writers";

fn session(engine: &Engine, role: &str) -> Session {
    let mut session = engine.session();
    session.set_role(role).unwrap();
    session
}

fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    match session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop() {
        Some(Outcome::Rows(rows)) => {
            let mut lines = lines(&rows.into_batches().unwrap());
            lines.sort();
            lines
        }
        other => panic!("rows are expected, not {other:?}"),
    }
}

#[test]
fn a_session_is_told_the_epoch_that_it_has_committed() {
    let engine = engine_with(1, "CREATE TABLE t (a BIGINT)");
    let told = "SELECT current_setting('alluvium.committed', true)";
    let (mut session, mut other) = (engine.session(), engine.session());
    assert_eq!(rows(&mut session, told), ["NULL"]);
    session.execute("INSERT INTO t VALUES (1)").unwrap();
    let first = engine.progress().committed;
    assert_eq!(rows(&mut session, told), [first.to_string()]);
    session.execute("BEGIN; INSERT INTO t VALUES (2)").unwrap();
    other.execute("INSERT INTO t VALUES (3)").unwrap();
    assert_eq!(rows(&mut session, told), [first.to_string()]);
    session.execute("COMMIT").unwrap();
    assert_eq!(rows(&mut session, told), [(first + 2).to_string()]);
    // One that changes nothing has the epoch that it reads as of.
    other.execute("BEGIN; COMMIT").unwrap();
    assert_eq!(rows(&mut other, told), [(first + 2).to_string()]);
}

#[test]
fn a_role_is_told_of_what_it_may_use() {
    let engine = engine_with(1, RELATIONS);
    let (mut ada, mut root) = (session(&engine, "ada"), session(&engine, "root"));
    let names = "SELECT table_name FROM information_schema.tables";
    assert_eq!(rows(&mut ada, names), ["seen", "t", "v", "written"]);
    assert_eq!(rows(&mut ada, "SHOW TABLES"), ["inside.t", "seen", "v", "written"]);
    let sequences = "SELECT name FROM alluvium.sequences";
    assert_eq!(rows(&mut ada, sequences), ["seen_id_seq", "seen_q"]);
    assert_eq!(rows(&mut root, sequences), ["hidden_id_seq", "hidden_q", "seen_id_seq", "seen_q"]);
    let schemas = "SELECT schema_name FROM information_schema.schemata";
    let own = ["alluvium", "information_schema", "inside", "owned", "public", "used"];
    assert_eq!(rows(&mut ada, schemas), own);
    assert_eq!(rows(&mut root, schemas).len(), own.len() + 1);
    let read = "SELECT relation, read_relation FROM alluvium.dependencies";
    assert_eq!(rows(&mut ada, read), ["v seen"]);
    assert_eq!(rows(&mut root, read), ["v hidden", "v seen"]);
    let grants =
        rows(&mut ada, "SELECT DISTINCT name FROM alluvium.grants WHERE kind <> 'database'");
    assert_eq!(
        grants,
        ["inside", "inside.t", "owned", "public", "seen", "seen_q", "used", "v", "written"]
    );
    assert_eq!(
        rows(
            &mut ada,
            "SELECT kind, schema, object, privilege FROM alluvium.grants WHERE object = 't'"
        ),
        ["table inside t SELECT"]
    );
    // Rows, and what is in them, are for those who may read them.
    assert!(ada.execute("SELECT * FROM written").is_err());
    assert_eq!(rows(&mut ada, "SELECT name FROM alluvium.tables"), ["inside.t", "seen"]);
    assert_eq!(rows(&mut root, "SELECT count(*) FROM alluvium.tables"), ["5"]);
}

#[test]
fn settings_tell_who_a_session_is() {
    let engine = engine_with(1, RELATIONS);
    let mut all = engine.session();
    let who = "SELECT current_setting('is_superuser'), current_setting('session_authorization'), current_user, session_user";
    assert_eq!(rows(&mut all, who), ["on alluvium alluvium alluvium"]);
    let mut root = session(&engine, "root");
    let told = |session: &Session| {
        ["is_superuser", "Session_Authorization"].map(|it| session.setting(it).unwrap())
    };
    assert_eq!(told(&root), ["on", "root"]);
    let revision = root.settings_revision();
    assert_eq!(rows(&mut root, "SET ROLE ada; SHOW is_superuser"), ["off"]);
    assert!(root.settings_revision() > revision);
    assert_eq!(rows(&mut root, who), ["off root ada root"]);
    assert_eq!(
        rows(&mut root, "RESET ROLE; SET SESSION AUTHORIZATION bob; SHOW session_authorization"),
        ["bob"]
    );
    assert_eq!(told(&root), ["off", "bob"]);
    root.execute("RESET SESSION AUTHORIZATION").unwrap();
    assert_eq!(told(&root), ["on", "root"]);
    // As of the roles of the moment.
    all.execute("CREATE ROLE other SUPERUSER LOGIN; ALTER ROLE root NOSUPERUSER").unwrap();
    assert_eq!(rows(&mut root, "SHOW is_superuser"), ["off"]);
    assert!(root.execute("SET is_superuser = 'off'").is_err());
    root.execute("SET is_superuser = 'on'").unwrap();
    assert_eq!(rows(&mut root, "SHOW is_superuser"), ["off"]);
    struct Nobody;
    impl Authorizer for Nobody {
        fn allows(&self, _: &Access<'_>) -> bool {
            false
        }
    }
    all.set_authorizer("eve", Arc::new(Nobody));
    assert_eq!(rows(&mut all, who), ["off eve eve eve"]);
}

/// Lets statements read `t` as long as it is the first one of this name, and replaces it when it is asked for the first time.
struct Replacing {
    engine: Engine,
    asked: AtomicUsize,
    then: &'static str,
}

impl Authorizer for Replacing {
    fn allows(&self, access: &Access<'_>) -> bool {
        if access.action == Action::Create {
            return true;
        }
        if self.asked.fetch_add(1, Ordering::SeqCst) == 0 {
            self.engine.execute(self.then).unwrap();
            return true;
        }
        false
    }
}

/// Rights were asked over one state of the catalog, and the statement ran over the next one.
#[test]
fn a_relation_that_takes_a_name_after_rights_were_asked_is_not_read() {
    for sql in [
        "SELECT * FROM t",
        "SELECT a FROM t WHERE a = 42",
        "SELECT count(*) FROM t AS x, t AS y",
        "EXPLAIN SELECT * FROM t",
        "DESCRIBE t",
        "INSERT INTO o SELECT a FROM t",
        "INSERT INTO t VALUES (1, 1)",
        "UPDATE t SET b = 0",
        "DELETE FROM t",
        "TRUNCATE t",
        "CREATE TABLE mine AS SELECT * FROM t",
        "CREATE VIEW mine AS SELECT * FROM t",
        "CREATE MATERIALIZED VIEW mine AS SELECT * FROM t",
        "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM t",
    ] {
        let engine = engine_with(
            1,
            "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT); CREATE TABLE o (a BIGINT)",
        );
        let then = "DROP TABLE t; CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT); INSERT INTO t VALUES (42, 7)";
        let asked = AtomicUsize::new(0);
        let mut session = engine.session();
        session.set_authorizer("ada", Arc::new(Replacing { engine: engine.clone(), asked, then }));
        match session.execute(sql).map(|mut all| all.pop()) {
            Err(Error::Denied { .. } | Error::Conflict { .. }) => {}
            // The relation that was there is told of.
            Ok(Some(Outcome::Rows(_))) if sql.starts_with("DESCRIBE") => {}
            Ok(Some(Outcome::Text(_))) => {}
            other => panic!("{sql}: {other:?}"),
        }
        assert_eq!(lines(&engine.query("SELECT * FROM t").unwrap()), ["42 7"], "{sql}");
        assert!(engine.query("SELECT * FROM mine").is_err());
    }
}

/// A definition of something else is no reason to fail.
#[test]
fn a_statement_runs_over_the_relations_that_rights_were_asked_for() {
    let engine = engine_with(1, "CREATE TABLE t (a BIGINT PRIMARY KEY); INSERT INTO t VALUES (1)");
    struct Defining(Engine, AtomicUsize);
    impl Authorizer for Defining {
        fn allows(&self, _: &Access<'_>) -> bool {
            let number = self.1.fetch_add(1, Ordering::SeqCst);
            self.0.execute(&format!("CREATE TABLE other_{number} (a INT)")).unwrap();
            true
        }
    }
    let mut session = engine.session();
    session.set_authorizer("ada", Arc::new(Defining(engine.clone(), AtomicUsize::new(0))));
    assert_eq!(rows(&mut session, "SELECT a FROM t"), ["1"]);
    session.execute("INSERT INTO t VALUES (2); UPDATE t SET a = 3 WHERE a = 1; CREATE TABLE copied AS SELECT * FROM t").unwrap();
    assert_eq!(rows(&mut session, "SELECT a FROM copied"), ["2", "3"]);
}

#[test]
fn a_key_of_an_owner_has_its_effect_once_also_after_a_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("file:{}", directory.path().join("state").display());
    let open = || Engine::builder().workers(1).state(&state).open().unwrap();
    let insert = |engine: &Engine, owner: &str| {
        let mut session = engine.session();
        session.set_key(owned_key(owner, "one"));
        session.execute("BEGIN; INSERT INTO t VALUES (1); COMMIT").unwrap();
        session.committed()
    };
    let engine = open();
    engine.execute("CREATE TABLE t (a BIGINT)").unwrap();
    let first = insert(&engine, "ada");
    insert(&engine, "bob");
    for _ in 0..2 {
        assert_eq!(insert(&engine, "ada"), first);
    }
    drop(engine);
    let engine = open();
    assert_eq!(insert(&engine, "ada"), first);
    engine.checkpoint().unwrap();
    drop(engine);
    let engine = open();
    assert_eq!(insert(&engine, "ada"), first);
    assert_eq!(engine.committed(&owned_key("ada", "one")).unwrap(), first);
    assert_eq!(lines(&engine.query("SELECT count(*) FROM t").unwrap()), ["2"]);
}
