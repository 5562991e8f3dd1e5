//! The questions to an authorizer, and the effect of its answers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use alluvium::{Access, Action, Authorizer, Engine, Error, Object, Outcome, Session};

use crate::support::{engine_with, lines};

/// Allows what it was granted, and notes what it is asked.
#[derive(Default)]
struct Grants {
    granted: Mutex<BTreeSet<(Action, String)>>,
    asked: Mutex<Vec<String>>,
}

impl Grants {
    fn grant(&self, action: Action, names: &[&str]) {
        let names = names.iter().map(|name| (action, (*name).to_owned()));
        self.granted.lock().unwrap().extend(names);
    }

    fn revoke(&self, action: Action, name: &str) {
        self.granted.lock().unwrap().remove(&(action, name.to_owned()));
    }

    /// The questions since the last time.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl Authorizer for Grants {
    fn allows(&self, access: &Access<'_>) -> bool {
        let (Object::Relation(name) | Object::Schema(name) | Object::Function(name)) =
            access.object
        else {
            return false;
        };
        let Access { role, action, columns, .. } = access;
        assert_eq!(*role, "ada");
        self.asked.lock().unwrap().push(format!("{action:?} {name}({})", columns.join(" ")));
        self.granted.lock().unwrap().contains(&(*action, name.to_owned()))
    }
}

const RELATIONS: &str = "
    CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT, c BIGINT); INSERT INTO t VALUES (1, 10, 100);
    CREATE TABLE u (a BIGINT PRIMARY KEY, d BIGINT); INSERT INTO u VALUES (1, 5);
    CREATE TABLE secret (a BIGINT); INSERT INTO secret VALUES (42);
    CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS x, a AS y FROM secret;
    CREATE VIEW p AS SELECT a AS x FROM secret;";

/// An engine, a session of a role without rights, and its authorizer.
fn authorized() -> (Engine, Session, Arc<Grants>) {
    let engine = engine_with(2, RELATIONS);
    let mut session = engine.session();
    let grants = Arc::new(Grants::default());
    session.set_authorizer("ada", grants.clone());
    assert_eq!(session.role(), Some("ada"));
    (engine, session, grants)
}

fn denied(session: &mut Session, sql: &str) -> String {
    match session.execute(sql) {
        Err(Error::Denied { message, position: Some(_), .. }) => message,
        other => panic!("{sql}: {other:?}"),
    }
}

fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    match session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop() {
        Some(Outcome::Rows(rows)) => lines(&rows.into_batches().unwrap()),
        other => panic!("rows are expected, not {other:?}"),
    }
}

#[test]
fn statements_ask_for_the_relations_that_they_name_with_the_columns_that_they_use() {
    let (_engine, mut session, grants) = authorized();
    grants.grant(Action::Select, &["t", "u", "m", "p", "secret"]);
    for action in [Action::Insert, Action::Update, Action::Delete] {
        grants.grant(action, &["t"]);
    }
    for (sql, asked) in [
        ("SELECT a FROM t WHERE b > 1", &["Select t(a b)"][..]),
        ("SELECT * FROM t", &["Select t(a b c)"]),
        ("SELECT count(*) FROM t", &["Select t()"]),
        ("SELECT o.b FROM t AS o", &["Select t(b)"]),
        ("SELECT t.b, u.d FROM t JOIN u ON t.a = u.a", &["Select t(a b)", "Select u(a d)"]),
        // A join that merges columns has all of both sides.
        ("SELECT t.b, u.d FROM t JOIN u USING (a)", &["Select t(a b c)", "Select u(a d)"]),
        ("SELECT sum(b) FROM t GROUP BY c HAVING max(a) > 0 ORDER BY 1", &["Select t(a b c)"]),
        ("SELECT 1 WHERE EXISTS (SELECT 1 FROM u WHERE d = 5)", &["Select u(d)"]),
        ("SELECT (SELECT d FROM u WHERE u.a = t.a) FROM t", &["Select t(a)", "Select u(a d)"]),
        ("WITH t AS (SELECT d FROM u) SELECT * FROM t", &["Select u(d)"]),
        ("SELECT x FROM m", &["Select m(x)"]),
        ("SELECT x FROM p", &["Select p(x)"]),
        ("EXPLAIN SELECT x FROM p", &["Select p(x)"]),
        ("SELECT 1", &[]),
        ("INSERT INTO t VALUES (2, 20, 200)", &["Insert t(a b c)"]),
        ("INSERT INTO t (c, a) SELECT d, 3 FROM u", &["Select u(d)", "Insert t(a c)"]),
        ("INSERT INTO t (a) VALUES (4) RETURNING c", &["Select t(c)", "Insert t(a)"]),
        (
            "INSERT INTO t VALUES (1, 1, 1) ON CONFLICT (a) DO UPDATE SET b = 2",
            &["Select t(a b c)", "Insert t(a b c)", "Update t(b)"],
        ),
        ("UPDATE t SET b = 7", &["Update t(b)"]),
        ("UPDATE t SET b = c, c = DEFAULT WHERE a = 1", &["Select t(a c)", "Update t(b c)"]),
        (
            "UPDATE t SET b = d FROM u WHERE u.a = t.a",
            &["Select t(a)", "Select u(a d)", "Update t(b)"],
        ),
        ("DELETE FROM t WHERE a = 4", &["Select t(a)", "Delete t()"]),
        ("DELETE FROM t", &["Delete t()"]),
        ("DESCRIBE t", &["Select t()"]),
    ] {
        grants.asked();
        session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(grants.asked(), asked, "{sql}");
    }
}

#[test]
fn what_is_denied_fails_before_it_does_anything() {
    let (engine, mut session, grants) = authorized();
    grants.grant(Action::Select, &["u"]);
    for (sql, message) in [
        ("SELECT * FROM t", "the role \"ada\" may not SELECT from \"t\""),
        ("SELECT * FROM u, p", "the role \"ada\" may not SELECT from \"p\""),
        ("SELECT * FROM m", "the role \"ada\" may not SELECT from \"m\""),
        ("SELECT nonsense FROM t", "the role \"ada\" may not SELECT from \"t\""),
        ("INSERT INTO t VALUES (9, 9, 9)", "the role \"ada\" may not INSERT into \"t\""),
        ("INSERT INTO t SELECT a, d, d FROM u", "the role \"ada\" may not INSERT into \"t\""),
        ("UPDATE t SET b = 0", "the role \"ada\" may not UPDATE \"t\""),
        ("DELETE FROM t", "the role \"ada\" may not DELETE from \"t\""),
        ("TRUNCATE t", "the role \"ada\" may not DELETE from \"t\""),
        ("COPY t FROM 'x.csv'", "the role \"ada\" may not INSERT into \"t\""),
        ("COPY t TO 'x.csv'", "the role \"ada\" may not SELECT from \"t\""),
        ("CREATE TABLE n (a INT)", "the role \"ada\" may not CREATE \"n\""),
        ("CREATE TABLE n AS SELECT * FROM u", "the role \"ada\" may not CREATE \"n\""),
        (
            "CREATE VIEW n AS SELECT * FROM secret",
            "the role \"ada\" may not SELECT from \"secret\"",
        ),
        (
            "CREATE OR REPLACE VIEW p AS SELECT a AS x FROM u",
            "the role \"ada\" may not CREATE \"p\"",
        ),
        ("CREATE INDEX i ON t (b)", "the role \"ada\" may not ALTER \"t\""),
        ("ALTER TABLE t RENAME TO n", "the role \"ada\" may not ALTER \"t\""),
        ("DROP TABLE t", "the role \"ada\" may not DROP \"t\""),
        ("DROP VIEW p", "the role \"ada\" may not DROP \"p\""),
        ("DESCRIBE t", "the role \"ada\" may not SELECT from \"t\""),
        ("EXPLAIN SELECT * FROM t", "the role \"ada\" may not SELECT from \"t\""),
        ("EXPLAIN VIEW m", "the role \"ada\" may not SELECT from \"m\""),
        ("EXPLAIN STATE m", "the role \"ada\" may not SELECT from \"m\""),
        ("SUBSCRIBE u", "the role \"ada\" may not SUBSCRIBE to \"u\""),
        ("CREATE SCHEMA s", "the role \"ada\" may not CREATE the schema \"s\""),
        ("DROP SCHEMA s", "the role \"ada\" may not DROP the schema \"s\""),
        ("CREATE FUNCTION f(x INT) AS x + 1", "the role \"ada\" may not CREATE the function \"f\""),
    ] {
        assert_eq!(denied(&mut session, sql), message, "{sql}");
    }
    let names: Vec<String> = engine.relations().unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["m", "p", "secret", "t", "u"]);
    assert_eq!(lines(&engine.query("SELECT * FROM t").unwrap()), ["1 10 100"]);
    // Missing relations are not asked for.
    let error = session.execute("SELECT * FROM missing").unwrap_err();
    assert!(matches!(error, Error::Sql { .. }), "{error}");
    session.execute("DROP TABLE IF EXISTS missing").unwrap();
}

#[test]
fn rights_are_asked_at_each_execution_also_of_plans_that_are_kept() {
    let (engine, mut session, grants) = authorized();
    let by_key = "SELECT b FROM t WHERE a = 1";
    let mut other = engine.session();
    for _ in 0..4 {
        assert_eq!(rows(&mut other, by_key), ["10"]);
    }
    denied(&mut session, by_key);
    grants.grant(Action::Select, &["t"]);
    for _ in 0..4 {
        grants.asked();
        assert_eq!(rows(&mut session, by_key), ["10"]);
        assert_eq!(grants.asked(), ["Select t(a b)"]);
    }
    grants.revoke(Action::Select, "t");
    denied(&mut session, by_key);
    // The same text is another relation now.
    grants.grant(Action::Select, &["t"]);
    other.execute("DROP TABLE t; CREATE VIEW t AS SELECT a, a AS b FROM secret").unwrap();
    grants.asked();
    assert_eq!(rows(&mut session, "SELECT b FROM t WHERE a = 1"), [""; 0]);
    assert_eq!(grants.asked(), ["Select t(a b)"]);
    // Rights do not follow a name into the search path.
    other.execute("CREATE SCHEMA s; CREATE TABLE s.t (a BIGINT PRIMARY KEY, b BIGINT)").unwrap();
    session.set("search_path", "s").unwrap();
    assert_eq!(denied(&mut session, by_key), "the role \"ada\" may not SELECT from \"s.t\"");
}

#[test]
fn views_are_read_with_the_rights_of_who_created_them() {
    let (_engine, mut session, grants) = authorized();
    grants.grant(Action::Select, &["m", "p"]);
    assert_eq!(rows(&mut session, "SELECT * FROM m"), ["43 42"]);
    assert_eq!(rows(&mut session, "SELECT * FROM p"), ["42"]);
    // Who may not read a relation creates no view of it.
    grants.grant(Action::Create, &["mine"]);
    denied(&mut session, "CREATE MATERIALIZED VIEW mine AS SELECT * FROM secret");
    session.execute("CREATE MATERIALIZED VIEW mine AS SELECT y FROM m").unwrap();
}

#[test]
fn system_relations_tell_of_what_the_session_may_read() {
    let (engine, mut session, grants) = authorized();
    engine
        .execute(
            "CREATE MATERIALIZED VIEW fails AS SELECT a / (a - a) AS q FROM t;
             CREATE MATERIALIZED VIEW hidden AS SELECT a / (a - a) AS q FROM secret;
             CREATE INDEX of_t ON t (b); CREATE INDEX of_secret ON secret (a);",
        )
        .unwrap();
    let mut all = engine.session();
    assert_eq!(rows(&mut all, "SELECT DISTINCT view FROM alluvium.errors"), ["fails", "hidden"]);
    grants.grant(Action::Select, &["t", "fails"]);
    assert_eq!(rows(&mut session, "SELECT DISTINCT view FROM alluvium.errors"), ["fails"]);
    assert_eq!(rows(&mut session, "SELECT name FROM alluvium.tables"), ["t"]);
    let relations = "SELECT name FROM alluvium.relations";
    assert_eq!(rows(&mut session, relations), ["fails", "of_t", "t"]);
    let states = rows(&mut session, "SELECT DISTINCT view FROM alluvium.arrangements");
    assert!(states.contains(&"t".to_owned()) && states.contains(&"of_t".to_owned()), "{states:?}");
    assert!(
        !states.iter().any(|it| ["secret", "hidden", "m", "of_secret"].contains(&it.as_str())),
        "{states:?}"
    );
    let tables = "SELECT table_name FROM information_schema.tables";
    assert_eq!(rows(&mut session, tables), ["fails", "t"]);
    let columns = "SELECT DISTINCT table_name FROM information_schema.columns";
    assert_eq!(rows(&mut session, columns), ["fails", "t"]);
    assert_eq!(rows(&mut session, "SHOW TABLES"), ["fails", "t"]);
    // The answer is as of the rights of each execution.
    grants.revoke(Action::Select, "fails");
    assert_eq!(rows(&mut session, tables), ["t"]);
    assert_eq!(rows(&mut all, tables).len(), 7);
}

/// A session with an authorizer could leave it by becoming a role.
#[test]
fn a_session_with_an_authorizer_has_no_roles() {
    let (engine, mut session, _) = authorized();
    for sql in ["CREATE ROLE r SUPERUSER LOGIN", "SET ROLE r", "GRANT SELECT ON t TO public"] {
        denied(&mut session, sql);
    }
    engine.execute("CREATE ROLE r SUPERUSER LOGIN").unwrap();
    denied(&mut session, "SET ROLE r");
    denied(&mut session, "SET SESSION AUTHORIZATION r");
}
