//! Timestamps count microseconds.
//!
//! In nanoseconds, which DataFusion prefers, 64 bits would end in the year 2262. So columns have microseconds, and what
//! DataFusion casts to nanoseconds (literals, the two sides of a comparison with a date) is cast to microseconds instead.

use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::expr::{Cast, TryCast};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::{EmptyRelation, Union};
use datafusion_expr::{Expr, LogicalPlan, Values};
use datafusion_optimizer::analyzer::AnalyzerRule;

use alluvium_sql_functions::microseconds::in_microseconds;

/// Replaces casts to nanoseconds, and constants of nanoseconds. Runs when the types are coerced.
#[derive(Debug)]
pub struct Microseconds;

impl AnalyzerRule for Microseconds {
    fn name(&self) -> &str {
        "microseconds"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            let node = node.map_expressions(|expression| {
                let name = names.save(&expression);
                let replaced = expression.transform_up(replaced)?;
                Ok(replaced.update_data(|expression| name.restore(expression)))
            })?;
            node.map_data(retyped)
        })
        .map(|plan| plan.data)
    }
}

fn replaced(expression: Expr) -> Result<Transformed<Expr>> {
    Ok(match expression {
        Expr::Cast(Cast { expr, field }) => match retyped_field(&field) {
            Some(field) => Transformed::yes(Expr::Cast(Cast { expr, field })),
            None => Transformed::no(Expr::Cast(Cast { expr, field })),
        },
        Expr::TryCast(TryCast { expr, field }) => match retyped_field(&field) {
            Some(field) => Transformed::yes(Expr::TryCast(TryCast { expr, field })),
            None => Transformed::no(Expr::TryCast(TryCast { expr, field })),
        },
        Expr::Literal(ScalarValue::TimestampNanosecond(time, zone), metadata) => {
            let time = time.map(|time| time.div_euclid(1_000));
            Transformed::yes(Expr::Literal(ScalarValue::TimestampMicrosecond(time, zone), metadata))
        }
        Expr::Literal(ScalarValue::DurationNanosecond(length), metadata) => {
            let length = length.map(|length| length.div_euclid(1_000));
            Transformed::yes(Expr::Literal(ScalarValue::DurationMicrosecond(length), metadata))
        }
        expression => Transformed::no(expression),
    })
}

fn retyped_field(field: &FieldRef) -> Option<FieldRef> {
    let kind = in_microseconds(field.data_type());
    (kind != *field.data_type()).then(|| Arc::new(Field::clone(field).with_data_type(kind)))
}

/// The node with the types of its expressions and inputs.
fn retyped(node: LogicalPlan) -> Result<LogicalPlan> {
    Ok(match node {
        LogicalPlan::Values(Values { schema, values }) => {
            LogicalPlan::Values(Values { schema: Arc::new(retyped_schema(&schema)?), values })
        }
        LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row, schema }) => {
            let schema = Arc::new(retyped_schema(&schema)?);
            LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row, schema })
        }
        LogicalPlan::Union(Union { inputs, schema }) => {
            LogicalPlan::Union(Union { inputs, schema: Arc::new(retyped_schema(&schema)?) })
        }
        node => node.recompute_schema()?,
    })
}

fn retyped_schema(schema: &DFSchema) -> Result<DFSchema> {
    let fields = schema.iter().map(|(qualifier, field)| {
        let field = retyped_field(field).unwrap_or_else(|| Arc::clone(field));
        (qualifier.cloned(), field)
    });
    DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())?
        .with_functional_dependencies(schema.functional_dependencies().clone())
}
