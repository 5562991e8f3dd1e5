//! Generating queries that compare floats in many ways, where NaN and -0.0 are among them.

use super::aggregate::{count, plain};
use super::{Maker, Sight, keys, named, sorts};
use crate::query::{
    Aggregate, Body, Bound, Distinct, Expr, Frame, From, Group, Join, JoinKind, Kind, Op, Query,
    Select, SetOperation, Units, Window,
};

impl Maker {
    /// Groups, ranks, distinct rows, joins or set operations of floats. `None` if no NaN is among them.
    pub(super) fn of_floats(&mut self) -> Option<(Query, f64)> {
        if !self.has_nan {
            return None;
        }
        let (from, sight, size) = self.relation_with(Kind::Real)?;
        let float = self.column(&sight, Kind::is_float)?;
        let filter = self.about_float(&float);
        let mut select = match self.below(15) {
            0..4 => self.groups_of_floats(from, &sight, float),
            4..8 => {
                let mut exprs = vec![float.clone()];
                exprs.extend(self.column(&sight, sorts));
                for window in self.windows_of_floats(&exprs) {
                    exprs.push(Expr::Window(Box::new(window)));
                }
                Select::of(named(exprs), from)
            }
            8..11 => {
                let mut exprs = vec![float];
                exprs.extend(self.column(&sight, sorts));
                let mut select = Select::of(named(exprs), from);
                select.distinct = Distinct::Rows;
                select
            }
            11 | 12 => {
                let (right, right_sight, _) = self.relation_with(Kind::Real)?;
                let there = self.column(&right_sight, Kind::is_float)?;
                let on = Expr::binary(float, self.one_of(&[Op::Equal, Op::Same]), there);
                let kind = self.one_of(&[JoinKind::Inner, JoinKind::Left, JoinKind::Full]);
                let items = self.items(&[sight, right_sight].concat(), 4);
                let is_distinct = self.once_in(2) && items.iter().all(|item| keys(item.kind()));
                let join = Join { kind, left: from, right, on: Some(on), using: Vec::new() };
                let mut select = Select::of(named(items), From::Join(Box::new(join)));
                if is_distinct {
                    select.distinct = Distinct::Rows;
                }
                select
            }
            _ => {
                let kind = float.kind();
                let (other, other_sight, _) = self.relation_with(kind)?;
                let there = self.column(&other_sight, |other| other == kind)?;
                let mut select = Select::of(named(vec![float]), from);
                select.filter = self.once_in(2).then_some(filter);
                let other = Query::select(Select::of(named(vec![there]), other));
                let operation = self.one_of(&[
                    SetOperation::Union,
                    SetOperation::Intersect,
                    SetOperation::Except,
                ]);
                let all = operation != SetOperation::Union && self.once_in(3);
                let left = Box::new(Query::select(select));
                let body = Body::Set(operation, all, left, Box::new(other));
                return Some((Query { with: Vec::new(), body, top: None }, size));
            }
        };
        select.filter = (!self.once_in(3)).then_some(filter);
        Some((Query::select(select), size))
    }

    /// A relation with a column of some type, and a new alias.
    fn relation_with(&mut self, kind: Kind) -> Option<(From, Sight, f64)> {
        let (source, _) = self.with_column(kind)?;
        let alias = self.alias();
        let sight = vec![(alias.clone(), source.columns)];
        Some((From::Relation(source.name, alias), sight, source.size))
    }

    /// IN, BETWEEN or a comparison.
    fn about_float(&mut self, float: &Expr) -> Expr {
        let kind = float.kind();
        let (a, b) = (self.constant(kind), self.constant(kind));
        let not = self.once_in(4);
        match self.below(5) {
            0 | 1 => {
                let list = vec![a, b, self.constant(kind)];
                Expr::In(Box::new(float.clone()), list, not)
            }
            2 | 3 => {
                let ordered =
                    matches!((&a, &b), (Expr::Literal(a, _), Expr::Literal(b, _)) if a <= b);
                let (low, high) = if ordered { (a, b) } else { (b, a) };
                Expr::Between(Box::new(float.clone()), Box::new(low), Box::new(high), not)
            }
            _ => Expr::binary(float.clone(), self.comparison(), a),
        }
    }

    fn groups_of_floats(&mut self, from: From, sight: &Sight, float: Expr) -> Select {
        let other = self.column(sight, Kind::is_float).unwrap_or_else(|| float.clone());
        let kind = other.kind();
        let distinct = Aggregate { distinct: true, ..plain("count", other.clone(), Kind::Big) };
        let sum = plain(self.one_of(&["sum", "avg"]), other.clone(), Kind::Real);
        let extreme = plain(self.one_of(&["min", "max"]), other, kind);
        let key = match self.once_in(3) {
            false => Some(float),
            true => self.column(sight, sorts),
        };
        let mut exprs: Vec<Expr> = key.iter().cloned().collect();
        for aggregate in [distinct, sum, extreme, count()] {
            exprs.push(Expr::Aggregate(Box::new(aggregate)));
        }
        let mut select = Select::of(named(exprs), from);
        select.group = key.map_or(Group::None, |key| Group::Keys(vec![key]));
        select
    }

    /// A rank and an aggregate over a range, both in the order of the first of these columns, which is a float.
    fn windows_of_floats(&mut self, shown: &[Expr]) -> [Window; 2] {
        let partition = match self.once_in(2) {
            true => vec![shown[shown.len() - 1].clone()],
            false => Vec::new(),
        };
        let window = |function, arguments, kind| Window {
            function,
            arguments,
            ignore_nulls: false,
            filter: None,
            partition: partition.clone(),
            order: Vec::new(),
            frame: None,
            kind,
        };
        let ranked = self.one_of(&["rank", "dense_rank", "percent_rank", "cume_dist"]);
        let kind =
            if ranked.contains("dense") || ranked == "rank" { Kind::Unsigned } else { Kind::Real };
        let mut rank = window(ranked, Vec::new(), kind);
        rank.order = vec![self.order(shown[0].clone())];
        let other = shown[shown.len() - 1].clone();
        let mut framed = match self.below(3) {
            0 => window("count", Vec::new(), Kind::Big),
            1 => window("min", vec![other.clone()], other.kind()),
            _ => window("max", vec![other.clone()], other.kind()),
        };
        framed.order = vec![self.order(shown[0].clone())];
        let start = self.one_of(&[Bound::Start, Bound::Preceding(2), Bound::Current]);
        let end = self.one_of(&[Bound::Current, Bound::Following(1), Bound::End]);
        framed.frame = Some(Frame { units: Units::Range, start, end });
        [rank, framed]
    }
}
