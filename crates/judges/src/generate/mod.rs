//! Generating programs from a seed.
//!
//! The same seed and number yield the same program on every machine. In reading order: [`program`] assembles a
//! program, [`schema`] generates its tables, and [`script`] the changes to them. [`shape`] chooses the shape of a
//! view from [`join`], [`aggregate`], [`pivot`], [`window`], [`subquery`], [`correlated`], [`timed`], [`floats`], [`times`], [`threshold`], [`recursion`] and [`special`], which use [`expression`] and
//! [`value`].

mod aggregate;
mod correlated;
mod expression;
mod floats;
mod join;
mod pivot;
mod program;
mod recursion;
mod schema;
mod script;
mod shape;
mod special;
mod subquery;
mod threshold;
mod timed;
mod times;
mod value;
mod window;

pub(crate) use program::{may_fail, program, reads};

use crate::query::{Expr, From, Item, Kind};

/// A relation that queries can read.
#[derive(Clone, Debug)]
struct Source {
    name: String,
    columns: Vec<(String, Kind)>,
    /// The expected number of rows.
    size: f64,
    /// The column that has lateness.
    time: Option<(String, Kind)>,
    /// The columns of the primary key.
    key: Vec<(String, Kind)>,
}

/// The relations that an expression can refer to, by alias, with their columns.
type Sight = Vec<(String, Vec<(String, Kind)>)>;

/// Generates queries over sources.
struct Maker {
    rng: fastrand::Rng,
    sources: Vec<Source>,
    /// The number of names generated so far.
    names: usize,
    /// The number of transactions generated so far.
    transactions: usize,
    /// The latest times in tables that have lateness, by place, as of the last transaction.
    latest: Vec<Option<i64>>,
    /// Whether there are NaN and -0.0 among the floats. SQLite and DataFusion cannot judge them.
    has_nan: bool,
}

impl Maker {
    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.rng.usize(..bound)
    }

    /// True once in `times`, on average.
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

    /// A relation of at most `most` rows, with a new alias.
    fn relation(&mut self, most: f64) -> (From, Sight, f64) {
        let fitting: Vec<usize> =
            (0..self.sources.len()).filter(|source| self.sources[*source].size <= most).collect();
        // Tables come first and are drawn more often.
        let place = match self.once_in(2) {
            true => self.one_of(&fitting),
            false => fitting[self.below(fitting.len().min(3))],
        };
        let source = self.sources[place].clone();
        let alias = self.alias();
        let sight = vec![(alias.clone(), source.columns)];
        (From::Relation(source.name, alias), sight, source.size)
    }

    /// A random column of a type that `fits`.
    fn column(&mut self, sight: &Sight, fits: impl Fn(Kind) -> bool) -> Option<Expr> {
        let columns: Vec<Expr> = sight
            .iter()
            .flat_map(|(alias, columns)| {
                columns.iter().map(|(name, kind)| Expr::Column(alias.clone(), name.clone(), *kind))
            })
            .filter(|column| fits(column.kind()))
            .collect();
        if self.has_nan && self.once_in(5) {
            let floats: Vec<Expr> =
                columns.iter().filter(|column| column.kind().is_float()).cloned().collect();
            if !floats.is_empty() {
                return Some(self.one_of(&floats));
            }
        }
        (!columns.is_empty()).then(|| self.one_of(&columns))
    }

    /// All columns of a type that `fits`.
    fn columns(sight: &Sight, fits: impl Fn(Kind) -> bool) -> Vec<Expr> {
        let all = sight.iter().flat_map(|(alias, columns)| {
            columns.iter().map(|(name, kind)| Expr::Column(alias.clone(), name.clone(), *kind))
        });
        all.filter(|column| fits(column.kind())).collect()
    }
}

/// Names the expressions c0, c1, and so on.
fn named(exprs: Vec<Expr>) -> Vec<Item> {
    let named = exprs.into_iter().enumerate();
    named.map(|(place, expr)| Item { expr, name: format!("c{place}") }).collect()
}

/// Whether all judges sort values of a type in the same order.
fn sorts(kind: Kind) -> bool {
    !kind.is_nested()
}

/// Whether values of a type can be keys.
fn keys(kind: Kind) -> bool {
    kind != Kind::Map
}
