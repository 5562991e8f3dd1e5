//! State that several views want is kept once.

use crate::support::{engine_with, query, settled};

const TABLES: &str = "
    CREATE TABLE flight (id BIGINT, carrier VARCHAR, delay BIGINT);
    CREATE TABLE airline (carrier VARCHAR PRIMARY KEY, name VARCHAR);
    INSERT INTO airline VALUES ('UA', 'United'), ('AA', 'American'), ('B6', 'JetBlue');
    INSERT INTO flight VALUES (1, 'UA', 5), (2, 'UA', 60), (3, 'AA', 7), (4, 'ZZ', 1);";

const CHANGES: [&str; 4] = [
    "INSERT INTO flight VALUES (5, 'B6', 99), (6, 'ZZ', 3)",
    "INSERT INTO airline VALUES ('ZZ', 'Zebra')",
    "DELETE FROM flight WHERE id = 2",
    "UPDATE airline SET name = 'U' WHERE carrier = 'UA'",
];

#[test]
fn views_over_one_index_come_and_go_on_their_own() {
    const JOIN: &str = "FROM flight f JOIN airline a ON f.carrier = a.carrier";
    for workers in 1..=3 {
        let engine = engine_with(workers, TABLES);
        let checked = |names: &[&str]| {
            for name in names {
                let kept = settled(&engine, &format!("SELECT * FROM {name}"));
                let asked = query(
                    &engine,
                    &format!("SELECT f.id, a.name {JOIN} WHERE f.delay > {}", &name[1..]),
                );
                assert_eq!(kept, asked, "{name} on {workers} workers");
            }
        };
        let create = |name: &str| {
            let threshold = &name[1..];
            let sql = format!(
                "CREATE MATERIALIZED VIEW {name} AS SELECT f.id, a.name {JOIN} WHERE f.delay > {threshold}"
            );
            engine.execute(&sql).expect("the view is right");
        };
        create("v0");
        create("v6");
        checked(&["v0", "v6"]);
        for (change, step) in CHANGES.into_iter().zip(0..) {
            engine.execute(change).expect("rows change");
            match step {
                0 => create("v50"),
                // The view that made the index goes; those that found it stay.
                1 => drop(engine.execute("DROP VIEW v0").expect("nothing uses it")),
                2 => {
                    drop(engine.execute("DROP VIEW v6; DROP VIEW v50").expect("nothing uses them"))
                }
                _ => create("v2"),
            }
            match step {
                0 => checked(&["v0", "v6", "v50"]),
                1 => checked(&["v6", "v50"]),
                2 => {}
                _ => checked(&["v2"]),
            }
        }
        engine
            .execute("DROP VIEW v2; DROP TABLE flight; DROP TABLE airline")
            .expect("nothing is left");
    }
}

#[test]
fn views_that_are_written_out_share_what_they_keep() {
    for workers in 1..=3 {
        let engine = engine_with(workers, TABLES);
        engine
            .execute(
                "CREATE VIEW per_carrier AS SELECT carrier, COUNT(*) AS n, SUM(delay) AS total FROM flight GROUP BY carrier;
                 CREATE MATERIALIZED VIEW named AS
                    SELECT a.name, p.n FROM per_carrier p JOIN airline a ON p.carrier = a.carrier;
                 CREATE MATERIALIZED VIEW busy AS SELECT carrier FROM per_carrier WHERE n > 1;
                 CREATE MATERIALIZED VIEW both_ways AS
                    SELECT x.carrier, y.total FROM per_carrier x JOIN per_carrier y ON x.carrier = y.carrier AND x.n = y.n",
            )
            .expect("the views are right");
        for change in CHANGES {
            engine.execute(change).expect("rows change");
            let counted =
                "(SELECT carrier, COUNT(*) AS n, SUM(delay) AS total FROM flight GROUP BY carrier)";
            for (view, asked) in [
                (
                    "named",
                    format!(
                        "SELECT a.name, p.n FROM {counted} p JOIN airline a ON p.carrier = a.carrier"
                    ),
                ),
                ("busy", format!("SELECT carrier FROM {counted} p WHERE n > 1")),
                ("both_ways", format!("SELECT carrier, total FROM {counted} p")),
            ] {
                assert_eq!(
                    settled(&engine, &format!("SELECT * FROM {view}")),
                    query(&engine, &asked),
                    "{view}"
                );
            }
        }
        engine
            .execute("DROP VIEW busy; DROP VIEW both_ways; DROP VIEW named; DROP VIEW per_carrier; DROP TABLE flight")
            .expect("what uses them is gone");
    }
}

#[test]
fn errors_in_an_index_are_told_by_every_view_that_uses_it() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (k BIGINT, v BIGINT); CREATE TABLE u (k BIGINT, w BIGINT);
         CREATE VIEW one AS SELECT x.k, u.w FROM (SELECT k, 10 / v AS r FROM t) x JOIN u ON x.r = u.k;
         CREATE MATERIALIZED VIEW two AS SELECT x.k FROM (SELECT k, 10 / v AS r FROM t) x JOIN u ON x.r = u.k;
         CREATE MATERIALIZED VIEW three AS SELECT k FROM one;
         INSERT INTO t VALUES (1, 2), (2, 0); INSERT INTO u VALUES (5, 6)",
    );
    let errors = "SELECT view, row FROM alluvium.errors";
    let told = settled(&engine, errors);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("one ") && told[1].starts_with("two "), "{told:?}");
    assert_eq!(settled(&engine, "SELECT * FROM two"), ["1"]);
    engine.execute("DELETE FROM t WHERE k = 2").expect("rows change");
    assert!(settled(&engine, errors).is_empty());
}

#[test]
fn an_index_over_a_table_that_keeps_nothing_is_found_after_rows_have_passed() {
    let engine = engine_with(
        2,
        "CREATE TABLE bid (auction BIGINT, price BIGINT) WITH ('materialized' = 'false');
         CREATE TABLE auction (id BIGINT PRIMARY KEY, name VARCHAR);
         CREATE MATERIALIZED VIEW a AS SELECT name, price FROM bid JOIN auction ON auction = id;
         INSERT INTO auction VALUES (1, 'x'), (2, 'y'); INSERT INTO bid VALUES (1, 10), (3, 7);
         CREATE MATERIALIZED VIEW b AS SELECT name, price * 2 AS p FROM bid JOIN auction ON auction = id;
         INSERT INTO bid VALUES (2, 4)",
    );
    assert_eq!(settled(&engine, "SELECT * FROM b"), ["x 20", "y 8"]);
}
