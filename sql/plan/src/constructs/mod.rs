//! Where the constructs of views are in their texts.
//!
//! The optimizer moves, merges and copies operators, and drops the positions that they had. So a construct of the final plan
//! is sought in the text by what it is made of, and counts as found if there is no doubt: nothing else in the texts, of the
//! view and of those that are expanded in it, is like it.
//!
//! `reader` goes through a text, `names` finds the parts of its expressions.
mod names;
mod reader;

use std::collections::BTreeSet;
use std::fmt;

use alluvium_sql_syntax::error::Position;
use alluvium_sql_syntax::stack::with_room;
use alluvium_sql_syntax::statement::{StatementKind, parse};
use alluvium_sql_syntax::walk::walk;

use self::reader::Reader;
use crate::bounds::{Parts, Subject};

/// The text of a view's definition.
#[derive(Clone, Copy, Debug)]
pub struct ViewText<'a> {
    /// The view.
    pub name: &'a str,
    /// The statement that created it.
    pub text: &'a str,
}

/// A place in the text of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The view, if it is not the one that is explained.
    pub view: Option<String>,
    /// The position in the statement that created it.
    pub position: Position,
}

impl fmt::Display for Spot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.position;
        write!(formatter, "line {line}, column {column}")?;
        match &self.view {
            Some(view) => write!(formatter, " of {view}"),
            None => Ok(()),
        }
    }
}

/// The clause that an operator with state stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    /// GROUP BY, with the names of its keys, or aggregates without it.
    Group(Vec<String>),
    /// DISTINCT, or UNION without ALL.
    Distinct,
    /// OVER or DISTINCT ON, with the names of the keys; LIMIT without keys.
    Partition(Vec<String>),
    /// A join, with the names of the columns that are equal.
    Join(Vec<(String, String)>),
    /// INTERSECT or EXCEPT.
    Set(&'static str),
}

impl Clause {
    /// Its name, for people.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Group(keys) if keys.is_empty() => "the aggregates",
            Self::Group(_) => "GROUP BY",
            Self::Distinct => "DISTINCT",
            Self::Partition(keys) if keys.is_empty() => "LIMIT or OVER",
            Self::Partition(_) => "PARTITION BY",
            Self::Join(_) => "the join",
            Self::Set(name) => name,
        }
    }
}

/// The constructs of a view's text, and of the texts of the views that are expanded in it.
#[derive(Debug, Default)]
pub(crate) struct Constructs {
    clauses: Vec<(Clause, Spot)>,
    /// Equalities of columns, by their names, and other conditions of joins.
    equalities: Vec<(String, String, Spot)>,
    joins: Vec<Spot>,
    /// References to columns, with the relations that may have them.
    columns: Vec<(BTreeSet<String>, String, Spot)>,
    relations: Vec<(String, Spot)>,
    expressions: Vec<(Parts, Spot)>,
}

impl Constructs {
    /// The constructs of these texts, of which the first is that of the view itself.
    pub(crate) fn of(texts: &[ViewText<'_>]) -> Self {
        let mut constructs = Self::default();
        for (number, text) in texts.iter().enumerate() {
            let Some(Ok(statement)) = parse(text.text).next() else { continue };
            let found = with_room(statement.depth, move || {
                let StatementKind::CreateView(view) = statement.kind else { return None };
                let view_name = (number > 0).then(|| text.name.to_owned());
                let mut read = Reader::of(view_name);
                walk(view.query.as_ref(), &mut read).ok()?;
                Some(read.finish())
            });
            constructs.add(found.unwrap_or_default());
        }
        constructs
    }

    fn add(&mut self, other: Self) {
        self.clauses.extend(other.clauses);
        self.equalities.extend(other.equalities);
        self.joins.extend(other.joins);
        self.columns.extend(other.columns);
        self.relations.extend(other.relations);
        self.expressions.extend(other.expressions);
    }

    /// Where a clause is.
    pub(crate) fn clause(&self, clause: &Clause) -> Option<&Spot> {
        if let Clause::Join(on) = clause {
            let is_of = |(one, other, _): &&(String, String, Spot)| {
                on.iter().any(|(l, r)| l == one && r == other || l == other && r == one)
            };
            let equal = self.equalities.iter().filter(is_of).map(|(.., spot)| spot);
            return only(equal).or_else(|| only(self.joins.iter()));
        }
        let alike = |other: &Clause| match (clause, other) {
            (Clause::Group(_), Clause::Group(_)) => true,
            (Clause::Partition(keys), Clause::Partition(others)) => {
                keys.is_empty() == others.is_empty()
            }
            (one, other) => one == other,
        };
        let named = |other: &Clause| match (clause, other) {
            (Clause::Group(keys), Clause::Group(others))
            | (Clause::Partition(keys), Clause::Partition(others)) => {
                keys.len() == others.len()
                    && others.iter().all(|key| key.is_empty() || keys.contains(key))
            }
            _ => false,
        };
        let of = |is: &dyn Fn(&Clause) -> bool| {
            only(self.clauses.iter().filter(|(other, _)| is(other)).map(|(_, spot)| spot))
        };
        of(&alike).or_else(|| of(&named))
    }

    /// Where the subject of a reason is, if it is not the clause.
    pub(crate) fn subject(&self, subject: &Subject) -> Option<&Spot> {
        match subject {
            Subject::Clause => None,
            Subject::Column { relation, column } => {
                let is_it = |(relations, name, _): &&(BTreeSet<String>, String, Spot)| {
                    name == column && relations.len() == 1 && relations.contains(relation)
                };
                let named = self.columns.iter().find(is_it).map(|(.., spot)| spot);
                let of_relation = self.relations.iter().filter(|(name, _)| name == relation);
                named.or_else(|| only(of_relation.map(|(_, spot)| spot)))
            }
            Subject::Expression(parts) => {
                let alike = self.expressions.iter().filter(|(other, _)| other == parts);
                only(alike.map(|(_, spot)| spot))
            }
        }
    }
}

/// The only item.
fn only<'a>(mut items: impl Iterator<Item = &'a Spot>) -> Option<&'a Spot> {
    let first = items.next()?;
    items.all(|other| other == first).then_some(first)
}
