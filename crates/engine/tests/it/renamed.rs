//! Relations that get other names while views read them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use alluvium::{Engine, SqlState};
use alluvium_storage::SimulatedDisk;

use crate::checkpoints::on_with;
use crate::crashes::Crashes;
use crate::support::{engine, engine_with, lines, query, settled};

fn failure(engine: &Engine, sql: &str) -> String {
    engine.execute(sql).unwrap_err().to_string()
}

/// The statement that creates a relation.
fn text(engine: &Engine, name: &str) -> String {
    let relations = engine.relations().unwrap();
    relations.iter().find(|relation| relation.name == name).unwrap().sql.clone()
}

/// Runs a program, and again from its definitions alone, with the same changes after both.
#[test]
fn views_name_a_relation_as_it_is_called() {
    let disk = SimulatedDisk::new(1);
    let engine = on_with(&disk, 2).unwrap();
    engine
        .execute(
            "CREATE SCHEMA s; CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT); CREATE TABLE s.\"T t\" (a BIGINT, b BIGINT);
             CREATE INDEX by_b ON t (b);
             INSERT INTO t VALUES (1, 1), (2, 1); INSERT INTO s.\"T t\" VALUES (1, 3), (1, 4);
             CREATE MATERIALIZED VIEW joined AS SELECT t.a, x.b FROM t JOIN s.\"T t\" x ON t.b = x.a WHERE t.a > 0;
             CREATE INDEX by_a ON joined (a);
             CREATE MATERIALIZED VIEW twice AS SELECT t.a, other.b FROM t JOIN T AS other ON t.b = other.b;
             CREATE VIEW hidden AS WITH t AS (SELECT a + 10 AS a FROM t) SELECT t.a FROM t;
             CREATE MATERIALIZED VIEW counted AS SELECT count(*), max(joined.b) FROM joined
                 WHERE a IN (SELECT t.a FROM public.t) AND EXISTS (SELECT 1 FROM s.\"T t\" WHERE \"T t\".a = joined.a);
             CREATE MATERIALIZED VIEW over AS SELECT h.a, c.\"max(joined.b)\" AS m FROM hidden h, counted c",
        )
        .unwrap();
    let before = query(&engine, "SELECT * FROM over");
    engine
        .execute(
            "ALTER TABLE t RENAME TO \"Select\"; ALTER TABLE s.\"T t\" RENAME TO u; ALTER VIEW joined RENAME TO j;
             ALTER VIEW hidden RENAME TO t; ALTER TABLE \"Select\" RENAME TO \"S\"",
        )
        .unwrap();
    assert_eq!(query(&engine, "SELECT * FROM over"), before);
    let expected = [
        ("j", "SELECT t.a, x.b FROM \"S\" AS t JOIN s.u x ON t.b = x.a"),
        ("twice", "FROM \"S\" AS t JOIN \"S\" AS other ON"),
        ("t", "CREATE VIEW t AS WITH t AS (SELECT a + 10 AS a FROM \"S\" AS t) SELECT t.a FROM t"),
        ("counted", "FROM j AS joined"),
        ("counted", "(SELECT t.a FROM \"S\" AS t) AND EXISTS (SELECT 1 FROM s.u AS \"T t\" WHERE"),
    ];
    for (view, part) in expected {
        assert!(text(&engine, view).contains(part), "{}", text(&engine, view));
    }
    assert!(text(&engine, "over").contains("FROM t h, counted c"), "{}", text(&engine, "over"));
    let indexes: Vec<String> = engine
        .relations()
        .unwrap()
        .iter()
        .flat_map(|relation| relation.indexes.clone())
        .map(|index| index.sql)
        .collect();
    assert_eq!(indexes, ["CREATE INDEX by_b ON \"S\" (b)", "CREATE INDEX by_a ON j (a)"]);
    let mut engine = engine;
    for (restart, workers) in [3, 1, 2].into_iter().enumerate() {
        let n = restart + 10;
        engine
            .execute(&format!("INSERT INTO \"S\" VALUES ({n}, 1); INSERT INTO s.u VALUES (1, {n})"))
            .unwrap();
        engine.execute("DELETE FROM \"S\" WHERE a = 2").unwrap();
        // The same definitions over the same rows.
        let judge = crate::support::engine(1);
        judge.execute("CREATE SCHEMA s").unwrap();
        for table in ["\"S\"", "s.u"] {
            let name = table.trim_matches('"');
            judge.execute(&text(&engine, name)).unwrap();
            let rows = query(&engine, &format!("SELECT a, b FROM {table}"));
            for row in rows {
                judge
                    .execute(&format!("INSERT INTO {table} VALUES ({})", row.replace(' ', ", ")))
                    .unwrap();
            }
        }
        for view in ["j", "twice", "t", "counted", "over"] {
            judge.execute(&text(&engine, view)).unwrap();
            let sql = format!("SELECT * FROM {view}");
            assert_eq!(settled(&engine, &sql), settled(&judge, &sql), "{view}");
        }
        if restart == 1 {
            engine.execute("CHECKPOINT").unwrap();
        }
        drop(engine);
        engine = on_with(&disk, workers).unwrap();
        assert_eq!(query(&engine, "SELECT b FROM \"S\" WHERE b = 1 AND a = 1"), ["1"]);
    }
    engine.execute("DROP TABLE \"S\" CASCADE; DROP TABLE s.u CASCADE").unwrap();
    assert!(engine.relations().unwrap().is_empty());
}

/// What dbt runs for a model of the kind `table` for the second time.
#[test]
fn a_table_is_replaced_under_the_views_that_read_it() {
    for is_one in [false, true] {
        let disk = SimulatedDisk::new(2);
        let engine = on_with(&disk, 2).unwrap();
        engine
            .execute(
                "CREATE TABLE source (n BIGINT); INSERT INTO source VALUES (1), (2); CREATE TABLE model AS SELECT n FROM source;
                 CREATE MATERIALIZED VIEW reader AS SELECT sum(model.n) AS s FROM model; CREATE VIEW over AS SELECT s + 1 AS s FROM reader;
                 CREATE MATERIALIZED VIEW apart AS SELECT count(*) AS n FROM source",
            )
            .unwrap();
        let mut session = engine.session();
        let swap = "CREATE TABLE \"model__dbt_tmp\" AS (SELECT n + 10 AS n FROM source);
             ALTER TABLE \"public\".\"model\" RENAME TO \"model__dbt_backup\"; ALTER TABLE \"public\".\"model__dbt_tmp\" RENAME TO \"model\"";
        let dropped = "DROP TABLE IF EXISTS \"public\".\"model__dbt_backup\" CASCADE";
        session.execute(&format!("BEGIN; {swap}")).unwrap();
        let seen = session.execute("SELECT s FROM over").unwrap().pop().unwrap();
        let alluvium::Outcome::Rows(seen) = seen else { panic!("a query has rows") };
        assert_eq!(
            lines(&seen.into_batches().unwrap()),
            ["4"],
            "it reads the relation that it has read"
        );
        session.execute("ROLLBACK").unwrap();
        assert!(text(&engine, "reader").ends_with("FROM model"));
        assert_eq!(query(&engine, "SELECT sum(n), max(s) FROM model, over"), ["3 4"]);
        match is_one {
            true => session.execute(&format!("BEGIN; {swap}; {dropped}; COMMIT")).unwrap(),
            false => {
                session
                    .execute(&format!(
                        "BEGIN; {swap}; INSERT INTO \"model__dbt_backup\" VALUES (5); COMMIT"
                    ))
                    .unwrap();
                assert_eq!(settled(&engine, "SELECT s FROM over"), ["9"]);
                assert!(text(&engine, "reader").ends_with("FROM model__dbt_backup AS model"));
                session.execute(dropped).unwrap()
            }
        };
        let names = |engine: &Engine| {
            engine
                .relations()
                .unwrap()
                .into_iter()
                .map(|relation| relation.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&engine), ["apart", "model", "source"]);
        engine.execute("CREATE MATERIALIZED VIEW reader AS SELECT sum(n) AS s FROM model").unwrap();
        drop((session, engine));
        for _ in 0..2 {
            let engine = on_with(&disk, 1).unwrap();
            assert_eq!(names(&engine), ["apart", "model", "reader", "source"]);
            assert_eq!(query(&engine, "SELECT s, n FROM reader, apart"), ["23 2"]);
            engine.execute("CHECKPOINT").unwrap();
        }
    }
}

/// Names change in a chain, back, and of several relations of one view at a time.
#[test]
fn several_relations_get_other_names_together() {
    let disk = SimulatedDisk::new(3);
    let engine = on_with(&disk, 2).unwrap();
    engine
        .execute(
            "CREATE TABLE a (k BIGINT UNIQUE, n BIGINT); CREATE TABLE b (k BIGINT, n BIGINT); CREATE TABLE free (n BIGINT);
             INSERT INTO a VALUES (1, 1), (2, 5); INSERT INTO b VALUES (1, 100); CREATE INDEX i ON b (k);
             CREATE MATERIALIZED VIEW v AS SELECT a.k, a.n - b.n AS d FROM a JOIN b ON a.k = b.k;
             CREATE MATERIALIZED VIEW w AS SELECT sum(d) AS s FROM v",
        )
        .unwrap();
    let mut session = engine.session();
    session
        .execute(
            "BEGIN; ALTER VIEW v RENAME TO x; ALTER TABLE b RENAME TO c; INSERT INTO c VALUES (2, 200); ALTER TABLE a RENAME TO d;
             ALTER TABLE c RENAME TO b; ALTER VIEW w RENAME TO y; SAVEPOINT s; ALTER TABLE d RENAME TO e; ROLLBACK TO s",
        )
        .unwrap();
    session.execute("INSERT INTO d VALUES (3, 7)").unwrap();
    let error = session.execute("INSERT INTO d VALUES (3, 7)").unwrap_err();
    assert_eq!(error.sqlstate(), SqlState::UNIQUE, "{error}");
    session.execute("COMMIT").unwrap();
    assert!(text(&engine, "x").contains("FROM d AS a JOIN b AS b ON"), "{}", text(&engine, "x"));
    assert_eq!(settled(&engine, "SELECT s FROM y"), ["-294"]);
    // Rows sorted by columns go by the names of relations.
    let error =
        session.execute("BEGIN; ALTER TABLE d RENAME TO a; ALTER TABLE b RENAME TO d").unwrap_err();
    assert_eq!(error.sqlstate(), SqlState::ACTIVE_TRANSACTION, "{error}");
    session.execute("ROLLBACK").unwrap();
    drop((session, engine));
    for sum in ["-293", "-292"] {
        let engine = on_with(&disk, 3).unwrap();
        engine.execute("INSERT INTO b VALUES (3, 6)").unwrap();
        assert_eq!(settled(&engine, "SELECT s FROM y"), [sum]);
        engine.execute("CHECKPOINT").unwrap();
    }
}

/// If any call of the disk fails, and the machine loses power then, a relation and all that read it have the one name or the other.
#[test]
fn after_a_crash_at_any_call_all_views_know_a_relation_by_one_name() {
    const STATEMENTS: [&str; 4] = [
        "ALTER TABLE t RENAME TO u",
        "CHECKPOINT",
        "ALTER VIEW v RENAME TO x",
        "ALTER TABLE u RENAME TO t",
    ];
    let names = |engine: &Engine| {
        let relations = engine.relations().unwrap();
        relations.into_iter().map(|relation| relation.name).collect::<Vec<_>>().join(" ")
    };
    const STATES: [&str; 5] = ["t v w", "u v w", "u v w", "u w x", "t w x"];
    let crashes = Crashes {
        workers: 2,
        before: "CREATE TABLE t (a BIGINT, b BIGINT); CREATE INDEX i ON t (b); INSERT INTO t VALUES (1, 1), (2, 1);
             CREATE MATERIALIZED VIEW v AS SELECT t.a, o.a AS o FROM t JOIN t AS o ON t.b = o.b; CHECKPOINT;
             CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM v",
        statements: &STATEMENTS,
        step: 4,
    };
    crashes.each_in_a_state(
        |engine, state| names(engine) == STATES[state],
        |engine, call| {
            engine.execute("INSERT INTO t VALUES (3, 1)").unwrap();
            assert_eq!(settled(engine, "SELECT n FROM w"), ["9"], "call {call}");
        },
    );
}

#[test]
fn statements_and_subscribers_know_a_relation_by_its_name() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (n BIGINT PRIMARY KEY); INSERT INTO t VALUES (1); CREATE MATERIALIZED VIEW v AS SELECT n FROM t;
         CREATE MATERIALIZED VIEW apart AS SELECT 1 AS n",
    );
    let mut session = engine.session();
    session
        .execute("PREPARE by_table AS SELECT n FROM t; PREPARE by_view AS SELECT n FROM v; EXECUTE by_table; EXECUTE by_view")
        .unwrap();
    let mut of_view = engine.subscribe("v").unwrap();
    assert_eq!(of_view.next().unwrap().unwrap().rows.num_rows(), 1);
    engine.execute("ALTER TABLE t RENAME TO u; INSERT INTO u VALUES (2)").unwrap();
    let error = session.execute("EXECUTE by_table").unwrap_err();
    assert_eq!(error.sqlstate(), SqlState::NO_RELATION, "{error}");
    session.execute("EXECUTE by_view").unwrap();
    assert!(of_view.next().is_none(), "it ends as one of the table does");
    assert_eq!(settled(&engine, "SELECT n FROM v"), ["1", "2"]);
    assert_eq!(query(&engine, "SELECT n FROM v WHERE n = 2"), ["2"]);
}

#[test]
fn what_keeps_a_relation_from_another_name_is_named() {
    let engine = engine(1);
    engine
        .execute(
            "CREATE TABLE t (n BIGINT, ts TIMESTAMP LATENESS INTERVAL '1' HOUR); CREATE VIEW v AS SELECT n FROM t;
             CREATE TABLE e (a BIGINT, b BIGINT);
             DECLARE RECURSIVE VIEW r (a BIGINT, b BIGINT); CREATE MATERIALIZED VIEW r AS SELECT a, b FROM e UNION SELECT r.a, e.b FROM r, e WHERE r.b = e.a",
        )
        .unwrap();
    for (sql, reader) in
        [("ALTER TABLE t RENAME TO u", "\"v\""), ("ALTER TABLE e RENAME TO u", "\"r\"")]
    {
        let error = failure(&engine, sql);
        assert!(error.contains(reader) && error.contains("DROP"), "{error}");
    }
    let mut session = engine.session();
    session
        .execute("CREATE TABLE a (n BIGINT); BEGIN; CREATE VIEW over AS SELECT n FROM a")
        .unwrap();
    let error = session.execute("ALTER TABLE a RENAME TO b").unwrap_err();
    assert_eq!(error.sqlstate(), SqlState::ACTIVE_TRANSACTION, "{error}");
}
