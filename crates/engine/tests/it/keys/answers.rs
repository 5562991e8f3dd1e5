//! Queries that seek have the answers of queries that scan.

use alluvium::{Engine, Outcome, Session};

use crate::support::{batch_lines, engine, engine_with};

/// A generator of numbers that are the same in every run (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    pub fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}

/// The answer to a query, in order.
fn ordered(session: &mut Session, sql: &str) -> Vec<String> {
    match session.execute(sql).map(|mut outcomes| outcomes.remove(0)) {
        Ok(Outcome::Rows(rows)) => {
            rows.flat_map(|rows| batch_lines(&rows.expect("rows"))).collect()
        }
        other => panic!("{sql}: {other:?}"),
    }
}

/// The answer to a query, sorted.
fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    let mut rows = ordered(session, sql);
    rows.sort();
    rows
}

const NUMBERS: [&str; 6] = ["-2", "0", "1", "3", "4", "7"];
const TEXTS: [&str; 6] = ["''", "'a'", "'ab'", "'b'", "'ba'", "'z'"];
const COMPARISONS: [&str; 6] = ["=", "=", "<", "<=", ">", ">="];

/// A condition on the columns `n` and `t`, which are a key, and `v`, which is not.
pub(super) fn condition(random: &mut Random, depth: u32) -> String {
    let (column, values) = match random.below(5) {
        0 | 1 => ("n", NUMBERS),
        2 | 3 => ("t", TEXTS),
        _ => ("v", NUMBERS),
    };
    let list = |random: &mut Random| {
        let length = 1 + random.below(5);
        (0..length).map(|_| random.one_of(&values)).collect::<Vec<_>>().join(", ")
    };
    match random.below(if depth > 0 { 10 } else { 6 }) {
        0 => format!("{column} IN ({})", list(random)),
        1 => format!("{} {} {column}", random.one_of(&values), random.one_of(&COMPARISONS)),
        2 => {
            format!("{column} BETWEEN {} AND {}", random.one_of(&values), random.one_of(&values))
        }
        3 => format!("{column} IS {}NULL", random.one_of(&["", "NOT "])),
        4 | 5 => format!("{column} {} {}", random.one_of(&COMPARISONS), random.one_of(&values)),
        6 => format!("({} OR {})", condition(random, depth - 1), condition(random, depth - 1)),
        7 => format!("NOT {}", condition(random, depth - 1)),
        _ => format!("{} AND {}", condition(random, depth - 1), condition(random, depth - 1)),
    }
}

/// The tables `keyed` and, with the same rows and without a key, `copied`, and views with and without a unique key.
pub(super) const TABLES: &str = "
    CREATE TABLE keyed (n BIGINT, t VARCHAR, v BIGINT, PRIMARY KEY (n, t)) WITH ('on_conflict' = 'replace');
    CREATE TABLE copied (n BIGINT, t VARCHAR, v BIGINT);
    CREATE MATERIALIZED VIEW groups AS
        SELECT SUM(v) AS v, NULLIF(t, 'ab') AS t, NULLIF(n, 3) AS n FROM keyed GROUP BY NULLIF(n, 3), NULLIF(t, 'ab');
    CREATE MATERIALIZED VIEW copied_groups AS
        SELECT v, t, n FROM groups UNION ALL SELECT v, t, n FROM copied WHERE n IS NULL";

/// A table with indexes and no key, and one with a key and indexes.
const INDEXED: &str = "
    CREATE TABLE indexed (n BIGINT, t VARCHAR, v BIGINT);
    CREATE TABLE both (t VARCHAR, n BIGINT, v BIGINT, PRIMARY KEY (t, n)) WITH ('on_conflict' = 'replace');";

/// Indexes of these, and of a view whose columns may be NULL. They come and go.
const INDEXES: [(&str, &str); 6] = [
    ("by_n_and_t", "indexed (n, t)"),
    ("by_v", "indexed (v)"),
    ("both_by_n", "both (n)"),
    ("both_by_v", "both (v, n, t)"),
    ("groups_by_t", "groups (t, v)"),
    ("copied_groups_by_n", "groups (n)"),
];

/// The relations that have the same rows.
const PAIRS: [(&str, &str); 4] =
    [("keyed", "copied"), ("indexed", "copied"), ("both", "copied"), ("groups", "copied_groups")];

/// The tables that are changed alike.
const CHANGED: [&str; 4] = ["keyed", "both", "indexed", "copied"];

/// Creates an index, or drops it.
fn come_or_go(session: &mut Session, random: &mut Random) {
    let (name, on) = INDEXES[random.below(INDEXES.len() as u64) as usize];
    let created = session.execute(&format!("CREATE INDEX {name} ON {on}"));
    if created.is_err() {
        session.execute(&format!("DROP INDEX {name}")).expect("there is an index of this name");
    }
}

/// Changes the tables alike.
fn change(session: &mut Session, random: &mut Random) {
    let (n, t) = (random.one_of(&NUMBERS), random.one_of(&TEXTS));
    let v = random.below(5);
    let statements = match random.below(4) {
        0 => {
            let key = format!("n = {n} AND t = {t}");
            CHANGED.map(|table| format!("DELETE FROM {table} WHERE {key}"))
        }
        1 => {
            let filter = condition(random, 1);
            CHANGED.map(|table| format!("UPDATE {table} SET v = v + 1 WHERE {filter}"))
        }
        _ => {
            let row = format!("({n}, {t}, {v})");
            for table in ["copied", "indexed"] {
                session
                    .execute(&format!("DELETE FROM {table} WHERE n = {n} AND t = {t}"))
                    .expect("rows can be deleted");
            }
            CHANGED.map(|table| format!("INSERT INTO {table} (n, t, v) VALUES {row}"))
        }
    };
    for statement in statements {
        session.execute(&statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

fn compare(session: &mut Session, random: &mut Random, pairs: &[(&str, &str)], context: &str) {
    for (keyed, copied) in pairs {
        let filter = condition(random, 2);
        let order =
            random.one_of(&["n, t, v", "t, n, v", "n NULLS FIRST, t NULLS FIRST, v", "v, t, n"]);
        let limit = random.one_of(&["", "LIMIT 3", "LIMIT 2 OFFSET 1"]);
        let of = |relation: &str| {
            format!("SELECT v, n, t FROM {relation} WHERE {filter} ORDER BY {order} {limit}")
        };
        let expected = ordered(session, &of(copied));
        assert_eq!(ordered(session, &of(keyed)), expected, "{context}: {}", of(keyed));
    }
}

fn run(engine: &Engine, seed: u64) {
    let mut random = Random(seed);
    engine.execute(TABLES).expect("the statements are right");
    engine.execute(INDEXED).expect("the statements are right");
    let mut session = engine.session();
    for round in 0..25 {
        let context = format!("seed {seed}, round {round}");
        come_or_go(&mut session, &mut random);
        if round % 3 == 0 {
            session.execute("BEGIN").expect("no transaction is open");
            for _ in 0..random.below(5) {
                change(&mut session, &mut random);
                compare(&mut session, &mut random, &PAIRS[..3], &context);
            }
            let end = random.one_of(&["COMMIT", "COMMIT", "ROLLBACK"]);
            session.execute(end).expect("it can end");
        } else {
            change(&mut session, &mut random);
        }
        for _ in 0..3 {
            compare(&mut session, &mut random, &PAIRS, &context);
        }
    }
}

#[test]
fn random_conditions_on_keys_and_indexes_have_the_answers_of_a_copy_without_any() {
    for seed in 0..6 {
        run(&engine(1 + seed as usize % 3), seed);
    }
}

#[test]
fn random_conditions_on_keys_are_answered_alike_from_files() {
    for seed in 100..102 {
        let builder = Engine::builder().workers(1 + seed as usize % 2).memory(Some(1));
        run(&builder.open_in_memory().expect("an engine starts"), seed);
    }
}

/// Literals of each type that can be a key, with its ends and what compares strangely.
const TYPES: [(&str, &[&str]); 13] = [
    ("SMALLINT", &["-32768", "-1", "0", "1", "32767"]),
    ("INTEGER", &["-2147483648", "-1", "0", "1", "2147483647"]),
    ("BIGINT", &["-9223372036854775808", "-1", "0", "1", "9223372036854775807"]),
    ("REAL", &["'-inf'", "-1.5", "0.0", "1.5", "'inf'", "'nan'"]),
    ("DOUBLE", &["'-inf'", "-1.5", "0.0", "5e-324", "1.5", "'inf'", "'nan'"]),
    ("DECIMAL(5, 2)", &["-999.99", "-0.01", "0", "0.01", "999.99"]),
    ("DECIMAL(38, 10)", &["-9999999999999999999999999999.9", "0", "0.0000000001"]),
    (
        "VARCHAR",
        &["''", "' '", "'a'", "'a\u{0}'", "'aa'", "'ä'", "'a text of more than eight bytes'"],
    ),
    ("BYTEA", &["X''", "X'00'", "X'0000'", "X'61'", "X'ff'", "X'ffff'"]),
    ("BOOLEAN", &["FALSE", "TRUE"]),
    ("DATE", &["DATE '0001-01-01'", "DATE '1970-01-01'", "DATE '9999-12-31'"]),
    ("TIME", &["TIME '00:00:00'", "TIME '12:00:00.5'", "TIME '23:59:59.999999'"]),
    ("TIMESTAMP", &["TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '2020-02-29 12:00:00.000001'"]),
];

#[test]
fn every_type_of_key_is_found_at_its_ends() {
    for workers in 1..=2 {
        for (data_type, values) in TYPES {
            let engine = engine(workers);
            let tables = format!(
                "CREATE TABLE keyed (k {data_type} PRIMARY KEY, v BIGINT) WITH ('on_conflict' = 'replace');
                 CREATE TABLE indexed (k {data_type}, v BIGINT);
                 CREATE INDEX by_k ON indexed (k);
                 CREATE TABLE copied (k {data_type}, v BIGINT);"
            );
            if let Err(error) = engine.execute(&tables) {
                panic!("{data_type}: {error}");
            }
            let mut session = engine.session();
            for (number, value) in values.iter().enumerate() {
                let row = format!("(CAST({value} AS {data_type}), {number})");
                for table in ["keyed", "indexed", "copied"] {
                    session
                        .execute(&format!(
                            "DELETE FROM {table} WHERE k = CAST({value} AS {data_type})"
                        ))
                        .unwrap_or_else(|error| panic!("{data_type}: {error}"));
                    session
                        .execute(&format!("INSERT INTO {table} VALUES {row}"))
                        .unwrap_or_else(|error| panic!("{row}: {error}"));
                }
            }
            for value in values {
                for comparison in ["=", "<", "<=", ">", ">=", "<>"] {
                    let of = |table: &str| {
                        format!(
                            "SELECT v FROM {table} WHERE k {comparison} CAST({value} AS {data_type})"
                        )
                    };
                    let expected = rows(&mut session, &of("copied"));
                    assert_eq!(rows(&mut session, &of("keyed")), expected, "{}", of("keyed"));
                    assert_eq!(rows(&mut session, &of("indexed")), expected, "{}", of("indexed"));
                }
            }
            let of = |table: &str| format!("SELECT v FROM {table} ORDER BY k LIMIT 2");
            let expected = ordered(&mut session, &of("copied"));
            assert_eq!(ordered(&mut session, &of("keyed")), expected, "{data_type}");
            assert_eq!(ordered(&mut session, &of("indexed")), expected, "{data_type}");
        }
    }
}

#[test]
fn negative_zero_is_found_as_it_is_compared() {
    let engine =
        engine_with(1, "CREATE TABLE keyed (k DOUBLE PRIMARY KEY); CREATE TABLE copied (k DOUBLE)");
    let mut session = engine.session();
    for zero in ["-0.0", "0.0"] {
        for table in ["keyed", "copied"] {
            let written = format!(
                "DELETE FROM {table}; INSERT INTO {table} VALUES (-1.0), (CAST('{zero}' AS DOUBLE)), (1.0)"
            );
            session.execute(&written).expect("the statements are right");
        }
        for comparison in ["=", "<", "<=", ">", ">="] {
            for other in ["-0.0", "0.0"] {
                let of = |table: &str| {
                    format!("SELECT k FROM {table} WHERE k {comparison} CAST('{other}' AS DOUBLE)")
                };
                let expected = rows(&mut session, &of("copied"));
                assert_eq!(rows(&mut session, &of("keyed")), expected, "{zero}: {}", of("keyed"));
            }
        }
    }
}

#[test]
fn a_key_that_many_rows_begin_with_is_found_whole() {
    let program = "
        CREATE TABLE t (a BIGINT, b BIGINT, PRIMARY KEY (a, b));
        INSERT INTO t SELECT 7, n FROM generate_series(1, 100000) AS s(n);
        INSERT INTO t VALUES (6, 0), (8, 0)";
    for memory in [None, Some(1)] {
        let engine =
            Engine::builder().workers(2).memory(memory).open_in_memory().expect("an engine starts");
        engine.execute(program).expect("the statements are right");
        let mut session = engine.session();
        for (filter, expected) in [
            ("a = 7", "100000 5000050000"),
            ("a = 7 AND b > 99998", "2 199999"),
            ("a > 6 AND a < 8", "100000 5000050000"),
            ("a = 7 AND b IN (1, 100000, 100001)", "2 100001"),
            ("a <> 7", "2 0"),
        ] {
            let count = format!("SELECT COUNT(*), SUM(b) FROM t WHERE {filter}");
            assert_eq!(rows(&mut session, &count), [expected], "{filter}");
        }
        let first = "SELECT a, b FROM t WHERE a > 6 ORDER BY a, b LIMIT 3";
        assert_eq!(ordered(&mut session, first), ["7 1", "7 2", "7 3"]);
    }
}

#[test]
fn a_row_of_a_megabyte_is_found_and_found_by_such_a_key() {
    let engine = engine_with(
        1,
        "CREATE TABLE t (k VARCHAR PRIMARY KEY, v VARCHAR);
         INSERT INTO t VALUES ('a', REPEAT('x', 1000000)), (REPEAT('k', 1000000), 'long'), ('z', 'z')",
    );
    let mut session = engine.session();
    let found = rows(&mut session, "SELECT LENGTH(v) FROM t WHERE k = 'a'");
    assert_eq!(found, ["1000000"]);
    let found = rows(&mut session, "SELECT v FROM t WHERE k = REPEAT('k', 1000000)");
    assert_eq!(found, ["long"]);
    let found = rows(&mut session, "SELECT v FROM t WHERE k > 'a' ORDER BY k");
    assert_eq!(found, ["long", "z"]);
}
