//! Rows that are kept, and rows that fail.

use std::fmt;

use arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int64Type, Schema};
use datafusion_expr::{ColumnarValue, Operator};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{BinaryExpr, CastExpr, lit};
use proptest::prelude::*;

use super::*;
use crate::movement::delta::Times;

/// All that becomes of a delta.
struct Mapped {
    rows: Vec<Delta<u64>>,
    errors: Option<Delta<u64>>,
}

impl Evaluation {
    fn map(&self, delta: &Delta<u64>) -> Mapped {
        let mut work = Work::new(delta.clone());
        let (mut rows, mut errors) = (Vec::new(), Vec::new());
        while let Some(produced) = self.advance(&mut work) {
            rows.extend(Some(produced.rows).filter(|rows| !rows.is_empty()));
            errors.extend(produced.errors);
        }
        let errors = (!errors.is_empty()).then(|| Delta::concat(&errors));
        Mapped { rows, errors }
    }
}

fn column(name: &str, index: usize) -> Expression {
    Arc::new(Column::new(name, index))
}

fn binary(left: Expression, operator: Operator, right: Expression) -> Expression {
    Arc::new(BinaryExpr::new(left, operator, right).with_fail_on_overflow(true))
}

fn rows(numbers: &[Option<i64>]) -> RecordBatch {
    let texts = numbers.iter().map(|number| number.map(|number| format!("{number}")));
    RecordBatch::try_from_iter_with_nullable([
        ("text", Arc::new(StringArray::from_iter(texts)) as ArrayRef, true),
        ("number", Arc::new(Int64Array::from_iter(numbers.iter().copied())), true),
    ])
    .unwrap()
}

/// Row `i` changes at time `i` with weight `i + 1`.
fn delta(numbers: &[Option<i64>]) -> Delta<u64> {
    let count = numbers.len();
    Delta::new(
        rows(numbers),
        Times::Each((0..count as u64).collect()),
        Some((1..=count as i64).collect::<Vec<_>>().into()),
    )
}

/// `SELECT 100 / number FROM … WHERE number > least`
fn division(least: Option<i64>) -> Evaluation {
    let filter = least.map(|least| binary(column("number", 1), Operator::Gt, lit(least)));
    let quotient = binary(lit(100_i64), Operator::Divide, column("number", 1));
    let schema = Schema::new(vec![Field::new("quotient", DataType::Int64, true)]);
    Evaluation::new(filter, vec![quotient], Arc::new(schema))
}

fn numbers(deltas: &[Delta<u64>]) -> Vec<(Option<i64>, u64, i64)> {
    let rows = deltas.iter().flat_map(|delta| {
        let numbers = delta.rows.column(0).as_primitive::<Int64Type>();
        (0..delta.len()).map(|row| {
            let number = numbers.is_valid(row).then(|| numbers.value(row));
            (number, *delta.time(row), delta.weight(row))
        })
    });
    rows.collect()
}

fn texts(delta: &Delta<u64>, column: usize) -> Vec<&str> {
    delta.rows.column(column).as_string::<i32>().iter().map(Option::unwrap).collect()
}

#[test]
fn rows_for_which_the_filter_is_not_true_are_gone_before_they_can_fail() {
    let mapped = division(Some(0)).map(&delta(&[Some(0), Some(5), None, Some(-1), Some(50)]));
    assert!(mapped.errors.is_none());
    assert_eq!(numbers(&mapped.rows), [(Some(20), 1, 2), (Some(2), 4, 5)]);
}

/// A function that has no place for several rows in one array, and for the number 7 in any.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Cramped;

impl fmt::Display for Cramped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cramped")
    }
}

impl PhysicalExpr for Cramped {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue, DataFusionError> {
        let numbers = batch.column(1).as_primitive::<Int64Type>();
        assert!(batch.num_rows() == 1 && numbers.value(0) != 7, "offset overflow");
        Ok(ColumnarValue::Array(batch.column(1).clone()))
    }
    fn children(&self) -> Vec<&Expression> {
        Vec::new()
    }
    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Expression>,
    ) -> Result<Expression, DataFusionError> {
        Ok(self)
    }
    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
    fn data_type(&self, _: &Schema) -> Result<DataType, DataFusionError> {
        Ok(DataType::Int64)
    }
    fn nullable(&self, _: &Schema) -> Result<bool, DataFusionError> {
        Ok(true)
    }
}

/// As those do that make texts of two gigabytes in all.
#[test]
fn a_function_that_panics_fails_for_the_rows_that_it_panics_for_alone() {
    let schema = Schema::new(vec![Field::new("number", DataType::Int64, true)]);
    let evaluation = Evaluation::new(None, vec![Arc::new(Cramped)], Arc::new(schema));
    let mapped = evaluation.map(&delta(&[Some(5), Some(7), Some(9)]));
    assert_eq!(numbers(&mapped.rows), [(Some(5), 0, 1), (Some(9), 2, 3)]);
    let errors = mapped.errors.unwrap();
    assert_eq!(
        (texts(&errors, 1), texts(&errors, 2)),
        (vec!["text='7', number=7"], vec!["offset overflow"])
    );
}

#[test]
fn rows_that_fail_become_errors_at_their_time_with_their_weight() {
    let mapped = division(None).map(&delta(&[Some(0), Some(5), None, Some(0), Some(50)]));
    assert_eq!(numbers(&mapped.rows), [(Some(20), 1, 2), (None, 2, 3), (Some(2), 4, 5)]);
    assert_eq!(mapped.rows.len(), 1, "good rows stay together");
    let errors = mapped.errors.unwrap();
    assert_eq!(texts(&errors, 0), ["100 / number"; 2]);
    assert_eq!(texts(&errors, 1), ["text='0', number=0"; 2]);
    assert_eq!(texts(&errors, 2), ["division by zero"; 2]);
    assert_eq!((*errors.time(1), errors.weight(0), errors.weight(1)), (3, 1, 4));
}

#[test]
fn a_filter_can_fail_too() {
    let quotient = binary(lit(100_i64), Operator::Divide, column("number", 1));
    let filter = binary(quotient, Operator::Gt, lit(10_i64));
    let schema = Schema::new(vec![Field::new("number", DataType::Int64, true)]);
    let evaluation = Evaluation::new(Some(filter), vec![column("number", 1)], Arc::new(schema));
    let mapped = evaluation.map(&delta(&[Some(1), Some(0), Some(99)]));
    assert_eq!(numbers(&mapped.rows), [(Some(1), 0, 1)]);
    assert_eq!(texts(&mapped.errors.unwrap(), 0), ["100 / number > 10"]);
}

#[test]
fn a_condition_is_not_evaluated_for_rows_for_which_one_before_it_is_null() {
    let is_small = binary(column("other", 0), Operator::Lt, lit(10_i64));
    let quotient = binary(lit(100_i64), Operator::Divide, column("number", 1));
    let is_large = binary(quotient, Operator::Gt, lit(10_i64));
    let filter = binary(is_small, Operator::And, is_large);
    let schema = Schema::new(vec![Field::new("number", DataType::Int64, true)]);
    let evaluation = Evaluation::new(Some(filter), vec![column("number", 1)], Arc::new(schema));
    let numbers_of = |other: Vec<Option<i64>>, number: Vec<Option<i64>>| {
        let columns: [(&str, ArrayRef); 2] = [
            ("other", Arc::new(Int64Array::from(other))),
            ("number", Arc::new(Int64Array::from(number))),
        ];
        let rows = RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true)));
        evaluation.map(&Delta::insertions(rows.unwrap(), 0))
    };
    let mapped = numbers_of(vec![None], vec![Some(0)]);
    assert!(mapped.errors.is_none() && mapped.rows.is_empty());
    let mapped = numbers_of(vec![None, Some(1), Some(99)], vec![Some(0), Some(2), Some(0)]);
    assert!(mapped.errors.is_none());
    assert_eq!(numbers(&mapped.rows), [(Some(2), 0, 1)]);
    assert_eq!(numbers_of(vec![Some(1)], vec![Some(0)]).errors.unwrap().len(), 1);
}

#[test]
fn a_row_that_fails_only_in_company_does_not_fail() {
    // Alone, AND does not evaluate its right side where the left one is false.
    let is_set = binary(column("number", 1), Operator::NotEq, lit(0_i64));
    let quotient = binary(lit(100_i64), Operator::Divide, column("number", 1));
    let is_large = binary(quotient, Operator::Gt, lit(10_i64));
    let filter = binary(is_set, Operator::And, is_large);
    let schema = Schema::new(vec![Field::new("number", DataType::Int64, true)]);
    let evaluation = Evaluation::new(Some(filter), vec![column("number", 1)], Arc::new(schema));
    let mapped = evaluation.map(&delta(&[Some(1), Some(0), Some(2), Some(99)]));
    assert!(mapped.errors.is_none());
    assert_eq!(numbers(&mapped.rows), [(Some(1), 0, 1), (Some(2), 2, 3)]);
}

#[test]
fn overflows_and_casts_fail_in_plain_words() {
    let sum = binary(column("number", 1), Operator::Plus, lit(1_i64));
    let cast: Expression = Arc::new(CastExpr::new(column("text", 0), DataType::Int8, None));
    let schema = Schema::new(vec![
        Field::new("sum", DataType::Int64, true),
        Field::new("cast", DataType::Int8, true),
    ]);
    let evaluation = Evaluation::new(None, vec![sum, cast], Arc::new(schema));
    let mapped = evaluation.map(&delta(&[Some(i64::MAX), Some(1), Some(1000)]));
    assert_eq!(numbers(&mapped.rows), [(Some(2), 1, 2)]);
    let errors = mapped.errors.unwrap();
    assert_eq!(texts(&errors, 0), ["number + 1", "CAST(text AS Int8)"]);
    assert_eq!(
        texts(&errors, 2),
        ["overflow: 9223372036854775807 + 1", "'1000' cannot be read as TINYINT"]
    );
}

#[test]
fn plain_columns_are_not_copied() {
    let schema = Schema::new(vec![
        Field::new("n", DataType::Int64, true),
        Field::new("t", DataType::Utf8, true),
    ]);
    let project = vec![column("number", 1), column("text", 0)];
    let evaluation = Evaluation::new(None, project, Arc::new(schema));
    let delta = delta(&[Some(1), Some(2)]);
    let mapped = evaluation.map(&delta);
    let (before, after) = (delta.rows.column(1).to_data(), mapped.rows[0].rows.column(0).to_data());
    assert_eq!(before.buffers()[0].as_ptr(), after.buffers()[0].as_ptr());
    assert_eq!(mapped.rows[0].rows.schema().field(1).name(), "t");
}

#[test]
fn a_projection_without_columns_still_counts_its_rows() {
    let filter = binary(column("number", 1), Operator::Gt, lit(1_i64));
    let evaluation = Evaluation::new(Some(filter), Vec::new(), Arc::new(Schema::empty()));
    let mapped = evaluation.map(&delta(&[Some(1), Some(2), Some(3)]));
    assert_eq!(mapped.rows[0].len(), 2);
}

proptest! {
    #[test]
    fn every_row_comes_out_once_as_if_it_were_alone(
        values in prop::collection::vec(proptest::option::of(-3..4_i64), 0..50),
        least in proptest::option::of(-3..2_i64),
    ) {
        let mapped = division(least).map(&delta(&values));
        let mut good = Vec::new();
        let mut bad = Vec::new();
        for (row, value) in values.iter().enumerate() {
            let (time, weight) = (row as u64, row as i64 + 1);
            match value {
                _ if least.is_some_and(|least| value.is_none_or(|value| value <= least)) => {}
                Some(0) => bad.push((time, weight)),
                value => good.push((value.map(|value| 100 / value), time, weight)),
            }
        }
        prop_assert_eq!(numbers(&mapped.rows), good);
        let errors = mapped.errors.map_or_else(Vec::new, |errors| {
            (0..errors.len()).map(|row| (*errors.time(row), errors.weight(row))).collect()
        });
        prop_assert_eq!(errors, bad);
    }
}
