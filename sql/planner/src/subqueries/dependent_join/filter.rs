//! Conditions on columns outside.
//!
//! `WHERE s.k = t.k` gives rows their key: it is `s.k`, and no domain is needed. Otherwise the rows are those of a join with
//! the domain.

use datafusion_common::{Column, JoinType, Result};
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator};

use super::domain::same_keys;
use super::references::{references_of, replaced_all};
use super::{Dependence, Key, Keyed};
use crate::rules::equality::compares_by_bytes;
use crate::rules::filter_push_down::may_fail;
use crate::subqueries::subquery::has_subquery;

impl Dependence<'_> {
    /// The rows of `input` for which a condition is true.
    pub(super) fn filtered(&self, input: &LogicalPlan, predicate: &Expr) -> Result<Option<Keyed>> {
        let Some(rows) = self.keyed(input)? else { return Ok(None) };
        let conditions = split_conjunction_owned(predicate.clone());
        let needed = references_of(&conditions, self.outer.schema())?;
        let is_missing = |column: &&Column| !rows.keys.iter().any(|key| key.outer == **column);
        let missing: Vec<Column> = needed.iter().filter(is_missing).cloned().collect();
        let found: Option<Vec<Expr>> = missing
            .iter()
            .map(|column| {
                conditions.iter().find_map(|condition| self.fixed(condition, column, input))
            })
            .collect();
        if let Some(found) = found {
            return self.with_fixed_keys(rows, missing, found, conditions).map(Some);
        }
        // Conditions that may fail are not evaluated for rows that others exclude.
        let is_sure = |condition: &Expr| !may_fail(condition) && !has_subquery(condition);
        let (sure, others): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(is_sure);
        let mut all: Vec<Column> = rows.keys.iter().map(|key| key.outer.clone()).collect();
        all.extend(missing);
        let Some(domain) = self.domain(&all)? else { return Ok(None) };
        let keys = domain.keys.clone();
        let mut condition = same_keys(&keys, &rows.keys);
        condition.extend(replaced_all(&sure, &keys)?);
        let own = rows.columns();
        let Some(joined) = self.joined(rows.plan, domain, JoinType::Inner, condition, own)? else {
            return Ok(None);
        };
        self.and(joined, &others).map(Some)
    }

    /// The rows for which more conditions are true.
    fn and(&self, rows: Keyed, conditions: &[Expr]) -> Result<Keyed> {
        let Some(condition) = conjunction(replaced_all(conditions, &rows.keys)?) else {
            return Ok(rows);
        };
        let plan = LogicalPlanBuilder::from(rows.plan).filter(condition)?.build()?;
        Ok(Keyed { plan, keys: rows.keys })
    }

    /// The rows for which conditions are true that say that the values `found` are those of the columns `missing`.
    fn with_fixed_keys(
        &self,
        rows: Keyed,
        missing: Vec<Column>,
        found: Vec<Expr>,
        conditions: Vec<Expr>,
    ) -> Result<Keyed> {
        let Keyed { mut plan, mut keys } = rows;
        if !missing.is_empty() {
            let mut all: Vec<Expr> =
                plan.schema().columns().into_iter().map(Expr::Column).collect();
            for (outer, value) in missing.into_iter().zip(found) {
                let name = self.names.next("__key");
                all.push(value.alias(&name));
                let column = Column::new_unqualified(name);
                keys.push(Key { outer, column, has_nulls: false });
            }
            plan = LogicalPlanBuilder::from(plan).project(all)?.build()?;
        }
        self.and(Keyed { plan, keys }, &conditions)
    }

    /// The value over columns of `input` that is equal to a column outside, according to a condition.
    fn fixed(&self, condition: &Expr, column: &Column, input: &LogicalPlan) -> Option<Expr> {
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else {
            return None;
        };
        let (value, field) = match (left.as_ref(), right.as_ref()) {
            (Expr::OuterReferenceColumn(field, outer), value)
            | (value, Expr::OuterReferenceColumn(field, outer))
                if outer == column =>
            {
                (value, field)
            }
            _ => return None,
        };
        let is_own = matches!(value, Expr::Column(_));
        let data_type = value.get_type(input.schema()).ok()?;
        (is_own && data_type == *field.data_type() && compares_by_bytes(&data_type))
            .then(|| value.clone())
    }
}
