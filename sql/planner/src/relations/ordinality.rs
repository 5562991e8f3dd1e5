//! `UNNEST(…) WITH ORDINALITY`: one more list, with the positions of the elements.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, AsArray, Int64Array, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field};
use datafusion_common::{
    Column, DFSchema, DataFusionError, NullHandling, Result, UnnestOptions, exec_datafusion_err,
    internal_err,
};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use sqlparser::ast::{Spanned, TableFactor};

use alluvium_sql_syntax::error::{Error, Position};

/// Plans UNNEST WITH ORDINALITY; DataFusion plans UNNEST without it.
#[derive(Debug)]
pub(crate) struct OrdinalityPlanner;

impl RelationPlanner for OrdinalityPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::UNNEST {
            alias,
            array_exprs,
            with_ordinality: true,
            with_offset: false,
            with_offset_alias: None,
        } = relation
        else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let mut lists = Vec::with_capacity(array_exprs.len() + 1);
        for expression in array_exprs {
            let at = Position::of_span(expression.span());
            let name = format!("unnest({expression})");
            let list = context.sql_expr_to_logical_expr(expression, &DFSchema::empty())?;
            let data_type = list.get_type(&DFSchema::empty())?;
            if !matches!(data_type, DataType::List(_)) {
                let message = format!("UNNEST WITH ORDINALITY takes lists, not {data_type}");
                return Err(DataFusionError::External(Box::new(Error::new(message, at))));
            }
            lists.push((list, name));
        }
        let places = Expr::ScalarFunction(ScalarFunction::new_udf(
            Arc::clone(&PLACES),
            lists.iter().map(|(list, _)| list.clone()).collect(),
        ));
        lists.push((places, "ordinality".to_string()));
        let columns = lists.iter().map(|(_, name)| Column::from_name(name)).collect();
        let plan = LogicalPlanBuilder::empty(true)
            .project(lists.into_iter().map(|(list, name)| list.alias(name)))?
            .unnest_columns_with_options(
                columns,
                UnnestOptions::new().with_null_handling(NullHandling::Drop),
            )?
            .build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

/// `list_places(list, …)`: see [`Places`].
static PLACES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::variadic_any(Volatility::Immutable);
    Arc::new(ScalarUDF::from(Places { signature }))
});

/// The positions of the elements of parallel lists: 1, 2, … up to the length of the longest.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Places {
    signature: Signature,
}

impl ScalarUDFImpl for Places {
    fn name(&self) -> &str {
        "list_places"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true))))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut lengths = vec![0_i32; arguments.number_rows];
        for lists in &arguments.args {
            let lists = lists.to_array(arguments.number_rows)?;
            let Some(lists) = lists.as_list_opt::<i32>() else {
                return internal_err!("list_places of {}", lists.data_type());
            };
            for (row, length) in lengths.iter_mut().enumerate() {
                if lists.is_valid(row) {
                    *length = (*length).max(lists.value_length(row));
                }
            }
        }
        let total: i64 = lengths.iter().copied().map(i64::from).sum();
        if i32::try_from(total).is_err() {
            return Err(exec_datafusion_err!("too many elements at a time"));
        }
        let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|&length| length as usize));
        let places = lengths.iter().flat_map(|&length| 1..=i64::from(length));
        let element = Arc::new(Field::new_list_field(DataType::Int64, true));
        let places = Int64Array::from_iter_values(places);
        let list = ListArray::try_new(element, offsets, Arc::new(places), None)?;
        Ok(ColumnarValue::Array(Arc::new(list)))
    }
}
