//! Evaluating FROM: relations, joins, time windows, elements of lists.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Fault, Name, Outcome, Relation, Row, Scope, World};
use crate::query::{Expr, From, Join, JoinKind, Op, Query, Recursion, Span, Value};

/// Rows, and the names of their columns.
pub(super) struct Rows {
    pub(super) columns: Vec<Name>,
    pub(super) rows: Vec<Row>,
}

/// The WITH queries in scope.
pub(super) type With<'a> = [(String, &'a Query)];

impl World<'_> {
    pub(super) fn from(
        &self,
        from: &From,
        with: &With<'_>,
        outer: Option<&Scope<'_>>,
    ) -> Outcome<Rows> {
        match from {
            From::Relation(name, alias) => self.relation(name, alias, with, outer),
            From::Derived(query, alias) => {
                Ok(Rows { columns: named(alias, query), rows: self.query(query, outer)? })
            }
            From::Join(join) => self.join(join, with, outer),
            From::Recursive(recursion, alias) => {
                let columns = named(alias, &recursion.base);
                Ok(Rows { columns, rows: self.recursion(recursion, outer)? })
            }
            From::Lateral(left, query, alias, keeps_left) => {
                let Rows { mut columns, rows } = self.from(left, with, outer)?;
                let own = named(alias, query);
                let mut joined = Vec::new();
                for row in rows {
                    let scope =
                        Scope { columns: &columns, row: &row, group: None, windows: &[], outer };
                    let mut found = self.query(query, Some(&scope))?;
                    if found.is_empty() && *keeps_left {
                        found.push(vec![Value::Null; own.len()]);
                    }
                    joined.extend(found.into_iter().map(|other| [row.clone(), other].concat()));
                }
                columns.extend(own);
                Ok(Rows { columns, rows: joined })
            }
            From::Windowed(name, alias, time, span) => {
                let rows = self.relation(name, alias, with, outer)?;
                windowed(rows, alias, time, span)
            }
            From::Unnested(name, alias, list, element, place, keeps_left) => {
                let Rows { mut columns, rows } = self.relation(name, alias, with, outer)?;
                let mut taken = Vec::new();
                for row in rows {
                    let scope =
                        Scope { columns: &columns, row: &row, group: None, windows: &[], outer };
                    let Some(value) = self.keep(self.value(list, &scope))? else { continue };
                    let values = if let Value::List(values) = value { values } else { Vec::new() };
                    if values.is_empty() && *keeps_left {
                        let nulls = vec![Value::Null; 1 + usize::from(place.is_some())];
                        taken.push([row.clone(), nulls].concat());
                    }
                    for (number, value) in values.into_iter().enumerate() {
                        let mut row = row.clone();
                        row.push(value);
                        row.extend(place.as_ref().map(|_| Value::Whole(number as i128 + 1)));
                        taken.push(row);
                    }
                }
                columns.push((alias.clone(), element.clone()));
                columns.extend(place.iter().map(|place| (alias.clone(), place.clone())));
                Ok(Rows { columns, rows: taken })
            }
        }
    }

    /// The rows of a recursion: the first ones, and round after round what the step makes of those that came last.
    fn recursion(&self, recursion: &Recursion, outer: Option<&Scope<'_>>) -> Outcome<Vec<Row>> {
        let Recursion { name, all, base, step } = recursion;
        let (mut rows, mut last) = (Vec::new(), self.query(base, outer)?);
        while !last.is_empty() {
            if !all {
                last.sort();
                last.dedup();
                last.retain(|row| !rows.contains(row));
            }
            self.work((rows.len() + last.len()) as u64)?;
            rows.extend(last.iter().cloned());
            let mut relations = self.relations.clone();
            let (columns, last_rows) = (base.columns(), Some(std::mem::take(&mut last)));
            relations.insert(name.clone(), Relation { columns, rows: last_rows });
            let world = World::new(&relations, self.now);
            world.patience.set(self.patience.get());
            last = world.query(step, outer)?;
            self.patience.set(world.patience.get());
            self.failures.set(self.failures.get() + world.failures.get());
        }
        Ok(rows)
    }

    fn relation(
        &self,
        name: &str,
        alias: &str,
        with: &With<'_>,
        outer: Option<&Scope<'_>>,
    ) -> Outcome<Rows> {
        if let Some((_, query)) = with.iter().find(|(other, _)| other == name) {
            return Ok(Rows { columns: named(alias, query), rows: self.query(query, outer)? });
        }
        let relation = self.relations.get(name).ok_or(Fault::Unknown("relation"))?;
        let rows = relation.rows.clone().ok_or(Fault::Unknown("what a view holds"))?;
        let columns = relation.columns.iter();
        let columns = columns.map(|(name, _)| (alias.to_owned(), name.clone())).collect();
        Ok(Rows { columns, rows })
    }

    fn join(&self, join: &Join, with: &With<'_>, outer: Option<&Scope<'_>>) -> Outcome<Rows> {
        let left = self.from(&join.left, with, outer)?;
        let right = self.from(&join.right, with, outer)?;
        let mut columns = left.columns.clone();
        columns.extend(right.columns.iter().cloned());
        let mut pairs = Vec::new();
        let mut left_found = vec![false; left.rows.len()];
        let mut right_found = vec![false; right.rows.len()];
        self.work((left.rows.len() * right.rows.len()) as u64)?;
        for (place, a) in left.rows.iter().enumerate() {
            let mut pair = a.clone();
            let mut nearest: Option<(Near<'_>, Row)> = None;
            for (other, b) in right.rows.iter().enumerate() {
                pair.truncate(a.len());
                pair.extend(b.iter().cloned());
                let scope =
                    Scope { columns: &columns, row: &pair, group: None, windows: &[], outer };
                let holds = match &join.on {
                    None => true,
                    Some(on) => self.keep(self.passes(on, &scope))? == Some(true),
                };
                if holds && join.kind.is_asof() {
                    let near = self.near(join.on.as_ref(), &scope, b)?;
                    if nearest.as_ref().is_none_or(|(other, _)| near > *other) {
                        nearest = Some((near, pair.clone()));
                    }
                } else if holds {
                    left_found[place] = true;
                    right_found[other] = true;
                    if !join.kind.is_filter() {
                        pairs.push(pair.clone());
                    }
                }
            }
            if let Some((_, pair)) = nearest {
                left_found[place] = true;
                pairs.push(pair);
            }
        }
        let chosen = |rows: &[Row], found: &[bool], with_partner: bool| -> Vec<Row> {
            let rows = rows.iter().zip(found);
            rows.filter(|(_, found)| **found == with_partner).map(|(row, _)| row.clone()).collect()
        };
        let one_side = |columns: Vec<Name>, rows| Ok(Rows { columns, rows });
        match join.kind {
            JoinKind::LeftSemi => {
                return one_side(left.columns, chosen(&left.rows, &left_found, true));
            }
            JoinKind::LeftAnti => {
                return one_side(left.columns, chosen(&left.rows, &left_found, false));
            }
            JoinKind::RightSemi => {
                return one_side(right.columns, chosen(&right.rows, &right_found, true));
            }
            JoinKind::RightAnti => {
                return one_side(right.columns, chosen(&right.rows, &right_found, false));
            }
            _ => {}
        }
        let width = left.columns.len();
        if matches!(join.kind, JoinKind::Left | JoinKind::Full | JoinKind::LeftAsof) {
            for mut row in chosen(&left.rows, &left_found, false) {
                row.resize(columns.len(), Value::Null);
                pairs.push(row);
            }
        }
        if matches!(join.kind, JoinKind::Right | JoinKind::Full) {
            for row in chosen(&right.rows, &right_found, false) {
                let mut pair = vec![Value::Null; width];
                pair.extend(row);
                pairs.push(pair);
            }
        }
        Ok(Rows { columns, rows: pairs })
    }

    /// How near the right row of an ASOF join is: the nearest is the greatest.
    fn near<'a>(&self, on: Option<&Expr>, pair: &Scope<'_>, right: &'a Row) -> Outcome<Near<'a>> {
        let mut time = on.ok_or(Fault::Unknown("the condition of an ASOF join"))?;
        while let Expr::Binary(_, Op::And, last) = time {
            time = last;
        }
        let Expr::Binary(_, op, time) = time else {
            return Err(Fault::Unknown("the condition of an ASOF join"));
        };
        let at = self.value(time, pair)?;
        match op {
            Op::GreaterEqual | Op::Greater => Ok((Ok(at), right)),
            Op::LessEqual | Op::Less => Ok((Err(Reverse(at)), right)),
            _ => Err(Fault::Unknown("the condition of an ASOF join")),
        }
    }
}

/// How near a row is: its distance, and then the row itself.
type Near<'a> = (Result<Value, Reverse<Value>>, &'a Row);

fn named(alias: &str, query: &Query) -> Vec<Name> {
    query.columns().into_iter().map(|(name, _)| (alias.to_owned(), name)).collect()
}

fn windowed(rows: Rows, alias: &str, time: &str, span: &Span) -> Outcome<Rows> {
    let Rows { mut columns, rows } = rows;
    let place = |name: &str| {
        let found = columns.iter().position(|column| column.1 == name);
        found.ok_or(Fault::Unknown("column"))
    };
    let time = place(time)?;
    let moment = |row: &Row| match row[time] {
        Value::Moment(moment) => Some(moment),
        _ => None,
    };
    let mut windows = Vec::new();
    let mut put = |row: &Row, start: i64, end: i64| {
        let mut row = row.clone();
        row.extend([Value::Moment(start), Value::Moment(end)]);
        windows.push(row);
    };
    match span {
        Span::Tumble(size, offset) => {
            for row in &rows {
                if let Some(at) = moment(row) {
                    let start = at - (at - offset).rem_euclid(*size);
                    put(row, start, start + size);
                }
            }
        }
        Span::Hop(slide, size) => {
            for row in &rows {
                let Some(at) = moment(row) else { continue };
                let mut start = at - at.rem_euclid(*slide);
                while start + size > at {
                    put(row, start, start + size);
                    start -= slide;
                }
            }
        }
        Span::Session(key, gap) => {
            let key = place(key)?;
            let mut sessions: BTreeMap<Value, Vec<(i64, &Row)>> = BTreeMap::new();
            for row in &rows {
                if let Some(at) = moment(row) {
                    sessions.entry(row[key].clone()).or_default().push((at, row));
                }
            }
            for mut rows in sessions.into_values() {
                rows.sort_by_key(|(at, _)| *at);
                for session in rows.chunk_by(|(a, _), (b, _)| b - a < *gap) {
                    let (start, end) = (session[0].0, session[session.len() - 1].0 + gap);
                    session.iter().for_each(|(_, row)| put(row, start, end));
                }
            }
        }
    }
    for name in ["window_start", "window_end"] {
        columns.push((alias.to_owned(), name.to_owned()));
    }
    Ok(Rows { columns, rows: windows })
}
