//! Dates that are compared with instants.
//!
//! `day >= DATE '2024-01-31' + INTERVAL '1 month'` compares instants, as a date plus an interval is a `TIMESTAMP`: each date would be
//! cast, and no key of dates sought. An instant that is known falls on a day, so the days can be compared.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{ExprSchema, ScalarValue};
use datafusion_expr::expr::Cast;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator, lit};

/// The microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// The comparison of a date that is cast with a constant instant, as one of days; anything else as it is.
pub(crate) fn compared(expression: Expr, schema: &dyn ExprSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expression else {
        return Transformed::no(expression);
    };
    let found = match (date(left, schema), instant(right), instant(left), date(right, schema)) {
        (Some(date), Some(instant), _, _) => of_days(date, *op, instant),
        (_, _, Some(instant), Some(date)) => op.swap().and_then(|op| of_days(date, op, instant)),
        _ => None,
    };
    match found {
        Some(compared) => Transformed::yes(compared),
        None => Transformed::no(expression),
    }
}

/// Whether an expression compares something with a constant instant.
pub(crate) fn has_instant(expression: &Expr) -> bool {
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
            instant(left).is_some() || instant(right).is_some()
        }
        _ => false,
    }
}

/// The date that is cast to an instant without a zone.
fn date<'a>(expression: &'a Expr, schema: &dyn ExprSchema) -> Option<&'a Expr> {
    let Expr::Cast(Cast { expr, field }) = expression else { return None };
    let is_instant = *field.data_type() == DataType::Timestamp(TimeUnit::Microsecond, None);
    let is_date = is_instant && expr.get_type(schema).is_ok_and(|of| of == DataType::Date32);
    is_date.then_some(expr)
}

/// A constant instant without a zone.
fn instant(expression: &Expr) -> Option<i64> {
    match expression {
        Expr::Literal(ScalarValue::TimestampMicrosecond(instant, None), _) => *instant,
        _ => None,
    }
}

fn of_days(date: &Expr, operator: Operator, instant: i64) -> Option<Expr> {
    let is_midnight = instant.rem_euclid(DAY) == 0;
    let operator = match operator {
        // The day of an instant within it is before that, and the next one after it.
        Operator::Lt if !is_midnight => Operator::LtEq,
        Operator::GtEq if !is_midnight => Operator::Gt,
        Operator::Eq | Operator::NotEq if !is_midnight => return None,
        Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => operator,
        Operator::Eq | Operator::NotEq => operator,
        _ => return None,
    };
    let day = i32::try_from(instant.div_euclid(DAY)).ok()?;
    let day = lit(ScalarValue::Date32(Some(day)));
    Some(Expr::BinaryExpr(BinaryExpr::new(Box::new(date.clone()), operator, Box::new(day))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_compare_with_the_day_of_an_instant_as_they_do_with_the_instant() {
        let holds = |one: i64, operator: Operator, other: i64| match operator {
            Operator::Lt => one < other,
            Operator::LtEq => one <= other,
            Operator::Gt => one > other,
            Operator::GtEq => one >= other,
            Operator::Eq => one == other,
            _ => one != other,
        };
        let operators = [
            Operator::Lt,
            Operator::LtEq,
            Operator::Gt,
            Operator::GtEq,
            Operator::Eq,
            Operator::NotEq,
        ];
        let mut found = 0;
        for instant in [-DAY - 1, -DAY, -1, 0, 1, DAY - 1, DAY, DAY + 1] {
            for operator in operators {
                let date = Expr::Column("day".into());
                let Some(Expr::BinaryExpr(compared)) = of_days(&date, operator, instant) else {
                    continue;
                };
                let Expr::Literal(ScalarValue::Date32(Some(day)), _) = *compared.right else {
                    panic!("{compared:?}")
                };
                found += 1;
                for other in -3..4 {
                    let expected = holds(other * DAY, operator, instant);
                    assert_eq!(holds(other, compared.op, i64::from(day)), expected);
                }
            }
        }
        assert_eq!(found, 38);
    }
}
