//! `x IN (SELECT …)` and `(x, y) IN (SELECT …, …)`: whether a row is among those of a subquery.
//!
//! It is true if the subquery has a row whose values are all equal. Else it is NULL if the subquery has a row of which that is
//! not known: each pair of values is equal or has a NULL. Else it is false.
//!
//! So there is one reason for NULL for each way to say of each pair whether its values are equal, the subquery's is NULL, or
//! the other is: three to the power of the number of pairs, without the one in which all are equal, and without those
//! that nothing can cause as a value is never NULL. Each makes a join on the pairs that are equal.

use std::sync::Arc;

use datafusion_common::{Column, DFSchema, Result, ScalarValue};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::utils::conjunction;
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, when};

use alluvium_sql_syntax::syntax::ROW_VALUE;

/// The most reasons that become joins of their own: those of three pairs.
const MOST_REASONS: usize = 26;

/// A row, and the subquery that has it or has it not.
pub(crate) struct Membership {
    pub(crate) values: Vec<Expr>,
    /// Its first columns are compared with the values, in order.
    pub(crate) query: LogicalPlan,
}

/// A cause for not knowing whether the row is a member.
pub(crate) enum Unknown {
    /// These of the row's values are NULL, and these of the member's; all others are equal.
    Nulls { values: Vec<usize>, members: Vec<usize> },
    /// Each pair is equal or has a NULL. The join has no keys, and compares all rows with all members.
    Any,
}

impl Unknown {
    /// The columns of the subquery that are NULL.
    pub(crate) fn null_members(&self) -> &[usize] {
        match self {
            Unknown::Nulls { members, .. } => members,
            Unknown::Any => &[],
        }
    }
}

impl Membership {
    /// The membership of the left side of IN in the right one.
    pub(crate) fn of(value: &Expr, query: &LogicalPlan) -> Result<Self> {
        if let Some(values) = row(value)
            && let LogicalPlan::Projection(projection) = query
            && let [selected] = &projection.expr[..]
            && let Some(members) = row(selected)
            && members.len() == values.len()
        {
            let members = members.into_iter().enumerate();
            let members =
                members.map(|(place, member)| member.alias(format!("{ROW_VALUE}{place}")));
            let query = LogicalPlanBuilder::from(Arc::clone(&projection.input)).project(members)?;
            return Ok(Self { values, query: query.build()? });
        }
        Ok(Self { values: vec![value.clone()], query: query.clone() })
    }

    /// The conditions under which a member is equal.
    pub(crate) fn is_equal(&self, members: &LogicalPlan) -> Vec<Expr> {
        let equal = |(value, member): (&Expr, Column)| value.clone().eq(Expr::Column(member));
        self.values.iter().zip(members.schema().columns()).map(equal).collect()
    }

    /// The possible causes for not knowing whether a row with these columns is a member.
    pub(crate) fn unknown(&self, rows: &DFSchema, members: &LogicalPlan) -> Result<Vec<Unknown>> {
        let mut found = vec![(Vec::new(), Vec::new())];
        for (place, value) in self.values.iter().enumerate() {
            let value = value.nullable(rows)?;
            let member = members.schema().field(place).is_nullable();
            let before = found.clone();
            if member {
                found.extend(before.iter().cloned().map(|(values, mut members)| {
                    members.push(place);
                    (values, members)
                }));
            }
            if value {
                found.extend(before.into_iter().map(|(mut values, members)| {
                    values.push(place);
                    (values, members)
                }));
            }
            if found.len() > MOST_REASONS + 1 {
                return Ok(vec![Unknown::Any]);
            }
        }
        let nulls = found.into_iter().skip(1);
        Ok(nulls.map(|(values, members)| Unknown::Nulls { values, members }).collect())
    }

    /// The condition on the row that its join does not state: `None` if it states all.
    pub(crate) fn are_null(&self, unknown: &Unknown) -> Option<Expr> {
        match unknown {
            Unknown::Nulls { values, members }
                if values.len() + members.len() == self.values.len() =>
            {
                self.nulls(values)
            }
            _ => None,
        }
    }

    fn nulls(&self, values: &[usize]) -> Option<Expr> {
        conjunction(values.iter().map(|&place| self.values[place].clone().is_null()))
    }

    /// The conditions under which a row meets a member.
    pub(crate) fn meets(&self, unknown: &Unknown, members: &LogicalPlan) -> Result<Vec<Expr>> {
        let pairs = self.values.iter().cloned().zip(members.schema().columns());
        let Unknown::Nulls { values, members } = unknown else {
            let meets = pairs.map(|(value, member)| {
                let member = Expr::Column(member);
                let is_equal = value.clone().eq(member.clone());
                is_equal.or(value.is_null()).or(member.is_null())
            });
            return Ok(meets.collect());
        };
        let mut are_null = self.nulls(values);
        let mut meets = Vec::new();
        for (place, (value, member)) in pairs.enumerate() {
            if values.contains(&place) || members.contains(&place) {
                continue;
            }
            // Rows without such NULLs have no key, and meet nothing.
            let value = match are_null.take() {
                Some(are_null) => when(are_null, value).end()?,
                None => value,
            };
            meets.push(value.eq(Expr::Column(member)));
        }
        Ok(meets)
    }
}

/// The values of a row that the syntax made for a comparison with a subquery.
fn row(expression: &Expr) -> Option<Vec<Expr>> {
    let expression = match expression {
        Expr::Alias(alias) => alias.expr.as_ref(),
        expression => expression,
    };
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expression else { return None };
    if func.name() != "named_struct" {
        return None;
    }
    let fields = args.as_chunks::<2>().0.iter();
    let values = fields.map(|[name, value]| match name {
        Expr::Literal(ScalarValue::Utf8(Some(name)), _) if name.starts_with(ROW_VALUE) => {
            Some(value.clone())
        }
        _ => None,
    });
    values.collect()
}
