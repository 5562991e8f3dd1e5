//! Evaluating aggregates.

use std::cmp::Ordering;

use super::expression::whole;
use super::{Fault, Outcome, Row, Scope, World};
use crate::query::{Aggregate, Kind, Order, Value};

impl World<'_> {
    /// An aggregate over rows with the columns of `scope`.
    pub(super) fn aggregate(
        &self,
        aggregate: &Aggregate,
        rows: &[&Row],
        scope: &Scope<'_>,
    ) -> Outcome<Value> {
        let mut inputs: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
        for row in rows {
            let scope = Scope { row, ..*scope };
            if let Some(filter) = &aggregate.filter
                && self.truth(filter, &scope)? != Some(true)
            {
                continue;
            }
            let arguments = aggregate.arguments.iter().map(|argument| self.value(argument, &scope));
            let order = aggregate.order.iter().map(|order| self.value(&order.expr, &scope));
            inputs.push((arguments.collect::<Outcome<_>>()?, order.collect::<Outcome<_>>()?));
        }
        if aggregate.distinct {
            let mut seen: Vec<Vec<Value>> = Vec::new();
            inputs.retain(|(arguments, _)| {
                let new = !seen.contains(arguments);
                if new {
                    seen.push(arguments.clone());
                }
                new
            });
        }
        // Ties, or all rows without an order, are in ascending order of the arguments, NULLs last.
        inputs.sort_by(|a, b| {
            ordered(&aggregate.order, &a.1, &b.1).then_with(|| nulls_last(&a.0, &b.0))
        });
        let inputs: Vec<Vec<Value>> = inputs.into_iter().map(|(arguments, _)| arguments).collect();
        summarise(aggregate.function, aggregate.kind, &inputs)
    }
}

/// Compares two rows by their ORDER BY values.
pub(super) fn ordered(orders: &[Order], a: &[Value], b: &[Value]) -> Ordering {
    for (place, order) in orders.iter().enumerate() {
        let found = one(&a[place], &b[place], order.descending, order.nulls_first);
        if found.is_ne() {
            return found;
        }
    }
    Ordering::Equal
}

/// Compares two ORDER BY values.
pub(super) fn one(a: &Value, b: &Value, descending: bool, nulls_first: bool) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) => one(b, a, descending, nulls_first).reverse(),
        _ if descending => b.cmp(a),
        _ => a.cmp(b),
    }
}

fn nulls_last(a: &[Value], b: &[Value]) -> Ordering {
    let orders = a.iter().zip(b).map(|(a, b)| one(a, b, false, false));
    orders.fold(Ordering::Equal, Ordering::then)
}

/// The result of an aggregate function for its arguments, in order.
pub(super) fn summarise(function: &str, kind: Kind, inputs: &[Vec<Value>]) -> Outcome<Value> {
    let firsts = || inputs.iter().filter_map(|input| input.first());
    let known = || firsts().filter(|value| !value.is_null());
    let numbers = || known().filter_map(Value::number);
    let count = known().count() as i128;
    Ok(match function {
        "count" => {
            let counted = inputs.iter().filter(|input| !input.iter().any(Value::is_null));
            Value::Whole(counted.count() as i128)
        }
        "approx_distinct" | "regr_count" => return Err(Fault::Unknown("an estimate")),
        _ if count == 0
            && !matches!(function, "array_agg" | "first_value" | "last_value" | "nth_value") =>
        {
            Value::Null
        }
        "sum" => sum(&known().collect::<Vec<_>>(), kind)?,
        "avg" => match known().any(|value| matches!(value, Value::Decimal(..))) {
            true => return Err(Fault::Unknown("averages of decimals")),
            false => Value::Float(numbers().sum::<f64>() / count as f64),
        },
        "min" => known().min().cloned().unwrap_or(Value::Null),
        "max" => known().max().cloned().unwrap_or(Value::Null),
        "bool_and" => Value::Boolean(known().all(|value| *value == Value::Boolean(true))),
        "bool_or" => Value::Boolean(known().any(|value| *value == Value::Boolean(true))),
        "bit_and" | "bit_or" | "bit_xor" => {
            let values = known().filter_map(|value| match value {
                Value::Whole(value) => Some(*value),
                _ => None,
            });
            let all = values.reduce(|a, b| match function {
                "bit_and" => a & b,
                "bit_or" => a | b,
                _ => a ^ b,
            });
            all.map_or(Value::Null, Value::Whole)
        }
        "array_agg" => match inputs.is_empty() {
            true => Value::Null,
            false => Value::List(firsts().cloned().collect()),
        },
        "string_agg" => {
            let texts: Vec<String> = known().map(Value::plain).collect();
            Value::Text(texts.join(","))
        }
        "first_value" => firsts().next().cloned().unwrap_or(Value::Null),
        "last_value" => firsts().next_back().cloned().unwrap_or(Value::Null),
        "nth_value" => match inputs.first().and_then(|input| input.get(1)) {
            Some(Value::Whole(place)) => {
                firsts().nth(*place as usize - 1).cloned().unwrap_or(Value::Null)
            }
            _ => Value::Null,
        },
        _ => return Err(Fault::Unknown("an aggregate")),
    })
}

fn sum(values: &[&Value], kind: Kind) -> Outcome<Value> {
    if values.iter().all(|value| matches!(value, Value::Whole(_))) {
        let total = values.iter().map(|value| match value {
            Value::Whole(value) => *value,
            _ => 0,
        });
        let kind = if kind == Kind::Unsigned { Kind::Big } else { kind };
        return whole(total.sum(), kind);
    }
    if let Some(Value::Decimal(_, scale)) = values.first() {
        let total = values.iter().map(|value| match value {
            Value::Decimal(units, _) => *units,
            _ => 0,
        });
        return Ok(Value::Decimal(total.sum(), *scale));
    }
    Ok(Value::Float(values.iter().filter_map(|value| value.number()).sum()))
}
