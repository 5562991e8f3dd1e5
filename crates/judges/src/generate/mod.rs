//! Programs made up from a number.
//!
//! The same number gives the same program, on every machine. In reading order: [`program`] puts a program together,
//! [`schema`] makes its tables and [`script`] what is done to them; [`shape`] chooses what a view is, of [`join`]s,
//! [`aggregate`]s, [`window`]s, [`subquery`]s, and what is in [`special`]; [`expression`] and [`value`] are what
//! these are made of.

mod aggregate;
mod expression;
mod join;
mod program;
mod schema;
mod script;
mod shape;
mod special;
mod subquery;
mod value;
mod window;

pub(crate) use program::{may_fail, program, reads};

use crate::query::{Expr, From, Item, Kind};

/// What can be read.
#[derive(Clone, Debug)]
struct Source {
    name: String,
    columns: Vec<(String, Kind)>,
    /// About how many rows it has.
    size: f64,
}

/// What is in sight of an expression: relations by their names there, with their columns.
type Sight = Vec<(String, Vec<(String, Kind)>)>;

/// Makes up queries over what can be read.
struct Maker {
    rng: fastrand::Rng,
    sources: Vec<Source>,
    /// How many names have been given.
    names: usize,
}

impl Maker {
    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.rng.usize(..bound)
    }

    /// True once in so many times.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn one_of<V: Clone>(&mut self, values: &[V]) -> V {
        values[self.below(values.len())].clone()
    }

    fn alias(&mut self) -> String {
        self.names += 1;
        format!("r{}", self.names)
    }

    /// A relation of at most so many rows, by a name of its own.
    fn relation(&mut self, most: f64) -> (From, Sight, f64) {
        let fitting: Vec<usize> =
            (0..self.sources.len()).filter(|source| self.sources[*source].size <= most).collect();
        // Tables come first, and are read more often.
        let place = match self.once_in(2) {
            true => self.one_of(&fitting),
            false => fitting[self.below(fitting.len().min(3))],
        };
        let source = self.sources[place].clone();
        let alias = self.alias();
        let sight = vec![(alias.clone(), source.columns)];
        (From::Relation(source.name, alias), sight, source.size)
    }

    /// A column of some type.
    fn column(&mut self, sight: &Sight, fits: impl Fn(Kind) -> bool) -> Option<Expr> {
        let columns: Vec<Expr> = sight
            .iter()
            .flat_map(|(alias, columns)| {
                columns.iter().map(|(name, kind)| Expr::Column(alias.clone(), name.clone(), *kind))
            })
            .filter(|column| fits(column.kind()))
            .collect();
        (!columns.is_empty()).then(|| self.one_of(&columns))
    }

    /// All columns of some types.
    fn columns(sight: &Sight, fits: impl Fn(Kind) -> bool) -> Vec<Expr> {
        let all = sight.iter().flat_map(|(alias, columns)| {
            columns.iter().map(|(name, kind)| Expr::Column(alias.clone(), name.clone(), *kind))
        });
        all.filter(|column| fits(column.kind())).collect()
    }
}

/// Expressions by the names c0, c1, and so on.
fn named(exprs: Vec<Expr>) -> Vec<Item> {
    let named = exprs.into_iter().enumerate();
    named.map(|(place, expr)| Item { expr, name: format!("c{place}") }).collect()
}

/// Whether values of a type have an order that all judges agree on.
fn sorts(kind: Kind) -> bool {
    !kind.is_nested()
}

/// Whether values of a type can be keys.
fn keys(kind: Kind) -> bool {
    kind != Kind::Map
}
