//! Views and functions of a program's own, and the relations about definitions that they read.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use alluvium::Engine;

use crate::support::{lines, query};

const DEFINITIONS: &str = "
    CREATE VIEW cat.names AS SELECT schema, relation FROM alluvium.relations WHERE kind <> 'index';
    CREATE VIEW cat.counted (relations) AS SELECT count(*) FROM cat.names;
    CREATE FUNCTION many() AS (SELECT relations FROM cat.counted) > 1;
    CREATE FUNCTION word(arg, arg2) AS coalesce(arg2, '') || CAST(arg AS VARCHAR);
    CREATE FUNCTION _word(arg) AS array_to_string(arg, ' ');
    CREATE FUNCTION both(arg) AS unnest(make_array(arg, -arg));
    CREATE FUNCTION lower(arg) AS 'not ' || upper(arg);";

fn engine() -> Engine {
    let builder = Engine::builder().workers(1).system_path("cat").system_sql(DEFINITIONS);
    let engine = builder.open_in_memory().unwrap();
    engine.execute("CREATE TABLE t (a INT PRIMARY KEY); CREATE SCHEMA s; CREATE VIEW s.v AS SELECT a FROM t").unwrap();
    engine
}

#[test]
fn views_of_the_program_are_read_as_system_relations_are() {
    let engine = engine();
    assert_eq!(
        query(&engine, "SELECT relation, schema FROM cat.names ORDER BY 1"),
        ["t public", "v s"]
    );
    assert_eq!(query(&engine, "SELECT relations FROM counted"), ["2"]);
    assert_eq!(query(&engine, "SELECT relations FROM counted()"), ["2"]);
    assert_eq!(query(&engine, "SELECT n.relation FROM names n JOIN t ON false"), [""; 0]);
    assert_eq!(
        query(&engine, "SELECT table_name FROM information_schema.tables ORDER BY 1"),
        ["t", "v"]
    );
    engine.execute("CREATE TABLE counted (own INT)").unwrap();
    assert_eq!(query(&engine, "SELECT count(own) FROM counted"), ["0"]);
    assert_eq!(query(&engine, "SELECT relations FROM cat.counted"), ["3"]);
}

#[test]
fn a_search_path_hides_no_views_of_the_program() {
    let engine = engine();
    let mut session = engine.session();
    session
        .execute("SET search_path TO s; SELECT relations FROM counted; SELECT a FROM v")
        .unwrap();
    assert!(session.execute("SELECT a FROM t").is_err());
}

#[test]
fn functions_of_the_program_are_called_by_casts_and_in_from() {
    let engine = engine();
    assert_eq!(
        query(&engine, "SELECT many(), word(1), word(1, 'n'), lower('a')"),
        ["true 1 n1 not A"]
    );
    assert_eq!(
        query(&engine, "SELECT 2::word, ARRAY[1, 2]::word[], CAST(3 AS pg_catalog.word)"),
        ["2 1 2 3"]
    );
    assert_eq!(
        query(&engine, "SELECT b, n FROM both(3) WITH ORDINALITY AS x (b, n) ORDER BY n"),
        ["-3 2", "3 1"]
    );
    assert_eq!(query(&engine, "SELECT both FROM both(3) ORDER BY 1"), ["-3", "3"]);
}

#[test]
fn nothing_of_the_program_can_be_changed_or_be_read_by_views() {
    let engine = engine();
    for wrong in [
        "DROP VIEW cat.names",
        "DROP FUNCTION many",
        "ALTER VIEW cat.names RENAME TO other",
        "INSERT INTO cat.counted VALUES (1)",
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM cat.names",
        "CREATE VIEW m AS SELECT * FROM counted",
        "SELECT * FROM t, none(1)",
        "SELECT 1::none",
    ] {
        assert!(engine.execute(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_wrong_with_definitions_is_an_error_of_opening_or_of_the_statement_that_names_them() {
    let open = |sql: &str| Engine::builder().workers(1).system_sql(sql).open_in_memory();
    for wrong in [
        "CREATE TABLE t (a INT)",
        "SELECT 1",
        "CREATE VIEW x AS SELECT 1 AS a; CREATE VIEW x AS SELECT 2 AS a",
        "CREATE FUNCTION f(x) AS x; CREATE FUNCTION f(x) AS x",
        "CREATE VIEW",
    ] {
        assert!(open(wrong).is_err(), "{wrong}");
    }
    let engine =
        open("CREATE VIEW x.a AS SELECT b FROM t; CREATE VIEW x.b AS SELECT c FROM x.b").unwrap();
    engine.execute("CREATE TABLE t (b INT)").unwrap();
    let failed = engine.query("SELECT * FROM x.a").unwrap_err().to_string();
    assert_eq!(failed, "the system view \"x.a\": no table or view \"t\"");
    assert!(engine.query("SELECT * FROM x.b").is_err());
}

#[test]
fn system_relations_tell_what_definitions_consist_of() {
    let engine = Engine::builder().workers(1).open_in_memory().unwrap();
    let made = "CREATE TABLE t (id SERIAL PRIMARY KEY, a INT NOT NULL CHECK (a > 0), b TEXT DEFAULT 'x', UNIQUE (b, a));
        CREATE INDEX by_a ON t (a); CREATE SEQUENCE s INCREMENT BY 2; CREATE VIEW v AS SELECT a FROM t;
        COMMENT ON COLUMN t.a IS 'a'";
    engine.execute(made).unwrap();
    let columns = "SELECT name, position, type, nullable, \"default\", generated, sequence, comment FROM alluvium.columns WHERE relation = 't'";
    assert_eq!(
        query(&engine, columns),
        [
            "a 2 INTEGER false NULL NULL NULL a",
            "b 3 VARCHAR true 'x' NULL NULL NULL",
            "id 1 INTEGER false nextval('t_id_seq') by default t_id_seq NULL",
        ]
    );
    let constraints = "SELECT name, kind, columns, positions, condition FROM alluvium.constraints";
    assert_eq!(
        query(&engine, constraints),
        [
            "t_a_check check [a] [2] a > 0",
            "t_b_a_key unique [b, a] [3, 2] NULL",
            "t_pkey primary key [id] [1] NULL",
        ]
    );
    let indexes = "SELECT relation, name, columns, positions, \"unique\" FROM alluvium.indexes";
    assert_eq!(query(&engine, indexes), ["t by_a [a] [2] false", "t t_b_a_key [b, a] [3, 2] true"]);
    let sequences = "SELECT name, relation, \"column\", increment FROM alluvium.sequences";
    assert_eq!(query(&engine, sequences), ["s NULL NULL 2", "t_id_seq t id 1"]);
    let read = "SELECT relation, read_relation FROM alluvium.dependencies";
    assert_eq!(query(&engine, read), ["v t"]);
    let counts = "SELECT name, columns, indexes, checks, temporary FROM alluvium.relations WHERE kind <> 'index'";
    assert_eq!(query(&engine, counts), ["t 3 3 1 false", "v 1 0 0 false"]);
}

#[test]
fn functions_tell_of_the_session_and_set_its_settings() {
    let engine = Engine::builder().workers(1).open_in_memory().unwrap();
    let mut session = engine.session();
    let mut one = |sql: &str| {
        let alluvium::Outcome::Rows(rows) = session.execute_with(sql, &[]).unwrap() else {
            panic!("{sql}")
        };
        let rows = rows.into_batches().unwrap();
        alluvium::arrow::util::display::array_value_to_string(rows[0].column(0), 0).unwrap()
    };
    assert_eq!(one("SELECT current_setting('application_name')"), "");
    assert_eq!(one("SELECT set_config('application_name', 'me', false)"), "me");
    assert_eq!(one("SELECT current_setting('application_name')"), "me");
    assert_eq!(one("SELECT setting FROM alluvium.settings WHERE name = 'application_name'"), "me");
    assert_eq!(one("SELECT set_config('application_name', 'you', true)"), "you");
    assert_eq!(one("SELECT current_setting('application_name')"), "me");
    assert_eq!(one("SELECT current_setting('none', true)"), "");
    assert_eq!(one("SELECT current_schema()"), "public");
    assert_eq!(one("SELECT current_schemas(true)"), "[public]");
    assert_eq!(one("SELECT current_user || current_database()"), "alluviumalluvium");
    assert!(session.execute("SELECT current_setting('none')").is_err());
    assert!(session.execute("SELECT set_config('none', 'x', false)").is_err());
    assert!(session.execute("CREATE VIEW v AS SELECT current_user AS u").is_err());
}

/// Some were no values, or only in a server.
#[test]
fn functions_of_the_session_are_values_without_parentheses() {
    let engine = Engine::builder().workers(1).open_in_memory().unwrap();
    let mut session = engine.session();
    session.execute("CREATE TABLE t (a INT PRIMARY KEY, who VARCHAR)").unwrap();
    for (word, value) in [
        ("current_role", "alluvium"),
        ("CURRENT_USER", "alluvium"),
        ("Session_User", "alluvium"),
        ("user", "alluvium"),
        ("current_catalog", "alluvium"),
        ("current_schema", "public"),
    ] {
        for form in [
            "INSERT INTO t VALUES (1, $) RETURNING who",
            "UPDATE t SET who = $ WHERE who = $ RETURNING who",
            "SELECT $",
            "SELECT ($) AS who",
            "SELECT lower($) || ''",
            "SELECT $::VARCHAR",
            "SELECT CAST($ AS VARCHAR)",
            "SELECT CASE WHEN $ = $ THEN $ END",
            "SELECT coalesce(NULL, $)",
            "SELECT who FROM (VALUES ($)) AS x (who)",
            "SELECT (SELECT $)",
            "SELECT [$][1]",
            "SELECT max($) FROM t",
            "WITH w AS (SELECT $ AS who) SELECT who FROM w",
            "SELECT who FROM t WHERE who IN ('x', $) AND $ LIKE who AND $ BETWEEN who AND $",
            "SELECT x.who FROM t AS x JOIN t ON x.who = $",
            "SELECT $ FROM t GROUP BY $ HAVING $ IS NOT NULL ORDER BY $ LIMIT 1",
            "SELECT first_value($) OVER (ORDER BY a) FROM t",
            "SELECT who FROM t WHERE EXISTS (SELECT 1 WHERE who = $)",
            "DELETE FROM t WHERE who = $ RETURNING who",
        ] {
            let sql = form.replace('$', word);
            let outcome =
                session.execute_with(&sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
            let alluvium::Outcome::Rows(rows) = outcome else { panic!("{sql}") };
            assert_eq!(lines(&rows.into_batches().unwrap()), [value], "{sql}");
        }
    }
    let rows = engine.query("SELECT current_role, CURRENT_USER, user, current_schema").unwrap();
    let names = rows[0].schema().fields().iter().map(|it| it.name().clone()).collect::<Vec<_>>();
    assert_eq!(names, ["current_role", "current_user", "user", "current_schema"]);
    // In quotes it is a name, and so it is after AS and with a point.
    let named = "SELECT \"user\", x.current_role, x.current_schema FROM (SELECT 1 AS user, 2 AS current_role, 3 AS current_schema) AS x";
    assert_eq!(query(&engine, named), ["1 2 3"]);
    assert_eq!(query(&engine, "SELECT current_schema() || current_schema"), ["publicpublic"]);
}
