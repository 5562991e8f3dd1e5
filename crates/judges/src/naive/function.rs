//! Evaluating scalar functions.

use super::{Fault, Outcome, Scope, World};
use crate::query::value::{civil, day_of};
use crate::query::{Expr, Function, Value};

const DAY: i64 = 86_400;

impl World<'_> {
    pub(super) fn call(
        &self,
        function: Function,
        arguments: &[Expr],
        scope: &Scope<'_>,
    ) -> Outcome<Value> {
        if function == Function::Coalesce {
            for argument in arguments {
                let value = self.value(argument, scope)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            return Ok(Value::Null);
        }
        let values: Vec<Value> =
            arguments.iter().map(|argument| self.value(argument, scope)).collect::<Outcome<_>>()?;
        let known = values.iter().filter(|value| !value.is_null());
        match function {
            Function::Greatest => return Ok(known.max().cloned().unwrap_or(Value::Null)),
            Function::Least => return Ok(known.min().cloned().unwrap_or(Value::Null)),
            Function::NullIf => {
                let equal = !values[0].is_null() && values[0] == values[1];
                return Ok(if equal { Value::Null } else { values[0].clone() });
            }
            Function::ArrayAppend => {
                let mut list = match &values[0] {
                    Value::List(values) => values.clone(),
                    _ => Vec::new(),
                };
                list.push(values[1].clone());
                return Ok(Value::List(list));
            }
            _ => {}
        }
        if values.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        Ok(match (function, &values[..]) {
            (Function::Abs, [Value::Whole(value)]) => Value::Whole(value.abs()),
            (Function::Abs, [Value::Float(value)]) => Value::Float(value.abs()),
            (Function::Abs, [Value::Decimal(units, scale)]) => Value::Decimal(units.abs(), *scale),
            (Function::Upper, [Value::Text(text)]) => Value::Text(text.to_uppercase()),
            (Function::Lower, [Value::Text(text)]) => Value::Text(text.to_lowercase()),
            (Function::Length, [Value::Text(text)]) => Value::Whole(text.chars().count() as i128),
            (Function::Substr, [Value::Text(text), Value::Whole(start), Value::Whole(length)]) => {
                let start = (*start as usize).saturating_sub(1);
                Value::Text(text.chars().skip(start).take(*length as usize).collect())
            }
            (Function::Replace, [Value::Text(text), Value::Text(from), Value::Text(to)]) => {
                Value::Text(text.replace(from.as_str(), to))
            }
            (
                Function::TruncateHour | Function::TruncateDay | Function::TruncateMonth,
                [Value::Moment(seconds)],
            ) => Value::Moment(truncated(function, *seconds)),
            (
                Function::TruncateHour | Function::TruncateDay | Function::TruncateMonth,
                [Value::Zoned(seconds)],
            ) => Value::Zoned(truncated(function, *seconds)),
            (
                Function::Minute | Function::Hour | Function::Day,
                [time @ (Value::Date(_) | Value::Moment(_) | Value::Zoned(_))],
            ) => {
                let seconds = time.instant().unwrap_or_default();
                Value::Whole(i128::from(match function {
                    Function::Minute => seconds.rem_euclid(3600) / 60,
                    Function::Hour => seconds.rem_euclid(DAY) / 3600,
                    _ => civil(seconds.div_euclid(DAY)).2,
                }))
            }
            (Function::Cardinality, [Value::List(values)]) => Value::Whole(values.len() as i128),
            (Function::ArrayHas, [Value::List(values), value]) => {
                Value::Boolean(values.contains(value))
            }
            (Function::ArrayToString, [Value::List(values)]) => {
                let texts = values.iter().filter(|value| !value.is_null()).map(Value::plain);
                Value::Text(texts.collect::<Vec<_>>().join("+"))
            }
            _ => return Err(Fault::Unknown("a function")),
        })
    }
}

/// The beginning of the hour, the day or the month of a time in seconds.
fn truncated(function: Function, seconds: i64) -> i64 {
    match function {
        Function::TruncateHour => seconds - seconds.rem_euclid(3600),
        Function::TruncateDay => seconds - seconds.rem_euclid(DAY),
        _ => {
            let (year, month, _) = civil(seconds.div_euclid(DAY));
            day_of(year, month, 1) * DAY
        }
    }
}
