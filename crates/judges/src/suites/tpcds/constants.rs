//! The constants of a query.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use chrono::NaiveDate;
use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value, Visit, visit_expressions};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

/// The constants that a query compares columns with, and the dates that it names.
#[derive(Clone, Debug, Default)]
pub(super) struct Constants {
    of_columns: BTreeMap<String, Vec<String>>,
    pub(super) dates: Vec<NaiveDate>,
    pub(super) years: Vec<i32>,
    /// Months since the beginning of 1900.
    pub(super) months: Vec<i32>,
}

impl Constants {
    /// The constants of some queries; none if they cannot be parsed.
    pub(super) fn of(text: &str) -> Self {
        let mut constants = Self::default();
        let queries = Parser::parse_sql(&GenericDialect {}, text).unwrap_or_default();
        let _ = visit_expressions(&queries, |expression| {
            constants.look(expression);
            ControlFlow::<()>::Continue(())
        });
        for constant in literals(&queries) {
            constants.date(&constant);
        }
        constants
    }

    /// The constants that a column is compared with.
    pub(super) fn of_column(&self, column: &str) -> &[String] {
        self.of_columns.get(column).map_or(&[], Vec::as_slice)
    }

    /// Notes the comparisons that an expression makes itself.
    fn look(&mut self, expression: &Expr) {
        match expression {
            Expr::BinaryOp { left, op, right } if is_comparison(op) => {
                self.compare(left, right);
                self.compare(right, left);
            }
            Expr::InList { expr, list, .. } => {
                list.iter().for_each(|element| self.compare(expr, element))
            }
            Expr::Between { expr, low, high, .. } => {
                self.compare(expr, low);
                self.compare(expr, high);
            }
            Expr::Like { expr, pattern, .. } => self.compare(expr, pattern),
            _ => {}
        }
    }

    fn compare(&mut self, compared: &Expr, with: &Expr) {
        let constants = literals(with);
        let _ = visit_expressions(compared, |expression| {
            let name = match expression {
                Expr::Identifier(name) => Some(name),
                Expr::CompoundIdentifier(names) => names.last(),
                _ => None,
            };
            if let Some(name) = name {
                let of_column = self.of_columns.entry(name.value.to_lowercase()).or_default();
                of_column.extend(constants.iter().map(|constant| constant.replace('%', "")));
            }
            ControlFlow::<()>::Continue(())
        });
    }

    /// Notes the possible meanings of a constant in the calendar.
    fn date(&mut self, constant: &str) {
        if let Ok(date) = NaiveDate::parse_from_str(constant, "%Y-%m-%d") {
            self.dates.push(date);
        }
        match constant.parse() {
            Ok(year @ 1990..=2010) => self.years.push(year),
            Ok(month @ 1100..=1300) => self.months.push(month),
            _ => {}
        }
    }
}

fn is_comparison(operator: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// The literals in a syntax tree, and sums of two of them.
fn literals(tree: &impl Visit) -> Vec<String> {
    let mut literals = Vec::new();
    let _ = visit_expressions(tree, |expression| {
        literals.extend(literal(expression));
        if let Expr::BinaryOp { left, op: BinaryOperator::Plus, right } = expression {
            let number = |side: &Expr| literal(side)?.parse::<i64>().ok();
            literals.extend(number(left).zip(number(right)).map(|(a, b)| (a + b).to_string()));
        }
        ControlFlow::<()>::Continue(())
    });
    literals
}

fn literal(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits.to_string()),
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => Some(format!("-{}", literal(expr)?)),
        _ => None,
    }
}

#[test]
fn constants_belong_to_the_columns_that_are_compared_with_them() {
    let constants = Constants::of(
        "SELECT 7 FROM t, u WHERE t.a = 1 AND 2 < b AND SUBSTR(C, 1, 2) IN ('x', 'y') AND d BETWEEN 3 AND 3 + 5
           AND EXISTS (SELECT * FROM v WHERE e LIKE 'z%' AND f = -4)
           AND g >= CAST('2000-02-28' AS DATE) AND h IN (1999, 1200)",
    );
    for (column, expected) in [
        ("a", &["1"][..]),
        ("b", &["2"]),
        ("c", &["x", "y"]),
        ("e", &["z"]),
        ("g", &["2000-02-28"]),
        ("i", &[]),
    ] {
        assert_eq!(constants.of_column(column), expected, "{column}");
    }
    assert!(constants.of_column("d").contains(&"8".to_owned()));
    assert!(constants.of_column("f").contains(&"-4".to_owned()));
    assert_eq!(constants.dates.len(), 1);
    assert_eq!((&constants.years[..], &constants.months[..]), (&[1999][..], &[1200][..]));
}
