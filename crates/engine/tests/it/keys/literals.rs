//! Statements that differ in their literals alone have one plan, and do what each does by itself.

use alluvium::{Engine, Outcome, Session};

use super::answers::Random;
use crate::support::{engine_with, lines};

const TABLES: &str = "
    CREATE TABLE t (
        id INTEGER PRIMARY KEY, name VARCHAR, v BIGINT, small SMALLINT, price DECIMAL(10, 2), f DOUBLE, day DATE, at TIMESTAMP
    );
    CREATE TABLE pairs (a BIGINT, b VARCHAR, v DECIMAL(12, 3), PRIMARY KEY (a, b));
    CREATE TABLE at_times (at TIMESTAMP PRIMARY KEY, day DATE);
    CREATE TABLE by_price (price DECIMAL(10, 2) PRIMARY KEY, f DOUBLE);
    CREATE MATERIALIZED VIEW sums AS SELECT b, COUNT(*) AS n, SUM(a) AS total FROM pairs GROUP BY b;
    CREATE VIEW plain AS SELECT id AS k, v * 2 AS v2 FROM t WHERE name <> 'b'";

/// The result of a statement: its columns and rows, how many it changed, or its error with the position.
fn run(session: &mut Session, sql: &str) -> String {
    match session.execute(sql).map(|mut outcomes| outcomes.remove(0)) {
        Ok(Outcome::Rows(rows)) => {
            let schema = rows.schema().clone();
            let batches = match rows.into_batches() {
                Ok(batches) => batches,
                Err(error) => return format!("{:?}: {error}", error.position()),
            };
            let columns = schema.fields().iter().map(|of| {
                let null = if of.is_nullable() { "?" } else { "" };
                format!("{}:{}{null} ", of.name(), of.data_type())
            });
            format!("{}{:?}", columns.collect::<String>(), lines(&batches))
        }
        Ok(Outcome::Changed { rows, .. }) => format!("{rows} rows"),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("{:?}: {error}", error.position()),
    }
}

/// An error without its position: who looks for that gives up after a time.
fn without_place(result: &str) -> &str {
    match result.strip_prefix("Some(").and_then(|rest| rest.split_once("): ")) {
        Some((_, error)) => error,
        None => result,
    }
}

/// A text with a comment has no shape, so its plan is found for the same text alone, and each of these is another one.
fn run_planned(session: &mut Session, sql: &str, number: u64) -> String {
    run(session, &format!("{sql} -- {number}"))
}

const INTEGERS: [&str; 12] = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "-2",
    "7",
    "40000",
    "-40000",
    "3000000000",
    "007",
    "99999999999999999999",
];
const TEXTS: [&str; 9] =
    ["''", "'a'", "'b'", "'ab'", "'it''s'", "'x\ny'", "'2024-01-02'", "'1'", "'ä'"];
const OTHERS: [&str; 8] = [
    "NULL",
    "1.5",
    "2.50",
    "1e2",
    "DATE '2024-01-02'",
    "TIMESTAMP '2024-01-02 03:04:05'",
    "1 + 1",
    "TRUE",
];

/// A literal, mostly an integer or a text.
fn literal(random: &mut Random) -> &'static str {
    let all: &[&'static str] = match random.below(8) {
        0..=3 => &INTEGERS,
        4..=6 => &TEXTS,
        _ => &OTHERS,
    };
    all[random.below(all.len() as u64) as usize]
}

/// A literal that most likely fits a column.
fn literal_for(random: &mut Random, column: &str) -> &'static str {
    if random.below(6) == 0 {
        return literal(random);
    }
    match column {
        "name" | "b" => TEXTS[random.below(9) as usize],
        "day" => "'2024-01-02'",
        "at" => ["'2024-01-02'", "'2024-01-02 03:04:05.123456'"][random.below(2) as usize],
        _ => INTEGERS[random.below(8) as usize],
    }
}

const COLUMNS: [(&str, &[&str]); 6] = [
    ("t", &["id", "name", "v", "small", "price", "f", "day", "at"]),
    ("pairs", &["a", "b", "v"]),
    ("at_times", &["at", "day"]),
    ("by_price", &["price", "f"]),
    ("sums", &["b", "n", "total"]),
    ("plain", &["k", "v2"]),
];

fn condition(random: &mut Random, columns: &[&str], key: usize) -> String {
    let mut parts = Vec::new();
    for column in &columns[..key] {
        let mut value = || literal_for(random, column);
        let (one, other, third) = (value(), value(), value());
        parts.push(match random.below(8) {
            0 => format!("{column} IN ({one}, {other},{third})"),
            1 => format!("{column} BETWEEN {one} AND {other}"),
            2 => format!("{one} = {column}"),
            3 => format!("{column}>={one}"),
            _ => format!("{column} = {one}"),
        });
    }
    if random.below(4) == 0 {
        let column = random.one_of(columns);
        parts.push(format!("{column} > {}", literal_for(random, column)));
    }
    parts.join(" AND ")
}

fn select(random: &mut Random) -> String {
    let (table, columns) = COLUMNS[random.below(6) as usize];
    let key = if table == "pairs" { 2 } else { 1 };
    let items = match random.below(5) {
        0 => "*".to_owned(),
        1 => columns.join(", "),
        2 => format!("{} AS x, 1", columns[0]),
        3 => format!("{}, 'a' AS a, 5", columns[columns.len() - 1]),
        _ => format!("coalesce({}, NULL)", columns[1]),
    };
    let condition = condition(random, columns, key);
    let tail = match random.below(12) {
        0 => " ORDER BY 1",
        1 => " LIMIT 1",
        _ => "",
    };
    format!("SELECT {items} FROM {table} WHERE {condition}{tail}")
}

fn change(random: &mut Random) -> String {
    let (table, columns) = COLUMNS[random.below(4) as usize];
    let key = if table == "pairs" { 2 } else { 1 };
    match random.below(4) {
        0 => format!("DELETE FROM {table} WHERE {}", condition(random, columns, key)),
        1 => {
            let column =
                columns[columns.len() - 1 - random.below((columns.len() - key) as u64) as usize];
            let value = match random.below(3) {
                0 => format!("{column} + {}", literal(random)),
                _ => literal_for(random, column).to_owned(),
            };
            format!(
                "UPDATE {table} SET {column} = {value} WHERE {}",
                condition(random, columns, key)
            )
        }
        _ => {
            let row = |random: &mut Random| {
                let values = columns.iter().map(|column| literal_for(random, column));
                format!("({})", values.collect::<Vec<_>>().join(", "))
            };
            let rows: Vec<String> = (0..1 + random.below(2)).map(|_| row(random)).collect();
            format!("INSERT INTO {table} VALUES {}", rows.join(", "))
        }
    }
}

#[test]
fn random_statements_do_what_they_do_without_kept_plans() {
    for seed in 0..2 {
        let (kept, planned) = (engine_with(1, TABLES), engine_with(1, TABLES));
        let (mut kept, mut planned) = (kept.session(), planned.session());
        let mut random = Random(seed);
        let mut rows = 0;
        for round in 0..400 {
            let sql = match random.below(3) {
                0 => change(&mut random),
                _ => select(&mut random),
            };
            // Each several times in a row, so that its plan is kept, and as it is without one.
            let repeats = 1 + random.below(3);
            for repeat in 0..repeats {
                let expected = run_planned(&mut planned, &sql, 10 * round + repeat);
                let ran = run(&mut kept, &sql);
                let context = format!("seed {seed}, round {round}: {sql}");
                assert_eq!(without_place(&ran), without_place(&expected), "{context}");
                rows += usize::from(expected.contains("[\"") || expected == "1 rows");
            }
        }
        assert!(rows > 100, "most statements find something: {rows}");
    }
}

#[test]
fn each_key_has_its_own_answer() {
    let engine = engine_with(2, TABLES);
    let mut session = engine.session();
    for id in 0..50 {
        let insert = format!("INSERT INTO t (id, name, v) VALUES ({id}, 'n{id}', {})", 3 * id);
        assert_eq!(run(&mut session, &insert), "1 rows");
    }
    for id in 0..50 {
        let select = format!("SELECT v FROM t WHERE id = {id}");
        assert_eq!(run(&mut session, &select), format!("v:Int64? [\"{}\"]", 3 * id));
        let update = format!("UPDATE t SET name = 'new {id}' WHERE id = {id};");
        assert_eq!(run(&mut session, &update), "1 rows");
        let select = format!(" SELECT name FROM t WHERE id = {id} ;");
        assert_eq!(run(&mut session, &select), format!("name:Utf8? [\"new {id}\"]"));
    }
    for id in 0..50 {
        assert_eq!(run(&mut session, &format!("DELETE FROM t WHERE id = {id}")), "1 rows");
    }
    assert_eq!(run(&mut session, "SELECT id FROM t"), "id:Int32 []");
}

#[test]
fn errors_are_where_they_are_in_the_text_of_each() {
    let engine = engine_with(1, TABLES);
    let mut session = engine.session();
    engine
        .execute("INSERT INTO t (id, v) VALUES (1, 9223372036854775807), (2, 5)")
        .expect("two rows");
    for _ in 0..3 {
        let more = |id: &str| format!("SELECT\n  v + 1 AS more FROM t WHERE id = {id}");
        assert_eq!(run(&mut session, &more("2")), "more:Int64? [\"6\"]");
        let overflow = run(&mut session, &more("1"));
        assert!(overflow.contains("overflow"), "{overflow}");
        assert_eq!(overflow, run_planned(&mut session, &more("1"), 0));
        let large = run(&mut session, "INSERT INTO t (id, v)\nVALUES (3000000000, 1)");
        assert_eq!(
            large,
            run_planned(&mut session, "INSERT INTO t (id, v)\nVALUES (3000000000, 1)", 0)
        );
    }
}

#[test]
fn a_definition_ends_the_plans_of_shapes() {
    let engine = engine_with(1, "CREATE TABLE u (id INTEGER PRIMARY KEY, v BIGINT)");
    let mut session = engine.session();
    for id in 1..5 {
        run(&mut session, &format!("INSERT INTO u VALUES ({id}, {id})"));
        assert_eq!(
            run(&mut session, &format!("SELECT * FROM u WHERE id = {id}")),
            format!("id:Int32 v:Int64? [\"{id} {id}\"]")
        );
    }
    engine
        .execute("DROP TABLE u; CREATE TABLE u (v VARCHAR, id VARCHAR PRIMARY KEY)")
        .expect("it is right");
    for id in 1..5 {
        assert_eq!(run(&mut session, &format!("INSERT INTO u VALUES ({id}, {id})")), "1 rows");
        assert_eq!(
            run(&mut session, &format!("SELECT * FROM u WHERE id = '{id}'")),
            format!("v:Utf8? id:Utf8 [\"{id} {id}\"]")
        );
    }
}

#[test]
fn a_text_that_is_several_statements_or_none_is_what_it_was() {
    let engine: Engine = engine_with(1, TABLES);
    let mut session = engine.session();
    for _ in 0..3 {
        assert_eq!(session.execute("SELECT 1; SELECT 2").expect("two").len(), 2);
        assert_eq!(session.execute("SELECT id FROM t WHERE id = 1").expect("one").len(), 1);
        assert!(engine.query("INSERT INTO t (id) VALUES (1)").is_err());
    }
    assert_eq!(run(&mut session, "SELECT id FROM t"), "id:Int32 []");
}
