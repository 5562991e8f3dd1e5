//! Tests of the checks themselves: each check is given wrong data and must object.

use std::collections::HashSet;
use std::sync::Arc;

use alluvium::Change;
use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use alluvium::parse;
use alluvium::unstable::tree;

use super::suite::run_text;
use super::trial::Trial;
use crate::answers::deltas::Sum;
use crate::answers::evidence::{Answer, Evidence};
use crate::answers::row::{Cell, Row};

fn rows(values: &[i128]) -> Vec<Row> {
    values.iter().map(|value| vec![Cell::Integer(*value)]).collect()
}

fn change(epoch: u64, changes: &[(i64, i64)]) -> Change {
    let column: ArrayRef =
        Arc::new(Int64Array::from_iter_values(changes.iter().map(|change| change.0)));
    let rows = RecordBatch::try_from_iter([("n", column)]).expect("one column is a batch");
    Change::new(epoch, rows, changes.iter().map(|change| change.1).collect::<Vec<_>>())
}

/// The error for the last of some changes; the others must be accepted.
fn objection(changes: &[Change]) -> Option<String> {
    let mut sum = Sum::default();
    let (last, others) = changes.split_last().expect("there is a change");
    for change in others {
        sum.add(change).expect("a valid change");
    }
    sum.add(last).err()
}

#[test]
fn changes_that_add_up_are_accepted() {
    let mut sum = Sum::default();
    for change in [change(3, &[]), change(4, &[(1, 2), (2, 1)]), change(7, &[(1, -1), (2, -1)])] {
        assert_eq!(sum.add(&change), Ok(()));
    }
    assert_eq!(sum.rows(), rows(&[1]));
}

#[test]
fn a_row_with_a_negative_weight_is_rejected() {
    let found = objection(&[change(1, &[(5, 1)]), change(2, &[(5, -2)])]);
    assert_eq!(found.as_deref(), Some("[5] has weight -1 in epoch 2"));
}

#[test]
fn an_epoch_that_repeats_or_goes_back_is_rejected() {
    assert!(objection(&[change(2, &[(1, 1)]), change(2, &[(2, 1)])]).is_some());
    assert!(objection(&[change(2, &[(1, 1)]), change(1, &[(2, 1)])]).is_some());
}

#[test]
fn an_empty_change_is_rejected() {
    assert!(objection(&[change(1, &[]), change(2, &[])]).is_some());
    assert!(objection(&[change(1, &[]), change(2, &[(1, 0)])]).is_some());
}

#[test]
fn a_change_that_is_not_consolidated_is_rejected() {
    assert!(objection(&[change(1, &[]), change(2, &[(1, 1), (1, 1)])]).is_some());
}

/// Replaces one answer in the evidence.
type Tamper = fn(&mut Evidence, Answer);

const TAMPERS: [(&str, Tamper); 5] = [
    ("the batch answer", |evidence, answer| evidence.batch = Some(answer)),
    ("SQLite's answer", |evidence, answer| evidence.sqlite = Some(answer)),
    ("the sum of its changes", |evidence, answer| evidence.deltas = Some(answer)),
    ("a later snapshot and the changes since", |evidence, answer| {
        evidence.late_deltas = Some(answer)
    }),
    ("it cannot be read", |evidence, answer| evidence.contents = Some(answer)),
];

/// The evidence about a view, materialized or not, after a few transactions on an engine.
fn evidence(kind: &str) -> Evidence {
    let mut trial = Trial::new(2, true);
    let mut session = trial.engine().session();
    let text = format!(
        "CREATE TABLE t (n INT, d DOUBLE);
         CREATE {kind} VIEW v AS SELECT n, COUNT(*) AS rows, SUM(d) AS d FROM t GROUP BY n;
         INSERT INTO t VALUES (1, 0.5), (1, 0.25), (2, NULL);
         DELETE FROM t WHERE d = 0.5"
    );
    for (number, statement) in parse(&text).enumerate() {
        let statement = statement.expect("the text is right");
        session.run(&statement).expect("the statements work");
        trial.follow(tree(&statement));
        trial.judge();
        if number == 2 {
            trial.watch_again();
        }
    }
    assert_eq!(trial.objections(), Vec::<String>::new());
    trial.evidence(0, &HashSet::new())
}

#[test]
fn every_answer_that_differs_from_the_others_is_rejected() {
    for kind in ["MATERIALIZED", ""] {
        let evidence = evidence(kind);
        assert_eq!(evidence.objections(), Vec::<String>::new());
        let right =
            evidence.batch.clone().expect("DataFusion was asked").expect("and has answered");
        assert_eq!(right.len(), 2);
        assert!(
            evidence.sqlite.is_some()
                && evidence.late_deltas.is_some()
                && evidence.contents.is_some()
        );

        let mut less = right.clone();
        less.pop();
        let mut more = right.clone();
        more.push(right[0].clone());
        let mut other = right.clone();
        other[0][1] = Cell::Integer(77);
        for wrong in [less, more, other] {
            for (name, tamper) in TAMPERS {
                let mut tampered = evidence.clone();
                tamper(&mut tampered, Ok(wrong.clone()));
                let objections = tampered.objections();
                assert!(!objections.is_empty(), "{kind}: {name} was wrong and nobody objected");
            }
        }
        for (name, tamper) in TAMPERS {
            let mut tampered = evidence.clone();
            tamper(&mut tampered, Err("it fails".to_owned()));
            assert!(!tampered.objections().is_empty(), "{kind}: {name} failed and nobody objected");
        }
    }
}

/// The errors found in a file, without their positions.
fn faults(text: &str) -> String {
    run_text("tampered.slt", text, 1).faults.join("\n")
}

const TABLE: &str = "
statement ok
CREATE TABLE t (n INT)

statement count 2
INSERT INTO t VALUES (1), (2)
";

#[test]
fn a_correct_file_has_no_errors() {
    let text = format!("{TABLE}\nquery I rowsort\nSELECT n FROM t\n----\n1\n2\n");
    assert_eq!(faults(&text), "");
}

#[test]
fn a_wrong_expectation_in_a_file_is_an_error() {
    let wrong_row = format!("{TABLE}\nquery I rowsort\nSELECT n FROM t\n----\n1\n3\n");
    assert!(faults(&wrong_row).contains("query result mismatch"), "{}", faults(&wrong_row));
    let wrong_type = format!("{TABLE}\nquery T rowsort\nSELECT n FROM t\n----\n1\n2\n");
    assert!(faults(&wrong_type).contains("columns"), "{}", faults(&wrong_type));
    let wrong_count = format!("{TABLE}\nstatement count 1\nDELETE FROM t\n");
    assert!(faults(&wrong_count).contains("expected to affect 1"), "{}", faults(&wrong_count));
}

#[test]
fn a_table_that_differs_in_sqlite_is_an_error_of_the_view_over_it() {
    let text = format!(
        "{TABLE}\nonlyif sqlite\nstatement ok\nDELETE FROM t WHERE n = 1\n
statement ok\nCREATE MATERIALIZED VIEW v AS SELECT n FROM t\n"
    );
    assert!(
        faults(&text).contains("against SQLite's answer: missing: [], surplus: [1]"),
        "{}",
        faults(&text)
    );
}

#[test]
fn a_statement_that_sqlite_does_not_support_is_an_error_unless_skipped() {
    let view =
        "statement ok\nCREATE MATERIALIZED VIEW v AS SELECT TRY_CAST(n AS TEXT) AS n FROM t\n";
    let text = format!("{TABLE}\n{view}");
    assert!(faults(&text).contains("SQLite cannot follow"), "{}", faults(&text));
    assert_eq!(faults(&format!("{TABLE}\nskipif sqlite\n{view}")), "");
    assert_eq!(faults(&format!("# sqlite: none, for this test\n{text}")), "");
}

#[test]
fn row_errors_that_a_file_does_not_expect_are_an_error() {
    let text = format!(
        "{TABLE}\nstatement ok\nCREATE MATERIALIZED VIEW v AS SELECT 1 / (n - 1) AS n FROM t\n"
    );
    assert!(faults(&text).contains("does not speak of"), "{}", faults(&text));
    assert_eq!(
        faults(&format!("{text}\nquery T\nSELECT view FROM alluvium.errors\n----\nv\n")),
        ""
    );
}
