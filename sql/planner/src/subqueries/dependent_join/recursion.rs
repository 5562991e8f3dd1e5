//! Recursions of rows for all keys: each row has the keys of the row from which its step has made it.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{Column, ExprSchema, Result};
use datafusion_expr::logical_plan::{RecursiveQuery, TableScan};
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableSource};

use super::keyed::in_order;
use super::references::references;
use super::{Dependence, Key, Keyed};
use crate::statements::recursion::{WorkTable, work_table};

/// A recursion whose rows have keys, within its step.
pub(super) struct Recurring {
    name: String,
    keys: Vec<Key>,
}

impl Dependence<'_> {
    /// The columns outside by which the rows of a plan are told apart: those to which it refers, and those of a recursion that it reads.
    pub(super) fn outside(&self, plan: &LogicalPlan) -> Result<Vec<Column>> {
        let mut all = references(plan, self.outer.schema())?;
        let Some(recurring) = &self.recurring else { return Ok(all) };
        let reads = plan.exists(|node| match node {
            LogicalPlan::TableScan(scan) => Ok(self.recurs(scan).is_some()),
            _ => Ok(false),
        })?;
        let keys = recurring.keys.iter().map(|key| &key.outer).filter(|_| reads);
        for column in keys {
            if !all.contains(column) {
                all.push(column.clone());
            }
        }
        Ok(all)
    }

    /// A recursion, which begins with the rows for all keys.
    pub(super) fn recursive(&self, query: &RecursiveQuery) -> Result<Option<Keyed>> {
        if self.recurring.is_some() {
            return Ok(None);
        }
        let all = references(&LogicalPlan::RecursiveQuery(query.clone()), self.outer.schema())?;
        let Some(first) = self.input(&query.static_term, &all)? else { return Ok(None) };
        let first = in_order(first, &all)?;
        let recurring = Recurring { name: query.name.clone(), keys: first.keys.clone() };
        let step = Dependence { names: self.names, outer: self.outer, recurring: Some(recurring) };
        let Some(next) = step.input(&query.recursive_term, &all)? else { return Ok(None) };
        let next = in_order(next, &all)?;
        let plan = LogicalPlanBuilder::from(first.plan)
            .to_recursive_query(query.name.clone(), next.plan, query.is_distinct)?
            .build()?;
        let columns = plan.schema().columns();
        let (own, last) = columns.split_at(columns.len() - first.keys.len());
        let mut keys = first.keys;
        for ((key, other), column) in keys.iter_mut().zip(&next.keys).zip(last) {
            key.has_nulls |= other.has_nulls;
            key.column = column.clone();
        }
        let own: Vec<Expr> = own.iter().cloned().map(Expr::Column).collect();
        self.named(plan, own, &query.schema.columns(), keys).map(Some)
    }

    /// The rows of the recursion in its step; `None` of a scan of others.
    pub(super) fn recurring_rows(&self, scan: &TableScan) -> Result<Option<Keyed>> {
        let (Some(recurring), Some(table)) = (&self.recurring, self.recurs(scan)) else {
            return Ok(None);
        };
        if !scan.filters.is_empty() || scan.fetch.is_some() {
            return Ok(None);
        }
        let own = scan.projected_schema.columns();
        let outer = self.outer.schema();
        let mut fields: Vec<Arc<Field>> = table.columns().fields().iter().cloned().collect();
        let mut keys = recurring.keys.clone();
        for key in &mut keys {
            let of = outer.field_from_column(&key.outer)?.data_type().clone();
            fields.push(Arc::new(Field::new(&key.column.name, of, key.has_nulls)));
            key.column = Column::new(Some(scan.table_name.clone()), &key.column.name);
        }
        let table = WorkTable::new(table.name(), Arc::new(Schema::new(fields)), table.limit());
        let source: Arc<dyn TableSource> = Arc::new(table);
        let plan = LogicalPlanBuilder::scan(scan.table_name.clone(), source, None)?.build()?;
        let values = own.iter().cloned().map(Expr::Column).collect::<Vec<_>>();
        self.named(plan, values, &own, keys).map(Some)
    }

    /// The rows of the recursion, if a scan reads them.
    fn recurs<'s>(&self, scan: &'s TableScan) -> Option<&'s WorkTable> {
        let recurring = self.recurring.as_ref()?;
        work_table(scan.source.as_ref()).filter(|table| table.name() == recurring.name)
    }
}
