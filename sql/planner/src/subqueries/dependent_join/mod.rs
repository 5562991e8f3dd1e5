//! Dependent joins, made independent.
//!
//! A correlated subquery, or LATERAL, is evaluated once for each row outside of it. Rows outside that agree in the columns
//! to which it refers have the same result, so it is enough to evaluate it for the distinct values of these columns: its
//! *domain*.
//!
//! ```text
//! for each row of t: (SELECT SUM(n) FROM s WHERE s.n > t.n)
//!
//!   join on t.n IS NOT DISTINCT FROM key          the rows outside, with their results
//!   ├─ t
//!   └─ aggregate SUM(s.n) by key                  one result for each value of the domain
//!      └─ join on s.n > key
//!         ├─ domain: SELECT DISTINCT t.n AS key   instead of each row of t
//!         └─ s
//! ```
//!
//! The domain moves down to where it is referred to; each operator above it carries its columns, the *keys*, along, and keeps
//! the rows of different keys apart: an aggregate groups by them, a window has them in its partitions, LIMIT counts for
//! each of them, and joins and set operations compare them. This is the unnesting of arbitrary queries by Neumann and Kemper
//! (BTW 2015).
//!
//! - [`references`] finds and replaces references to columns outside.
//! - [`domain`] makes domains.
//! - [`keyed`] moves them through operators, [`filter`] through conditions, where equalities make domains needless, [`join`]
//!   through joins, [`recursion`] through recursions, and [`groups`] through aggregates, which have a result for keys without rows.
mod domain;
mod filter;
mod groups;
mod join;
mod keyed;
mod recursion;
mod references;

use datafusion_common::alias::AliasGenerator;
use datafusion_common::{Column, Result};
use datafusion_expr::utils::conjunction;
use datafusion_expr::{Expr, LogicalPlan, Operator, binary_expr, lit};

use self::recursion::Recurring;
use self::references::references;
pub(crate) use self::references::refers_outside;

/// A column that tells the rows for different values of a column outside apart.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The column outside.
    pub(crate) outer: Column,
    /// The column that has its value.
    pub(crate) column: Column,
    /// Whether it may be NULL, for the rows whose column outside is NULL.
    pub(crate) has_nulls: bool,
}

impl Key {
    /// Its value in a row.
    pub(crate) fn value(&self) -> Expr {
        Expr::Column(self.column.clone())
    }
}

/// The condition that two columns have the same values, for each pair; a value may be NULL if the pair says so.
///
/// If one of them may be NULL, all are compared as if they were: a join has keys that are equal, or keys that are not
/// distinct, and no mixture.
pub(crate) fn same_values(pairs: &[(&Column, &Column, bool)]) -> Vec<Expr> {
    let have_nulls = pairs.iter().any(|(_, _, has_nulls)| *has_nulls);
    let is_equal = if have_nulls { Operator::IsNotDistinctFrom } else { Operator::Eq };
    let pairs = pairs.iter();
    let column = |column: &Column| Expr::Column(column.clone());
    pairs.map(|(left, right, _)| binary_expr(column(left), is_equal, column(right))).collect()
}

/// The condition that a row is for one outside, by its keys.
pub(crate) fn is_for(keys: &[Key]) -> Vec<Expr> {
    let pairs = keys.iter().map(|key| (&key.outer, &key.column, key.has_nulls));
    same_values(&pairs.collect::<Vec<_>>())
}

/// The condition that all of these conditions are true.
fn all_of(conditions: impl IntoIterator<Item = Expr>) -> Expr {
    conjunction(conditions).unwrap_or_else(|| lit(true))
}

/// The rows of a plan for all values of the columns outside to which it refers.
#[derive(Clone, Debug)]
pub(crate) struct Keyed {
    /// Has the columns of the plan, then the keys.
    pub(crate) plan: LogicalPlan,
    /// One for each column outside to which the plan refers.
    pub(crate) keys: Vec<Key>,
}

impl Keyed {
    /// The columns of the plan without the keys.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let mut columns = self.plan.schema().columns();
        columns.truncate(columns.len() - self.keys.len());
        columns
    }
}

/// The rows of `plan` for all rows of `outer`; `None` if it has an operator that cannot keep them apart.
///
/// References to columns that `outer` does not have stay: they are to a query further out.
pub(crate) fn keyed(
    names: &AliasGenerator,
    plan: &LogicalPlan,
    outer: &LogicalPlan,
) -> Result<Option<Keyed>> {
    Dependence { names, outer, recurring: None }.keyed(plan)
}

/// Whether the plan refers to a column of `outer`.
pub(crate) fn depends_on(plan: &LogicalPlan, outer: &LogicalPlan) -> Result<bool> {
    Ok(!references(plan, outer.schema())?.is_empty())
}

/// The rows on which a plan depends.
struct Dependence<'a> {
    names: &'a AliasGenerator,
    outer: &'a LogicalPlan,
    /// The recursion in whose step the plan is, if its rows have keys.
    recurring: Option<Recurring>,
}
