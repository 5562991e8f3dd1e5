//! The relation that stands for the columns of `* RENAME (a AS b)` and `(e).*`: see `syntax::wildcards`.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::{Column, DataFusionError, ExprSchema, Result, plan_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use sqlparser::ast::{TableAlias, TableFactor};

use alluvium_sql_functions::FUNCTIONS;
use alluvium_sql_syntax::error::{Position, no_column};
use alluvium_sql_syntax::syntax::{COLUMNS, FIELDS};

/// Plans such relations.
#[derive(Debug)]
pub(crate) struct WildcardPlanner;

impl RelationPlanner for WildcardPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None } =
            relation
        else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        if alias.name.value != COLUMNS {
            return Ok(RelationPlanning::Original(Box::new(TableFactor::Derived {
                lateral: false,
                subquery,
                alias: Some(alias),
                sample: None,
            })));
        }
        let renamed = Renamed::of(&alias, context);
        let rows = TableFactor::Derived { lateral: false, subquery, alias: None, sample: None };
        let plan = named(context.plan(rows)?, renamed)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

/// A column that gets another name.
struct Renamed {
    /// The relation that it is of; `None` if it may be of any.
    qualifier: Option<String>,
    name: String,
    new: String,
    position: Option<Position>,
    is_found: bool,
}

impl Renamed {
    fn of(alias: &TableAlias, context: &dyn RelationPlannerContext) -> Vec<Renamed> {
        let triples = alias.columns.as_chunks::<3>().0.iter();
        triples
            .map(|[qualifier, name, new]| Renamed {
                qualifier: (!qualifier.name.value.is_empty())
                    .then(|| context.normalize_ident(qualifier.name.clone())),
                name: context.normalize_ident(name.name.clone()),
                new: context.normalize_ident(new.name.clone()),
                position: Position::of_span(name.name.span),
                is_found: false,
            })
            .collect()
    }

    fn is_of(&self, column: &Column) -> bool {
        let is_of_relation = |qualifier: &String| {
            column.relation.as_ref().is_some_and(|relation| relation.table() == qualifier)
        };
        self.name == column.name && self.qualifier.as_ref().is_none_or(is_of_relation)
    }
}

/// The rows with other names of columns, and the fields of structs that are to be columns.
fn named(plan: LogicalPlan, mut renamed: Vec<Renamed>) -> Result<LogicalPlan> {
    let mut columns = Vec::with_capacity(plan.schema().fields().len());
    for column in plan.schema().columns() {
        let field = plan.schema().field_from_column(&column)?;
        if column.name.starts_with(FIELDS) {
            let DataType::Struct(fields) = field.data_type() else {
                let found = field.data_type();
                return plan_err!("(…).* takes the fields of a STRUCT, not of {found}");
            };
            let Some(function) = FUNCTIONS.scalar.get("get_field") else {
                return plan_err!("there is no get_field");
            };
            columns.extend(fields.iter().map(|field| {
                let arguments = vec![Expr::Column(column.clone()), lit(field.name().as_str())];
                Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), arguments))
                    .alias(field.name())
            }));
            continue;
        }
        columns.push(match renamed.iter_mut().find(|renamed| renamed.is_of(&column)) {
            Some(renamed) => {
                renamed.is_found = true;
                Expr::Column(column).alias(&renamed.new)
            }
            None => Expr::Column(column),
        });
    }
    if let Some(unknown) = renamed.iter().find(|renamed| !renamed.is_found) {
        let there = plan.schema().columns();
        let names = there.iter().map(|column| column.name.as_str());
        let error = no_column(&unknown.name, unknown.qualifier.as_deref(), names);
        return Err(DataFusionError::External(Box::new(error.at(unknown.position))));
    }
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}
