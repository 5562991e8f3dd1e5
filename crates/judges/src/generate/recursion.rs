//! Generating recursions: WITH RECURSIVE over the rows of a relation, which is a graph by two of its columns.

use super::{Maker, Sight, keys, named, sorts};
use crate::query::{Expr, From, Kind, Op, Query, Recursion, Select};

/// The rounds after which a recursion by UNION ALL ends.
const ROUNDS: i64 = 3;

impl Maker {
    /// Rows of a recursion, or counts of them. `None` if no relation has two columns of one type.
    pub(super) fn recursive(&mut self) -> Option<(Query, f64)> {
        let (from, sight, _) = self.relation(30.0);
        let ends = self.ends(&sight)?;
        let (steps, step_sight, _) = self.relation(30.0);
        let (start, finish) = self.ends_of(&step_sight, ends.kind())?;
        let (name, alias, all) = (self.alias(), self.alias(), self.once_in(3));
        let number = self.column(&sight, |kind| kind == Kind::Big || kind == Kind::Integer);
        // The value that each row of a recursion by UNION takes along, and one by UNION ALL counts.
        let along = match all {
            true => Expr::Cast(Box::new(Expr::whole(0)), Kind::Big, false),
            false => Expr::Cast(Box::new(number?), Kind::Big, false),
        };
        let mut base = Select::of(named(vec![ends.clone(), along]), from);
        if self.once_in(2) {
            base.filter = Some(self.condition(&sight, 0));
        }
        let column = |name: &str, kind| Expr::Column(alias.clone(), name.to_owned(), kind);
        let (place, along) = (column("c0", ends.kind()), column("c1", Kind::Big));
        let next = match all {
            true => Expr::Cast(
                Box::new(Expr::binary(along.clone(), Op::Add, Expr::whole(1))),
                Kind::Big,
                false,
            ),
            false => along.clone(),
        };
        let met = crate::query::Join {
            kind: crate::query::JoinKind::Inner,
            left: From::Relation(name.clone(), alias.clone()),
            right: steps,
            on: Some(Expr::binary(start, Op::Equal, place)),
            using: Vec::new(),
        };
        let mut step = Select::of(named(vec![finish, next]), From::Join(Box::new(met)));
        if all {
            step.filter = Some(Expr::binary(along, Op::Less, Expr::whole(ROUNDS)));
        } else if self.once_in(3) {
            step.filter = Some(self.condition(&step_sight, 0));
        }
        let (base, step) = (Query::select(base), Query::select(step));
        let columns = base.columns();
        let recursion = Recursion { name, all, base, step };
        let alias = self.alias();
        let sight: Sight = vec![(alias.clone(), columns)];
        let from = From::Recursive(Box::new(recursion), alias);
        match self.below(3) {
            0 => Some((self.grouped(from, &sight, false), 10.0)),
            1 => {
                let (other, mut both, _) = self.relation(20.0);
                let key = self.ends_of(&both, ends.kind())?.0;
                let place = Expr::Column(sight[0].0.clone(), "c0".to_owned(), ends.kind());
                both.extend(sight);
                let join = crate::query::Join {
                    kind: crate::query::JoinKind::Left,
                    left: other,
                    right: from,
                    on: Some(Expr::binary(key, Op::Equal, place)),
                    using: Vec::new(),
                };
                let items = self.items(&both, 4);
                let from = From::Join(Box::new(join));
                Some((Query::select(Select::of(named(items), from)), 60.0))
            }
            _ => {
                let items = self.items(&sight, 3);
                Some((Query::select(Select::of(named(items), from)), 40.0))
            }
        }
    }

    /// A column by which rows can lead to each other.
    fn ends(&mut self, sight: &Sight) -> Option<Expr> {
        self.column(sight, can_lead)
    }

    /// Two columns of a type, perhaps one twice.
    fn ends_of(&mut self, sight: &Sight, kind: Kind) -> Option<(Expr, Expr)> {
        Some((
            self.column(sight, |other| other == kind)?,
            self.column(sight, |other| other == kind)?,
        ))
    }
}

/// Whether values of a type are equal in the same cases to all judges.
fn can_lead(kind: Kind) -> bool {
    sorts(kind) && keys(kind) && kind != Kind::Real
}
