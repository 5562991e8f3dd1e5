//! Evaluating scalar expressions.

use std::cmp::Ordering;

use super::{Fault, Outcome, Scope, World, zone};
use crate::query::{Expr, Kind, Op, Query, Value};

impl World<'_> {
    pub(super) fn value(&self, expr: &Expr, scope: &Scope<'_>) -> Outcome<Value> {
        if let Some(group) = scope.group
            && let Some((_, value)) = group.keys.iter().find(|(key, _)| *key == expr)
        {
            return Ok(value.clone().unwrap_or(Value::Null));
        }
        let truth = |value: Option<bool>| Ok(value.map_or(Value::Null, Value::Boolean));
        match expr {
            Expr::Column(relation, name, _) => scope.column(relation, name),
            Expr::Literal(value, _) => Ok(value.clone()),
            Expr::Binary(left, op, right) => self.binary(expr, left, *op, right, scope),
            Expr::Not(inner) => truth(self.truth(inner, scope)?.map(|value| !value)),
            Expr::Minus(inner) => minus(self.value(inner, scope)?, inner.kind()),
            Expr::IsNull(inner, negated) => {
                truth(Some(self.value(inner, scope)?.is_null() != *negated))
            }
            Expr::IsTrue(inner, negated) => {
                truth(Some((self.truth(inner, scope)? == Some(true)) != *negated))
            }
            Expr::Between(inner, low, high, negated) => {
                let value = self.value(inner, scope)?;
                let low = compare(&self.value(low, scope)?, &value).map(Ordering::is_le);
                let high = compare(&value, &self.value(high, scope)?).map(Ordering::is_le);
                truth(and(low, high).map(|value| value != *negated))
            }
            Expr::In(inner, list, negated) => {
                let value = self.value(inner, scope)?;
                let values = list.iter().map(|item| self.value(item, scope));
                truth(is_among(&value, values)?.map(|value| value != *negated))
            }
            Expr::Like(inner, pattern, negated) => match self.value(inner, scope)? {
                Value::Text(text) => {
                    truth(Some(like(text.as_bytes(), pattern.as_bytes()) != *negated))
                }
                _ => Ok(Value::Null),
            },
            Expr::Case(operand, branches, otherwise) => {
                self.case(operand.as_deref(), branches, otherwise.as_deref(), scope)
            }
            Expr::Call(function, arguments) => self.call(*function, arguments, scope),
            Expr::Cast(inner, kind, try_it) => {
                match cast(self.value(inner, scope)?, inner.kind(), *kind) {
                    Err(Fault::Failed) if *try_it => Ok(Value::Null),
                    outcome => outcome,
                }
            }
            Expr::Shift(inner, seconds) => Ok(match self.value(inner, scope)? {
                Value::Moment(moment) => Value::Moment(moment + seconds),
                Value::Null => Value::Null,
                _ => return Err(Fault::Unknown("shift")),
            }),
            Expr::Move(inner, length) => Ok(match self.value(inner, scope)? {
                Value::Date(days) => Value::Moment(zone::moved(days * 86_400, *length)),
                Value::Moment(seconds) => Value::Moment(zone::moved(seconds, *length)),
                Value::Zoned(seconds) => Value::Zoned(zone::moved(seconds, *length)),
                Value::Null => Value::Null,
                _ => return Err(Fault::Unknown("a moved value")),
            }),
            Expr::Days(inner, days) => Ok(match self.value(inner, scope)? {
                Value::Date(date) => Value::Date(date + days),
                Value::Null => Value::Null,
                _ => return Err(Fault::Unknown("days beside a value")),
            }),
            Expr::Apart(a, b) => zone::apart(&self.value(a, scope)?, &self.value(b, scope)?),
            Expr::AtZone(inner, zone) => Ok(match self.value(inner, scope)? {
                Value::Zoned(instant) => Value::Moment(zone::shown(*zone, instant)?),
                Value::Moment(shown) => Value::Zoned(zone::instant(*zone, shown)?),
                Value::Null => Value::Null,
                _ => return Err(Fault::Unknown("a value in a zone")),
            }),
            Expr::Rows(left, op, right) => {
                truth(rows(&self.row(left, scope)?, *op, &self.row(right, scope)?)?)
            }
            Expr::RowAmong(row, query, negated) => {
                let row = self.row(row, scope)?;
                let found = self.query(query, Some(scope))?.into_iter();
                let found = found
                    .map(|other| rows(&row, Op::Equal, &other))
                    .try_fold(Some(false), |found, same| Ok(or(found, same?)));
                truth(found?.map(|value| value != *negated))
            }
            Expr::RowScalar(row, op, query) => {
                let mut found = self.query(query, Some(scope))?;
                match (found.pop(), found.len()) {
                    (None, _) => Ok(Value::Null),
                    (Some(other), 0) => truth(rows(&self.row(row, scope)?, *op, &other)?),
                    _ => Err(Fault::Failed),
                }
            }
            Expr::Element(..) | Expr::Field(..) | Expr::MakeList(_) | Expr::MakeStruct(_) => {
                self.nested(expr, scope)
            }
            Expr::Now => Ok(Value::Moment(self.now)),
            Expr::Aggregate(aggregate) => {
                let group = scope.group.ok_or(Fault::Unknown("an aggregate of no group"))?;
                let inner = Scope { group: None, windows: &[], ..*scope };
                self.aggregate(aggregate, &group.rows, &inner)
            }
            Expr::Window(window) => {
                let found = scope.windows.iter().find(|(other, _)| *other == &**window);
                found.map(|(_, value)| value.clone()).ok_or(Fault::Unknown("a window"))
            }
            Expr::Grouping(inner) => grouping(inner, scope),
            Expr::Unnest(_) => Err(Fault::Unknown("UNNEST inside of an expression")),
            Expr::Exists(query, negated) => {
                let rows = self.query(query, Some(scope))?;
                truth(Some(rows.is_empty() == *negated))
            }
            Expr::Among(inner, query, negated) => {
                let value = self.value(inner, scope)?;
                let rows = self.query(query, Some(scope))?.into_iter();
                let values = rows.map(|mut row| Ok(row.swap_remove(0)));
                truth(is_among(&value, values)?.map(|value| value != *negated))
            }
            Expr::Scalar(query, _) => self.scalar(query, scope),
        }
    }

    fn row(&self, exprs: &[Expr], scope: &Scope<'_>) -> Outcome<Vec<Value>> {
        exprs.iter().map(|expr| self.value(expr, scope)).collect()
    }

    fn case(
        &self,
        operand: Option<&Expr>,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Outcome<Value> {
        let operand = operand.map(|operand| self.value(operand, scope)).transpose()?;
        for (condition, value) in branches {
            let holds = match &operand {
                Some(operand) => {
                    compare(operand, &self.value(condition, scope)?).map(Ordering::is_eq)
                }
                None => self.truth(condition, scope)?,
            };
            if holds == Some(true) {
                return self.value(value, scope);
            }
        }
        otherwise.map_or(Ok(Value::Null), |value| self.value(value, scope))
    }

    /// An element of a list, a field of a struct, or a new list or struct.
    fn nested(&self, expr: &Expr, scope: &Scope<'_>) -> Outcome<Value> {
        Ok(match expr {
            Expr::Element(inner, place) => match self.value(inner, scope)? {
                Value::List(values) => {
                    let place = usize::try_from(place - 1).ok();
                    place.and_then(|place| values.get(place).cloned()).unwrap_or(Value::Null)
                }
                _ => Value::Null,
            },
            Expr::Field(inner, name, _) => match self.value(inner, scope)? {
                Value::Struct(fields) | Value::Map(fields) => {
                    let field = fields.into_iter().find(|(field, _)| field == name);
                    field.map_or(Value::Null, |(_, value)| value)
                }
                _ => Value::Null,
            },
            Expr::MakeList(items) => {
                let values = items.iter().map(|item| self.value(item, scope));
                Value::List(values.collect::<Outcome<_>>()?)
            }
            Expr::MakeStruct(items) => {
                let fields = items.iter().zip(["x", "y"]);
                let fields =
                    fields.map(|(item, name)| Ok((name.to_owned(), self.value(item, scope)?)));
                Value::Struct(fields.collect::<Outcome<_>>()?)
            }
            _ => return Err(Fault::Unknown("an expression of nested values")),
        })
    }

    fn scalar(&self, query: &Query, scope: &Scope<'_>) -> Outcome<Value> {
        let mut rows = self.query(query, Some(scope))?;
        match (rows.pop(), rows.len()) {
            (None, _) => Ok(Value::Null),
            (Some(mut row), 0) => Ok(row.swap_remove(0)),
            _ => Err(Fault::Failed),
        }
    }

    pub(super) fn truth(&self, expr: &Expr, scope: &Scope<'_>) -> Outcome<Option<bool>> {
        match self.value(expr, scope)? {
            Value::Boolean(value) => Ok(Some(value)),
            Value::Null => Ok(None),
            _ => Err(Fault::Unknown("a condition that is not true or false")),
        }
    }

    /// Whether a row passes a condition: the parts that AND connects are evaluated in turn, until one is not true.
    pub(super) fn passes(&self, expr: &Expr, scope: &Scope<'_>) -> Outcome<bool> {
        match expr {
            Expr::Binary(left, Op::And, right) => {
                Ok(self.passes(left, scope)? && self.passes(right, scope)?)
            }
            expr => Ok(self.truth(expr, scope)? == Some(true)),
        }
    }

    fn binary(
        &self,
        whole_expr: &Expr,
        left: &Expr,
        op: Op,
        right: &Expr,
        scope: &Scope<'_>,
    ) -> Outcome<Value> {
        let truth = |value: Option<bool>| Ok(value.map_or(Value::Null, Value::Boolean));
        match op {
            Op::And => {
                let left = self.truth(left, scope)?;
                if left == Some(false) {
                    return truth(left);
                }
                return truth(and(left, self.truth(right, scope)?));
            }
            Op::Or => {
                let left = self.truth(left, scope)?;
                if left == Some(true) {
                    return truth(left);
                }
                return truth(or(left, self.truth(right, scope)?));
            }
            _ => {}
        }
        let (a, b) = (self.value(left, scope)?, self.value(right, scope)?);
        let order = compare(&a, &b);
        match op {
            Op::Equal => truth(order.map(Ordering::is_eq)),
            Op::Unequal => truth(order.map(Ordering::is_ne)),
            Op::Less => truth(order.map(Ordering::is_lt)),
            Op::LessEqual => truth(order.map(Ordering::is_le)),
            Op::Greater => truth(order.map(Ordering::is_gt)),
            Op::GreaterEqual => truth(order.map(Ordering::is_ge)),
            Op::Same => truth(Some(a == b)),
            Op::Differs => truth(Some(a != b)),
            Op::Concat => match (a, b) {
                (Value::Text(a), Value::Text(b)) => Ok(Value::Text(a + &b)),
                _ => Ok(Value::Null),
            },
            _ => arithmetic(a, op, b, whole_expr.kind()),
        }
    }
}

/// Compares two rows: for equality all their columns; for an order those up to the first that differ, or one of which is NULL.
fn rows(left: &[Value], op: Op, right: &[Value]) -> Outcome<Option<bool>> {
    let mut columns = left.iter().zip(right).map(|(a, b)| compare(a, b));
    if matches!(op, Op::Equal | Op::Unequal) {
        let same = columns.map(|order| order.map(Ordering::is_eq)).fold(Some(true), and);
        return Ok(same.map(|same| same == (op == Op::Equal)));
    }
    let first = columns.find(|order| *order != Some(Ordering::Equal));
    let order = first.unwrap_or(Some(Ordering::Equal));
    Ok(match op {
        Op::Less => order.map(Ordering::is_lt),
        Op::LessEqual => order.map(Ordering::is_le),
        Op::Greater => order.map(Ordering::is_gt),
        Op::GreaterEqual => order.map(Ordering::is_ge),
        _ => return Err(Fault::Unknown("an operator of rows")),
    })
}

/// Compares two values; `None` if one is NULL.
pub(super) fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    (!a.is_null() && !b.is_null()).then(|| a.cmp(b))
}

pub(super) fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

pub(super) fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    and(a.map(|a| !a), b.map(|b| !b)).map(|value| !value)
}

fn minus(value: Value, kind: Kind) -> Outcome<Value> {
    match value {
        Value::Whole(value) => whole(-value, kind),
        Value::Float(value) => Ok(Value::Float(-value)),
        Value::Decimal(units, scale) => Ok(Value::Decimal(-units, scale)),
        Value::Null => Ok(Value::Null),
        _ => Err(Fault::Unknown("minus")),
    }
}

/// GROUPING: 1 if the grouping set of the current group lacks a key.
fn grouping(key: &Expr, scope: &Scope<'_>) -> Outcome<Value> {
    let group = scope.group.ok_or(Fault::Unknown("GROUPING of no group"))?;
    let found = group.keys.iter().find(|(other, _)| *other == key);
    let (_, value) = found.ok_or(Fault::Unknown("GROUPING of no key"))?;
    Ok(Value::Whole(value.is_none().into()))
}

/// Whether a value is one of `values`; NULL where SQL's IN is.
fn is_among(
    value: &Value,
    mut values: impl Iterator<Item = Outcome<Value>>,
) -> Outcome<Option<bool>> {
    values.try_fold(Some(false), |found, other| {
        Ok(or(found, compare(value, &other?).map(Ordering::is_eq)))
    })
}

/// A whole number, if it fits into its type.
pub(super) fn whole(value: i128, kind: Kind) -> Outcome<Value> {
    let (least, greatest) = kind.range();
    match (least..=greatest).contains(&value) {
        true => Ok(Value::Whole(value)),
        false => Err(Fault::Failed),
    }
}

fn arithmetic(a: Value, op: Op, b: Value, kind: Kind) -> Outcome<Value> {
    if a.is_null() || b.is_null() {
        return Ok(Value::Null);
    }
    match (&a, &b) {
        (Value::Whole(a), Value::Whole(b)) => match op {
            Op::Add => whole(a + b, kind),
            Op::Subtract => whole(a - b, kind),
            Op::Multiply => whole(a * b, kind),
            Op::Divide | Op::Modulo if *b == 0 => Err(Fault::Failed),
            Op::Divide => whole(a / b, kind),
            _ => whole(a % b, kind),
        },
        (Value::Decimal(a, s), Value::Decimal(b, t)) if s == t => match op {
            Op::Add => Ok(Value::Decimal(a + b, *s)),
            Op::Subtract => Ok(Value::Decimal(a - b, *s)),
            _ => Err(Fault::Unknown("products of decimals")),
        },
        (Value::Decimal(..), _) | (_, Value::Decimal(..)) => {
            Err(Fault::Unknown("decimals beside other numbers"))
        }
        _ => match (a.number(), b.number()) {
            (Some(a), Some(b)) => Ok(Value::Float(match op {
                Op::Add => a + b,
                Op::Subtract => a - b,
                Op::Multiply => a * b,
                Op::Divide => a / b,
                _ => a % b,
            })),
            _ => Err(Fault::Unknown("arithmetic with a value that is not a number")),
        },
    }
}

fn cast(value: Value, from: Kind, to: Kind) -> Outcome<Value> {
    let unknown = Err(Fault::Unknown("a cast"));
    Ok(match (value, to) {
        (Value::Null, _) => Value::Null,
        (value, _) if from == to => value,
        (Value::Whole(value), to) if to.is_whole() => return whole(value, to),
        (Value::Whole(value), Kind::Real | Kind::Float) => Value::Float(value as f64),
        (Value::Whole(value), Kind::Decimal) => Value::Decimal(value * 100, 2),
        (Value::Boolean(value), to) if to.is_whole() => Value::Whole(value.into()),
        // To the nearest whole number, and of two to the even one.
        (Value::Float(value), to) if to.is_whole() => {
            return whole(value.round_ties_even() as i128, to);
        }
        (Value::Text(text), to) if to.is_whole() => match text.parse() {
            Ok(value) => return whole(value, to),
            Err(_) => return Err(Fault::Failed),
        },
        (value @ (Value::Whole(_) | Value::Date(_)), Kind::Text) => Value::Text(value.plain()),
        (Value::Moment(seconds) | Value::Zoned(seconds), Kind::Date) => {
            Value::Date(seconds.div_euclid(86_400))
        }
        (Value::Moment(seconds), Kind::Clock) => Value::Clock(seconds.rem_euclid(86_400)),
        (value @ Value::Moment(_), Kind::Text) => Value::Text(value.plain().replace(' ', "T")),
        (Value::Zoned(seconds), Kind::Moment) => Value::Moment(seconds),
        (Value::Moment(seconds), Kind::Zoned) => Value::Zoned(seconds),
        (Value::Date(days), Kind::Moment) => Value::Moment(days * 86_400),
        _ => return unknown,
    })
}

fn like(text: &[u8], pattern: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'%', rest)) => (0..=text.len()).any(|start| like(&text[start..], rest)),
        Some((b'_', rest)) => !text.is_empty() && like(&text[1..], rest),
        Some((byte, rest)) => text.first() == Some(byte) && like(&text[1..], rest),
    }
}
