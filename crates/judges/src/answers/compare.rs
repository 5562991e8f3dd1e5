//! Comparing multisets of rows.

use super::row::{Cell, Row, line};

/// The largest difference between two floats, relative to the larger one, or absolute.
const TOLERANCE: f64 = 1e-9;

/// When two values count as equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Bit by bit.
    Identical,
    /// Floats within a relative error of 1e-9, everything else exactly.
    Typed,
    /// As `Typed`, and floats within an absolute error of 1e-9: where sums cancel, the result depends on the order
    /// of rows.
    Rough,
    /// As `Rough`, for an answer whose decimals have fewer digits after the point. These may be off by a hundred units of
    /// the last of them: they were cut off, perhaps before they were added up.
    Short,
    /// As `Typed`, for a database without these types: booleans are 0 and 1, decimals are floats, times are text,
    /// and integers equal floats.
    Untyped,
}

/// A description of the first differences between two multisets; `None` if they are equal.
pub(crate) fn difference(expected: &[Row], actual: &[Row], measure: Measure) -> Option<String> {
    let expected = prepared(expected, measure);
    let actual = prepared(actual, measure);
    let in_order = expected.len() == actual.len()
        && expected
            .iter()
            .zip(&actual)
            .all(|(expected, actual)| same_row(expected, actual, measure));
    if in_order {
        return None;
    }
    // Sort orders may differ where floats are nearly equal, so each row is searched for.
    let mut surplus = actual;
    let mut missing = Vec::new();
    for row in expected {
        match surplus.iter().position(|other| same_row(&row, other, measure)) {
            Some(place) => {
                surplus.swap_remove(place);
            }
            None => missing.push(row),
        }
    }
    (!missing.is_empty() || !surplus.is_empty()).then(|| {
        surplus.sort();
        format!("missing: [{}], surplus: [{}]", listed(&missing), listed(&surplus))
    })
}

fn prepared(rows: &[Row], measure: Measure) -> Vec<Row> {
    let mut rows = rows.to_vec();
    if measure == Measure::Untyped {
        rows.iter_mut().flatten().for_each(untype);
    }
    rows.sort();
    rows
}

fn untype(cell: &mut Cell) {
    match cell {
        Cell::Boolean(value) => *cell = Cell::Integer((*value).into()),
        Cell::Decimal(digits) => {
            *cell = Cell::Float(digits.parse().expect("a decimal is a number"))
        }
        Cell::Time(text) => *cell = Cell::Text(std::mem::take(text)),
        _ => {}
    }
}

fn same_row(a: &Row, b: &Row, measure: Measure) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, measure))
}

fn same(a: &Cell, b: &Cell, measure: Measure) -> bool {
    match (a, b) {
        (Cell::Float(a), Cell::Float(b)) if matches!(measure, Measure::Rough | Measure::Short) => {
            close(*a, *b) || (a - b).abs() <= TOLERANCE
        }
        (Cell::Float(a), Cell::Float(b)) if measure != Measure::Identical => close(*a, *b),
        (Cell::Integer(integer), Cell::Float(float))
        | (Cell::Float(float), Cell::Integer(integer))
            if measure == Measure::Untyped =>
        {
            close(*integer as f64, *float)
        }
        (Cell::Decimal(a), Cell::Decimal(b)) if measure == Measure::Short => {
            let scale = |digits: &str| digits.split_once('.').map_or(0, |(_, behind)| behind.len());
            let number = |digits: &str| digits.parse::<f64>().expect("a decimal is a number");
            let last_digit = 0.1_f64.powi(scale(a).min(scale(b)) as i32);
            a == b || scale(a) != scale(b) && (number(a) - number(b)).abs() < 100.0 * last_digit
        }
        _ => a == b,
    }
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
}

fn listed(rows: &[Row]) -> String {
    const SHOWN: usize = 5;
    let mut text = rows.iter().take(SHOWN).map(line).collect::<Vec<_>>().join(" | ");
    if rows.len() > SHOWN {
        text += &format!(" | … {} more", rows.len() - SHOWN);
    }
    text
}

#[test]
fn equal_multisets_have_no_difference_in_any_order() {
    let one = vec![Cell::Integer(1), Cell::Null];
    let two = vec![Cell::Integer(2), Cell::Text("x".into())];
    let rows = [one.clone(), two.clone(), one.clone()];
    let turned = [two.clone(), one.clone(), one.clone()];
    assert_eq!(difference(&rows, &turned, Measure::Identical), None);
    let found = difference(&rows, &[one, two], Measure::Identical);
    assert_eq!(
        found.as_deref(),
        Some("missing: [1 NULL], surplus: []"),
        "a copy less is a difference"
    );
}

#[test]
fn types_tell_values_apart_unless_the_engine_has_none() {
    let cases = [
        (Cell::Integer(1), Cell::Float(1.0)),
        (Cell::Boolean(true), Cell::Integer(1)),
        (Cell::Decimal("1.50".into()), Cell::Float(1.5)),
        (Cell::Time("2024-01-01".into()), Cell::Text("2024-01-01".into())),
    ];
    for (a, b) in cases {
        let (a, b) = ([vec![a]], [vec![b]]);
        assert!(difference(&a, &b, Measure::Typed).is_some(), "{a:?} {b:?}");
        assert_eq!(difference(&a, &b, Measure::Untyped), None, "{a:?} {b:?}");
    }
}

#[test]
fn floats_may_differ_in_the_tenth_digit_and_no_sooner() {
    let row = |value: f64| [vec![Cell::Float(value)]];
    assert_eq!(difference(&row(1e12), &row(1e12 + 100.0), Measure::Typed), None);
    assert!(difference(&row(1e12), &row(1e12 + 10_000.0), Measure::Typed).is_some());
    assert!(difference(&row(0.1 + 0.2), &row(0.3), Measure::Identical).is_some());
    assert_eq!(difference(&row(f64::NAN), &row(-f64::NAN), Measure::Typed), None);
    assert!(difference(&row(0.0), &row(1e-300), Measure::Typed).is_some());
    assert_eq!(difference(&row(0.0), &row(-1e-17), Measure::Rough), None);
    assert!(difference(&row(0.0), &row(1e-8), Measure::Rough).is_some());
}

#[test]
fn decimals_may_be_shorter_but_not_others() {
    let row = |digits: &str| [vec![Cell::Decimal(digits.to_owned())]];
    let is_equal = |a, b| difference(&row(a), &row(b), Measure::Short).is_none();
    assert!(is_equal("0.333333", "0.3333333333333333"));
    assert!(is_equal("-12.345600", "-12.3456789"));
    assert!(!is_equal("0.3333", "0.3533333333333333"));
    assert!(!is_equal("0.333333", "0.333334"));
}

#[test]
fn nearly_equal_floats_do_not_confuse_the_pairing_of_rows() {
    let row = |float: f64, integer: i128| vec![Cell::Float(float), Cell::Integer(integer)];
    let a = [row(1.0, 2), row(1.0 + 1e-12, 1)];
    let b = [row(1.0 + 1e-12, 2), row(1.0, 1)];
    assert_eq!(difference(&a, &b, Measure::Typed), None);
}
