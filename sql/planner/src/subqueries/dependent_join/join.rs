//! Joins of rows for all keys.

use datafusion_common::{Column, JoinType, NullEquality, Result, TableReference};
use datafusion_expr::logical_plan::Join;
use datafusion_expr::utils::split_conjunction_owned;
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, when};

use super::domain::same_keys;
use super::references::{references_of, replaced_all};
use super::{Dependence, Key, Keyed, all_of};

impl Dependence<'_> {
    /// A join, of rows with the same keys.
    pub(super) fn join(&self, join: &Join) -> Result<Option<Keyed>> {
        let schema = self.outer.schema();
        let conditions = conditions(join);
        let outside = references_of(&conditions, schema)?;
        if join.join_type == JoinType::Inner && !outside.is_empty() {
            return self.join_then_filter(join, conditions);
        }
        let mut all = self.outside(&join.left)?;
        for column in self.outside(&join.right)?.into_iter().chain(outside) {
            if !all.contains(&column) {
                all.push(column);
            }
        }
        // A row without partners is one for each key.
        let (left_has_all, right_has_all) = match join.join_type {
            JoinType::Inner => (false, false),
            JoinType::Full => (true, true),
            JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
                (true, false)
            }
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                (false, true)
            }
        };
        let needed = |has_all| if has_all { all.as_slice() } else { &[] };
        let Some(left) = self.input(&join.left, needed(left_has_all))? else { return Ok(None) };
        let Some(right) = self.input(&join.right, needed(right_has_all))? else { return Ok(None) };
        let mark = join.schema.columns().pop().and_then(|mark| mark.relation);
        let (left, right) = match (join.join_type, mark) {
            (JoinType::LeftMark, Some(relation)) => (left, of_relation(right, &relation)?),
            (JoinType::RightMark, Some(relation)) => (of_relation(left, &relation)?, right),
            _ => (left, right),
        };
        let seen = if right_has_all { right.keys.as_slice() } else { &left.keys };
        let mut conditions = replaced_all(&conditions, seen)?;
        conditions.extend(same_keys(&left.keys, &right.keys));
        let widths = (left.columns().len(), right.columns().len());
        let (left_keys, right_keys) = (left.keys, right.keys);
        let plan = LogicalPlanBuilder::from(left.plan)
            .join_on(right.plan, join.join_type, Some(all_of(conditions)))?
            .build()?;
        let columns = plan.schema().columns();
        let values = |from: usize, number: usize| columns[from..from + number].to_vec();
        let behind_left = widths.0 + left_keys.len();
        let (own, keys) = match join.join_type {
            JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                let mut own = values(0, widths.0);
                own.extend(values(behind_left, widths.1));
                let keys = match join.join_type {
                    JoinType::Full => {
                        return self.of_either(plan, own, &left_keys, &right_keys, join);
                    }
                    JoinType::Right => right_keys,
                    JoinType::Left => left_keys,
                    _ => union(left_keys, right_keys),
                };
                (own, keys)
            }
            JoinType::LeftSemi | JoinType::LeftAnti => (values(0, widths.0), left_keys),
            JoinType::RightSemi | JoinType::RightAnti => (values(0, widths.1), right_keys),
            JoinType::LeftMark => {
                let mut own = values(0, widths.0);
                own.extend(columns.last().cloned());
                (own, left_keys)
            }
            JoinType::RightMark => {
                let mut own = values(0, widths.1);
                own.extend(columns.last().cloned());
                (own, right_keys)
            }
        };
        let own = own.into_iter().map(Expr::Column);
        self.named(plan, own, &join.schema.columns(), keys).map(Some)
    }

    /// An inner join whose condition refers to columns outside is one that does not, and a filter.
    fn join_then_filter(&self, join: &Join, conditions: Vec<Expr>) -> Result<Option<Keyed>> {
        let (mut within, mut above) = (Vec::new(), Vec::new());
        for condition in conditions {
            let outside = references_of([&condition], self.outer.schema())?;
            if outside.is_empty() { &mut within } else { &mut above }.push(condition);
        }
        let plan = LogicalPlanBuilder::from(join.left.as_ref().clone())
            .join_on(join.right.as_ref().clone(), JoinType::Inner, Some(all_of(within)))?
            .build()?;
        match above.into_iter().reduce(Expr::and) {
            Some(above) => self.filtered(&plan, &above),
            None => self.keyed(&plan),
        }
    }

    /// A full join: its keys are those of the side that a row has.
    fn of_either(
        &self,
        plan: LogicalPlan,
        own: Vec<Column>,
        left: &[Key],
        right: &[Key],
        join: &Join,
    ) -> Result<Option<Keyed>> {
        let mut values: Vec<Expr> = own.into_iter().map(Expr::Column).collect();
        let mut keys = Vec::with_capacity(left.len());
        for key in left {
            let Some(other) = right.iter().find(|other| other.outer == key.outer) else {
                return Ok(None);
            };
            let (left, right) = (key.value(), other.value());
            let name = self.names.next("__key");
            values.push(when(left.clone().is_null(), right).otherwise(left)?.alias(&name));
            let has_nulls = key.has_nulls || other.has_nulls;
            let column = Column::new_unqualified(name);
            keys.push(Key { outer: key.outer.clone(), column, has_nulls });
        }
        let plan = LogicalPlanBuilder::from(plan).project(values)?.build()?;
        let own: Vec<Column> = plan.schema().columns();
        let own = own[..own.len() - keys.len()].iter().cloned().map(Expr::Column);
        self.named(plan, own.collect::<Vec<_>>(), &join.schema.columns(), keys).map(Some)
    }
}

/// The rows with keys that are columns of this relation, as the other columns are: a mark is one of the relation that all
/// columns of its side are of, also when rules have left only keys of them.
fn of_relation(rows: Keyed, relation: &TableReference) -> Result<Keyed> {
    let own = rows.columns().into_iter().map(Expr::Column);
    let named = |key: &Key| key.value().alias_qualified(Some(relation.clone()), &key.column.name);
    let plan = rows.plan.clone();
    let plan = LogicalPlanBuilder::from(plan).project(own.chain(rows.keys.iter().map(named)))?;
    let mut keys = rows.keys;
    for key in &mut keys {
        key.column.relation = Some(relation.clone());
    }
    Ok(Keyed { plan: plan.build()?, keys })
}

/// The conditions that a pair of rows of a join meets.
fn conditions(join: &Join) -> Vec<Expr> {
    let is_equal = match join.null_equality {
        NullEquality::NullEqualsNothing => Operator::Eq,
        NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
    };
    let on = join.on.iter();
    let keys = on.map(|(left, right)| binary_expr(left.clone(), is_equal, right.clone()));
    let filter = join.filter.clone().map(split_conjunction_owned).unwrap_or_default();
    keys.chain(filter).collect()
}

/// The keys of both sides, each once.
fn union(mut left: Vec<Key>, right: Vec<Key>) -> Vec<Key> {
    for key in right {
        if !left.iter().any(|other| other.outer == key.outer) {
            left.push(key);
        }
    }
    left
}
