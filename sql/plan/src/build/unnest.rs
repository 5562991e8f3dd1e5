//! UNNEST.

use std::sync::Arc;

use alluvium_sql_syntax::error::Result;
use alluvium_sql_syntax::options::OPTIONS;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{NullHandling, ScalarValue};
use datafusion_expr::logical_plan as logical;
use datafusion_physical_expr::ScalarFunctionExpr;
use datafusion_physical_expr::expressions::{CastExpr, Literal};

use super::Builder;
use crate::IncrementalPlan;
use crate::expression::{self, Expression};

impl Builder<'_> {
    /// Lists become elements; a struct becomes its fields.
    pub(super) fn unnest(&self, unnest: &logical::Unnest) -> Result<IncrementalPlan> {
        let keeps_all = match unnest.options.null_handling {
            NullHandling::Drop => false,
            NullHandling::PreserveAndExpandEmpty => true,
            NullHandling::Preserve => return self.refuse("UNNEST that keeps NULL but not []"),
        };
        let input = self.build(&unnest.input)?;
        let mut depths = unnest.list_type_columns.iter().map(|(_, list)| list.depth);
        let depth = depths.next().unwrap_or(0);
        let several = unnest.list_type_columns.len() > 1;
        if depths.any(|other| other != depth) || (several && depth > 1) {
            return self.refuse("UNNEST of lists in lists beside another UNNEST");
        }
        let mut lists: Vec<usize> =
            unnest.list_type_columns.iter().map(|(list, _)| *list).collect();
        lists.sort_unstable();
        lists.dedup();
        let mut plan = input;
        for _ in 0..depth {
            plan = IncrementalPlan::unnest(as_lists(plan, &lists)?, lists.clone(), keeps_all)?;
        }
        self.fields(plan, unnest)
    }

    /// The columns of the unnested rows in order, with structs as their fields.
    fn fields(&self, plan: IncrementalPlan, unnest: &logical::Unnest) -> Result<IncrementalPlan> {
        let mut project: Vec<(Expression, String)> =
            Vec::with_capacity(unnest.dependency_indices.len());
        let mut previous = None;
        let mut place = 0;
        for (&source, field) in unnest.dependency_indices.iter().zip(unnest.schema.fields()) {
            place = if previous == Some(source) { place + 1 } else { 0 };
            previous = Some(source);
            let column = expression::column(&plan.schema, source);
            let value = match plan.schema.field(source).data_type() {
                DataType::Struct(fields) if unnest.struct_type_columns.contains(&source) => {
                    let name = ScalarValue::from(fields[place].name().as_str());
                    let arguments = vec![column, Arc::new(Literal::new(name)) as Expression];
                    let get = datafusion_functions::core::get_field();
                    Arc::new(ScalarFunctionExpr::try_new(
                        get,
                        arguments,
                        &plan.schema,
                        Arc::clone(&OPTIONS),
                    )?)
                }
                _ => column,
            };
            project.push((value, field.name().clone()));
        }
        Ok(IncrementalPlan::map(plan, None, project)?)
    }
}

/// The plan with all lists of one layout.
fn as_lists(plan: IncrementalPlan, lists: &[usize]) -> Result<IncrementalPlan> {
    let mut project = plan.identity();
    for &list in lists {
        let element: FieldRef = match plan.schema.field(list).data_type() {
            DataType::LargeList(element)
            | DataType::FixedSizeList(element, _)
            | DataType::ListView(element)
            | DataType::LargeListView(element) => Arc::clone(element),
            _ => continue,
        };
        let (column, _) = &project[list];
        project[list].0 =
            Arc::new(CastExpr::new(Arc::clone(column), DataType::List(element), None));
    }
    Ok(IncrementalPlan::map(plan, None, project)?)
}
