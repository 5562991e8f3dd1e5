//! Domains: the distinct values of columns outside.

use arrow::datatypes::DataType;
use datafusion_common::{Column, ExprSchema, JoinType, Result};
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder, logical_plan as logical};

use super::{Dependence, Key, Keyed, all_of, same_values};
use crate::fault::{self, Fault};

impl Dependence<'_> {
    /// The distinct values of columns outside; `None` if their types cannot be keys.
    pub(super) fn domain(&self, columns: &[Column]) -> Result<Option<Keyed>> {
        let mut keys = Vec::with_capacity(columns.len());
        let mut values = Vec::with_capacity(columns.len());
        for outer in columns {
            let field = self.outer.schema().field_from_column(outer)?;
            if !can_be_key(field.data_type()) {
                return Ok(None);
            }
            let has_nulls = field.is_nullable() && !fault::armed(Fault::NullsStayOutside);
            let name = self.names.next("__key");
            values.push(Expr::Column(outer.clone()).alias(&name));
            let column = Column::new_unqualified(name);
            keys.push(Key { outer: outer.clone(), column, has_nulls });
        }
        let plan = LogicalPlanBuilder::from(self.outer.clone()).project(values)?.distinct()?;
        Ok(Some(Keyed { plan: plan.build()?, keys }))
    }

    /// The rows for all values of more columns outside.
    pub(super) fn extended(&self, rows: Keyed, columns: &[Column]) -> Result<Option<Keyed>> {
        let mut all: Vec<Column> = rows.keys.iter().map(|key| key.outer.clone()).collect();
        all.extend(
            columns.iter().filter(|column| !all.contains(column)).cloned().collect::<Vec<_>>(),
        );
        if all.len() == rows.keys.len() {
            return Ok(Some(rows));
        }
        let Some(domain) = self.domain(&all)? else { return Ok(None) };
        if let LogicalPlan::EmptyRelation(logical::EmptyRelation {
            produce_one_row: true, ..
        }) = rows.plan
        {
            return Ok(Some(domain));
        }
        let own = rows.columns();
        let condition = same_keys(&domain.keys, &rows.keys);
        self.joined(rows.plan, domain, JoinType::Inner, condition, own)
    }

    /// A join with a domain, with the columns `own` and the keys of the domain.
    pub(super) fn joined(
        &self,
        plan: LogicalPlan,
        domain: Keyed,
        kind: JoinType,
        condition: Vec<Expr>,
        own: Vec<Column>,
    ) -> Result<Option<Keyed>> {
        let keys = domain.keys;
        let all = own.into_iter().map(Expr::Column).chain(keys.iter().map(Key::value));
        let plan = LogicalPlanBuilder::from(domain.plan)
            .join_on(plan, kind, Some(all_of(condition)))?
            .project(all)?
            .build()?;
        Ok(Some(Keyed { plan, keys }))
    }
}

/// The condition that two rows have the same values in the keys that both have.
pub(super) fn same_keys(left: &[Key], right: &[Key]) -> Vec<Expr> {
    let pairs = left.iter().filter_map(|left| {
        let right = right.iter().find(|right| right.outer == left.outer)?;
        Some((&left.column, &right.column, left.has_nulls && right.has_nulls))
    });
    same_values(&pairs.collect::<Vec<_>>())
}

/// Whether rows can be told apart by values of this type.
fn can_be_key(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(..) | DataType::Null => false,
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            can_be_key(field.data_type())
        }
        DataType::Struct(fields) => fields.iter().all(|field| can_be_key(field.data_type())),
        _ => true,
    }
}
