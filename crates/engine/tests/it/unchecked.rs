//! Tables that take unchecked changes: rows with weights, of which nothing is kept and nothing is verified.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use alluvium::{Engine, Transaction};

use crate::support::{engine_with, query, settled};

/// Views of a table `{t}` and a second one `{t}2`.
const VIEWS: [(&str, &str); 9] = [
    ("whole", "SELECT * FROM {t}"),
    ("sums", "SELECT g, SUM(v) AS total, COUNT(*) AS n, AVG(v) AS mean FROM {t} GROUP BY g"),
    ("extremes", "SELECT g, MIN(v) AS least, MAX(v) AS most FROM {t} GROUP BY g"),
    ("first", "SELECT k, g, v FROM {t} ORDER BY v DESC, k, g LIMIT 3"),
    (
        "ranked",
        "SELECT k, g, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY v, k) AS place FROM {t}) \
         WHERE place <= 2",
    ),
    ("different", "SELECT DISTINCT g, v FROM {t}"),
    ("joined", "SELECT {t}.k, {t}.v, {t}2.v AS other FROM {t} JOIN {t}2 ON {t}.k = {t}2.k"),
    (
        "outer",
        "SELECT {t}.k, {t}2.v AS other FROM {t} LEFT JOIN {t}2 ON {t}.k = {t}2.k AND {t}.g = {t}2.g",
    ),
    ("absent", "SELECT k, v FROM {t} WHERE NOT EXISTS (SELECT 1 FROM {t}2 WHERE {t}2.g = {t}.g)"),
];

/// The tables `unchecked`, `unchecked2`, `kept` and `kept2`, and the views of both pairs.
fn program() -> String {
    let mut sql = String::new();
    for (table, options) in [("unchecked", " WITH ('materialized' = 'false')"), ("kept", "")] {
        for number in ["", "2"] {
            let columns = "(k BIGINT NOT NULL, g BIGINT, v BIGINT)";
            sql += &format!("CREATE TABLE {table}{number} {columns}{options};\n");
        }
        for (view, select) in VIEWS {
            let select = select.replace("{t}", table);
            sql += &format!("CREATE MATERIALIZED VIEW {view}_{table} AS {select};\n");
        }
    }
    sql
}

type Row = (i64, i64, i64);

fn batch(rows: impl IntoIterator<Item = Row>) -> RecordBatch {
    let rows: Vec<Row> = rows.into_iter().collect();
    let column = |value: fn(&Row) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(value)))
    };
    let columns =
        [("k", column(|row| row.0)), ("g", column(|row| row.1)), ("v", column(|row| row.2))];
    RecordBatch::try_from_iter(columns).expect("three columns")
}

/// Random changes of one table, none of which deletes a row that is not there.
struct Changes {
    copies: BTreeMap<Row, i64>,
    state: u64,
}

impl Changes {
    fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 33) % bound
    }

    fn next(&mut self) -> Vec<(Row, i64)> {
        let count = self.below(12);
        (0..count).filter_map(|_| self.one()).collect()
    }

    fn one(&mut self) -> Option<(Row, i64)> {
        if self.below(2) == 0 {
            let (k, g, v) = (self.below(8), self.below(3), self.below(20));
            let (row, weight) = ((k as i64, g as i64, v as i64), self.below(3) as i64);
            *self.copies.entry(row).or_default() += weight;
            return Some((row, weight));
        }
        self.copies.retain(|_, copies| *copies > 0);
        let at = self.below(self.copies.len().max(1) as u64) as usize;
        let (row, copies) = self.copies.iter_mut().nth(at).map(|(row, copies)| (*row, copies))?;
        let weight = if self.state.is_multiple_of(3) { *copies } else { 1 };
        *copies -= weight;
        Some((row, -weight))
    }
}

/// Makes the same changes to an unchecked and a kept table.
fn change(transaction: &mut Transaction, number: &str, changes: &[(Row, i64)]) {
    let weights: Vec<i64> = changes.iter().map(|(_, weight)| *weight).collect();
    let rows = batch(changes.iter().map(|(row, _)| *row));
    transaction.change(&format!("unchecked{number}"), rows, &weights).expect("rows of the table");
    let copies = |sign: i64| {
        let copies = changes.iter().flat_map(move |(row, weight)| {
            std::iter::repeat_n(*row, (sign * weight).max(0) as usize)
        });
        batch(copies)
    };
    let kept = format!("kept{number}");
    transaction.insert(&kept, copies(1)).expect("rows of the table");
    transaction.delete(&kept, copies(-1)).expect("rows of the table");
}

#[test]
fn views_of_unchecked_changes_are_those_of_a_kept_table() {
    for workers in 1..=3 {
        let engine = engine_with(workers, &program());
        let new = |state| Changes { copies: BTreeMap::new(), state };
        let mut tables = [("", new(workers as u64)), ("2", new(10 + workers as u64))];
        for epoch in 0..40 {
            let mut transaction = engine.begin().expect("nobody else writes");
            for (number, changes) in &mut tables {
                // In one piece, or in several.
                for _ in 0..changes.below(3) {
                    let changes = changes.next();
                    change(&mut transaction, number, &changes);
                }
            }
            transaction.commit().expect("the engine is well");
            for (view, _) in VIEWS {
                let rows = |table| query(&engine, &format!("SELECT * FROM {view}_{table}"));
                assert_eq!(
                    rows("unchecked"),
                    rows("kept"),
                    "{view}, {workers} workers, epoch {epoch}"
                );
            }
        }
        let refused =
            engine.relations().expect("relations").iter().map(|it| it.refused).sum::<u64>();
        assert_eq!(refused, 0, "the changes are consistent");
    }
}

fn unchecked(workers: usize) -> Engine {
    engine_with(
        workers,
        "CREATE TABLE u (k BIGINT NOT NULL, g BIGINT, v BIGINT) WITH ('materialized' = 'false');
         CREATE MATERIALIZED VIEW m AS SELECT * FROM u;
         CREATE MATERIALIZED VIEW most AS SELECT MAX(v) AS v FROM u",
    )
}

fn apply(engine: &Engine, rows: &[Row], weights: &[i64]) -> Result<(), String> {
    let mut transaction = engine.begin().expect("nobody else writes");
    let changed = transaction.change("u", batch(rows.iter().copied()), weights);
    changed.map_err(|error| error.to_string())?;
    transaction.commit().map(drop).map_err(|error| error.to_string())
}

#[test]
fn a_weight_of_zero_changes_nothing() {
    let engine = unchecked(2);
    let before = engine.progress().committed;
    apply(&engine, &[(1, 1, 1), (2, 2, 2)], &[0, 0]).expect("it is no change");
    assert_eq!(engine.progress().committed, before, "and makes no epoch");
    apply(&engine, &[(1, 1, 1), (2, 2, 2), (3, 3, 3)], &[0, 2, 0]).expect("one change");
    assert_eq!(settled(&engine, "SELECT * FROM m"), ["2 2 2", "2 2 2"]);
    apply(&engine, &[(2, 2, 2)], &[-2]).expect("they are there");
    assert!(settled(&engine, "SELECT * FROM m").is_empty());
    assert_eq!(settled(&engine, "SELECT * FROM most"), ["NULL"]);
}

#[test]
fn wrong_weights_are_errors_and_leave_nothing() {
    let engine = unchecked(1);
    for (weights, message) in [
        (&[1, 1][..], "2 weights are given for 1 rows"),
        (&[][..], "0 weights are given for 1 rows"),
        (
            &[i64::MAX][..],
            "the weight 9223372036854775807 is out of range: at most 2147483647 copies of a row change at a time",
        ),
        (
            &[i64::MIN][..],
            "the weight -9223372036854775808 is out of range: at most 2147483647 copies of a row change at a time",
        ),
    ] {
        assert_eq!(apply(&engine, &[(1, 1, 1)], weights), Err(message.to_owned()));
    }
    let many = i64::from(i32::MAX);
    apply(&engine, &[(1, 1, 1), (1, 1, 1)], &[many, many]).expect("sums may be larger");
    apply(&engine, &[(1, 1, 1), (1, 1, 1)], &[-many, -many]).expect("they are there");
    assert!(settled(&engine, "SELECT * FROM m").is_empty());
}

#[test]
fn only_a_table_that_keeps_nothing_takes_unchecked_changes() {
    let engine = engine_with(
        1,
        "CREATE TABLE kept (k BIGINT);
         CREATE TABLE keyed (k BIGINT PRIMARY KEY);
         CREATE TABLE log (k BIGINT) WITH ('materialized' = 'false', 'append_only' = 'true');
         CREATE TABLE u (k BIGINT) WITH ('materialized' = 'false');
         CREATE VIEW v AS SELECT k FROM u",
    );
    let k: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let rows = RecordBatch::try_from_iter([("k", k)]).expect("one column");
    let mut transaction = engine.begin().expect("nobody else writes");
    for (table, message) in [
        ("kept", "\"kept\" keeps its contents: insert and delete its rows"),
        ("keyed", "\"keyed\" keeps its contents: insert and delete its rows"),
        ("log", "\"log\" is 'append_only': insert its rows"),
        ("v", "\"v\" is a view, not a table"),
    ] {
        let error = transaction.change(table, rows.clone(), &[1]).expect_err("it takes none");
        assert_eq!(error.to_string(), message);
    }
    drop(transaction);
    for (sql, problem) in [
        ("DELETE FROM u", "\"u\" keeps no rows"),
        ("UPDATE u SET k = 1", "\"u\" keeps no rows"),
        ("SELECT * FROM u", "\"u\" does not keep its rows, so it cannot be queried"),
    ] {
        let error = engine.execute(sql).expect_err("nothing is kept").to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn subscribers_see_the_weights() {
    let engine = engine_with(2, "CREATE TABLE u (k BIGINT) WITH ('materialized' = 'false')");
    let mut changes = engine.subscribe("u").expect("no rows have passed");
    assert_eq!(changes.next().expect("a snapshot").expect("no error").rows.num_rows(), 0);
    let k: ArrayRef = Arc::new(Int64Array::from(vec![7, 8, 7]));
    let rows = RecordBatch::try_from_iter([("k", k)]).expect("one column");
    let mut transaction = engine.begin().expect("nobody else writes");
    transaction.change("u", rows, &[3, 1, -1]).expect("rows of the table");
    transaction.commit().expect("the engine is well");
    engine.execute("INSERT INTO u VALUES (8)").expect("INSERT adds one copy");
    let mut seen = Vec::new();
    for _ in 0..2 {
        let change = changes.next().expect("a change").expect("no error");
        let rows = crate::support::batch_lines(&change.rows).into_iter();
        let mut weighted: Vec<_> = rows.zip(change.weights.iter().copied()).collect();
        weighted.sort();
        seen.push(weighted);
    }
    let row = |row: &str, weight| (row.to_owned(), weight);
    assert_eq!(seen, [vec![row("7", 2), row("8", 1)], vec![row("8", 1)]]);
}

#[test]
fn views_recover_from_a_deletion_that_comes_before_its_insertion() {
    for workers in 1..=2 {
        let engine = engine_with(workers, &program());
        let apply = |weight: i64| {
            let mut transaction = engine.begin().expect("nobody else writes");
            for table in ["unchecked", "unchecked2"] {
                let rows = batch([(1, 1, 1), (1, 1, 2)]);
                transaction.change(table, rows, &[weight, weight]).expect("rows of the table");
            }
            transaction.commit().expect("the engine is well");
        };
        apply(-1);
        apply(1);
        for (view, _) in VIEWS {
            assert_eq!(
                query(&engine, &format!("SELECT * FROM {view}_unchecked")),
                [""; 0],
                "{view}"
            );
        }
        apply(1);
        for (view, _) in VIEWS.iter().filter(|(view, _)| *view != "absent") {
            let rows = query(&engine, &format!("SELECT * FROM {view}_unchecked"));
            assert!(!rows.is_empty(), "{view}");
        }
    }
}
