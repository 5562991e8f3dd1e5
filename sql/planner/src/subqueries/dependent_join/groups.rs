//! Aggregates for all keys.

use std::sync::Arc;

use datafusion_common::tree_node::TreeNode;
use datafusion_common::{Column, ExprSchema, JoinType, Result};
use datafusion_expr::logical_plan::Aggregate;
use datafusion_expr::{Expr, LogicalPlan, lit, when};

use super::domain::same_keys;
use super::references::{references_of, replaced_all};
use super::{Dependence, Key, Keyed};
use crate::fault::{self, Fault};

impl Dependence<'_> {
    /// An aggregate, by the keys, too.
    pub(super) fn grouped(&self, aggregate: &Aggregate) -> Result<Option<Keyed>> {
        let is_set = |group: &Expr| matches!(group, Expr::GroupingSet(_));
        if aggregate.group_expr.iter().any(is_set) || aggregate.aggr_expr.iter().any(is_of_outside)
        {
            return Ok(None);
        }
        let expressions = aggregate.group_expr.iter().chain(&aggregate.aggr_expr);
        let needed = references_of(expressions, self.outer.schema())?;
        let Some(Keyed { plan, keys }) = self.input(&aggregate.input, &needed)? else {
            return Ok(None);
        };
        let columns = aggregate.schema.columns();
        let (groups, results) = columns.split_at(aggregate.group_expr.len());
        let mut by: Vec<Expr> = keys.iter().map(Key::value).collect();
        let mut places = Vec::with_capacity(columns.len());
        for group in replaced_all(&aggregate.group_expr, &keys)? {
            places.push(by.iter().position(|other| *other == group).unwrap_or(by.len()));
            if places.last() == Some(&by.len()) {
                by.push(group);
            }
        }
        places.extend((0..results.len()).map(|result| by.len() + result));
        let calls = replaced_all(&aggregate.aggr_expr, &keys)?;
        let grouped = Aggregate::try_new(Arc::new(plan), by, calls)?;
        let columns_now = grouped.schema.columns();
        let found: Vec<Column> =
            places.into_iter().map(|place| columns_now[place].clone()).collect();
        let key_columns = keys.iter().zip(columns_now);
        let keys: Vec<Key> =
            key_columns.map(|(key, column)| Key { column, ..key.clone() }).collect();
        let rows = self.named(
            LogicalPlan::Aggregate(grouped),
            found.into_iter().map(Expr::Column),
            groups.iter().chain(results),
            keys,
        )?;
        match aggregate.group_expr.is_empty() {
            true => self.with_empty_groups(rows, aggregate),
            false => Ok(Some(rows)),
        }
    }

    /// An aggregate without GROUP BY has a result for keys without rows, too.
    fn with_empty_groups(&self, rows: Keyed, aggregate: &Aggregate) -> Result<Option<Keyed>> {
        let outer: Vec<Column> = rows.keys.iter().map(|key| key.outer.clone()).collect();
        let Some(domain) = self.domain(&outer)? else { return Ok(None) };
        let condition = same_keys(&domain.keys, &rows.keys);
        let columns = rows.columns();
        let joined = self.joined(rows.plan, domain, JoinType::Left, condition, columns.clone())?;
        let Some(Keyed { plan, keys }) = joined else { return Ok(None) };
        let mut results = Vec::with_capacity(columns.len());
        for (column, call) in columns.iter().zip(&aggregate.aggr_expr) {
            let field = aggregate.schema.field_from_column(column)?;
            let result = Expr::Column(column.clone());
            let of_nothing = match call.clone().unalias() {
                Expr::AggregateFunction(call) => call.func.default_value(field.data_type())?,
                _ => return Ok(None),
            };
            // Those that are not NULL over no rows are never NULL.
            results.push(match of_nothing.is_null() || fault::armed(Fault::CountNothingAsNull) {
                true => result,
                false => when(result.clone().is_null(), lit(of_nothing)).otherwise(result)?,
            });
        }
        self.named(plan, results, &columns, keys).map(Some)
    }
}

/// Whether the arguments of an aggregate name columns outside and no others. In SQL it is an aggregate of the query outside,
/// which the planner does not know.
fn is_of_outside(call: &Expr) -> bool {
    let Expr::AggregateFunction(call) = call.clone().unalias() else { return false };
    let has = |is: fn(&Expr) -> bool| {
        call.params
            .args
            .iter()
            .any(|argument| argument.exists(|part| Ok(is(part))).unwrap_or(false))
    };
    has(|part| matches!(part, Expr::OuterReferenceColumn(..)))
        && !has(|part| matches!(part, Expr::Column(_)))
}
