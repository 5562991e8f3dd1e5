//! Evaluating window functions.

use super::aggregate::{ordered, summarise};
use super::{Fault, Outcome, Scope, World};
use crate::query::{Bound, Frame, Units, Value, Window};

impl World<'_> {
    /// The values of a window function for each of these rows.
    pub(super) fn windowed(&self, window: &Window, scopes: &[Scope<'_>]) -> Outcome<Vec<Value>> {
        let all = |exprs: &[crate::query::Expr], scope: &Scope<'_>| {
            exprs.iter().map(|expr| self.value(expr, scope)).collect::<Outcome<Vec<Value>>>()
        };
        let mut rows = Vec::new();
        for (place, scope) in scopes.iter().enumerate() {
            let order = window.order.iter().map(|order| self.value(&order.expr, scope));
            let filtered = match &window.filter {
                Some(filter) => self.truth(filter, scope)? == Some(true),
                None => true,
            };
            rows.push(Member {
                place,
                partition: all(&window.partition, scope)?,
                order: order.collect::<Outcome<_>>()?,
                arguments: all(&window.arguments, scope)?,
                filtered,
            });
        }
        rows.sort_by(|a, b| {
            a.partition.cmp(&b.partition).then_with(|| ordered(&window.order, &a.order, &b.order))
        });
        let mut values = vec![Value::Null; scopes.len()];
        for partition in rows.chunk_by(|a, b| a.partition == b.partition) {
            self.work((partition.len() * partition.len()) as u64)?;
            for (place, row) in partition.iter().enumerate() {
                values[row.place] = value(window, partition, place)?;
            }
        }
        Ok(values)
    }
}

struct Member {
    place: usize,
    partition: Vec<Value>,
    order: Vec<Value>,
    arguments: Vec<Value>,
    filtered: bool,
}

fn value(window: &Window, rows: &[Member], place: usize) -> Outcome<Value> {
    let size = rows.len() as i128;
    let peer = |row: &&Member| ordered(&window.order, &row.order, &rows[place].order).is_eq();
    let first = rows.iter().take_while(|row| !peer(row)).count();
    let last = first + rows.iter().filter(peer).count();
    let steps =
        rows[..first].chunk_by(|a, b| ordered(&window.order, &a.order, &b.order).is_eq()).count();
    let neighbour = |forwards: bool| {
        let arguments = &rows[place].arguments;
        let distance = match arguments.get(1) {
            Some(Value::Whole(distance)) => *distance,
            _ => 1,
        };
        let target = place as i128 + if forwards { distance } else { -distance };
        let target = usize::try_from(target).ok().and_then(|target| rows.get(target));
        match target {
            Some(row) => row.arguments[0].clone(),
            None => arguments.get(2).cloned().unwrap_or(Value::Null),
        }
    };
    Ok(match window.function {
        "row_number" => Value::Whole(place as i128 + 1),
        "rank" => Value::Whole(first as i128 + 1),
        "dense_rank" => Value::Whole(steps as i128 + 1),
        "percent_rank" if size == 1 => Value::Float(0.0),
        "percent_rank" => Value::Float(first as f64 / (size - 1) as f64),
        "cume_dist" => Value::Float(last as f64 / size as f64),
        "ntile" => {
            let Some(Value::Whole(tiles)) = rows[place].arguments.first() else {
                return Err(Fault::Unknown("NTILE"));
            };
            let (each, longer) = (size / tiles, size % tiles);
            let place = place as i128;
            let tile = match place < longer * (each + 1) {
                true => place / (each + 1),
                false => longer + (place - longer * (each + 1)) / each.max(1),
            };
            Value::Whole(tile + 1)
        }
        "lag" => neighbour(false),
        "lead" => neighbour(true),
        function => {
            let frame = window.frame.unwrap_or(Frame {
                units: Units::Range,
                start: Bound::Start,
                end: if window.order.is_empty() { Bound::End } else { Bound::Current },
            });
            let (start, end) = reach(window, frame, rows, place, (first, last))?;
            let inside = rows[start..end.max(start)].iter();
            let mut inputs: Vec<Vec<Value>> =
                inside.filter(|row| row.filtered).map(|row| row.arguments.clone()).collect();
            if window.ignore_nulls {
                inputs.retain(|input| !input[0].is_null());
            }
            summarise(function, window.kind, &inputs)?
        }
    })
}

/// The bounds of a frame: its first row, and the row after its last.
fn reach(
    window: &Window,
    frame: Frame,
    rows: &[Member],
    place: usize,
    (first, last): (usize, usize),
) -> Outcome<(usize, usize)> {
    let clamp = |place: i64| place.clamp(0, rows.len() as i64) as usize;
    let place = place as i64;
    let groups = |place: usize| {
        rows[..place].chunk_by(|a, b| ordered(&window.order, &a.order, &b.order).is_eq()).count()
            as i64
    };
    let starts: Vec<usize> = {
        let mut starts = vec![0];
        let chunks = rows.chunk_by(|a, b| ordered(&window.order, &a.order, &b.order).is_eq());
        for chunk in chunks {
            starts.push(starts[starts.len() - 1] + chunk.len());
        }
        starts
    };
    let group_start = |group: i64| starts[group.clamp(0, starts.len() as i64 - 1) as usize];
    let edge = |bound: Bound, is_end: bool| -> Outcome<usize> {
        let step = i64::from(is_end);
        Ok(match (frame.units, bound) {
            (_, Bound::Start) => 0,
            (_, Bound::End) => rows.len(),
            (Units::Rows, Bound::Preceding(rows)) => clamp(place - i64::from(rows) + step),
            (Units::Rows, Bound::Current) => clamp(place + step),
            (Units::Rows, Bound::Following(rows)) => clamp(place + i64::from(rows) + step),
            (Units::Groups, Bound::Preceding(back)) => {
                group_start(groups(first) - i64::from(back) + step)
            }
            (Units::Groups, Bound::Following(ahead)) => {
                group_start(groups(first) + i64::from(ahead) + step)
            }
            (_, Bound::Current) => {
                if is_end {
                    last
                } else {
                    first
                }
            }
            (Units::Range, Bound::Preceding(by)) => {
                by_value(window, rows, place, -f64::from(by), is_end)?
            }
            (Units::Range, Bound::Following(by)) => {
                by_value(window, rows, place, f64::from(by), is_end)?
            }
        })
    };
    Ok((edge(frame.start, false)?, edge(frame.end, true)?))
}

/// The number of rows before the bound of a RANGE frame over numbers.
fn by_value(window: &Window, rows: &[Member], place: i64, by: f64, is_end: bool) -> Outcome<usize> {
    let [order] = &window.order[..] else {
        return Err(Fault::Unknown("a RANGE over several columns"));
    };
    let own = &rows[place as usize].order[0];
    let by = if order.descending { -by } else { by };
    let target = match own {
        Value::Null => Value::Null,
        value => Value::Float(value.number().ok_or(Fault::Unknown("a RANGE"))? + by),
    };
    let target = [target];
    let before = rows.iter().take_while(|row| {
        let found = ordered(&window.order, &row.order, &target);
        found.is_lt() || is_end && found.is_eq()
    });
    Ok(before.count())
}
