//! Aggregates over frames whose start moves, `ROWS BETWEEN 1 PRECEDING AND CURRENT ROW`, for all functions.
//!
//! DataFusion computes them by taking back the rows that leave the frame, which only some functions can. For the others
//! the rows of the frame are kept, and each result is computed from all of them: it costs what its frame has.

use std::collections::VecDeque;
use std::mem::size_of_val;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Result, ScalarValue, not_impl_err};
use datafusion_expr::expr::WindowFunctionParams;
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, LogicalPlan, Signature, WindowFrame,
    WindowFunctionDefinition,
};
use datafusion_physical_expr::{PhysicalExpr, PhysicalSortExpr};

/// The plan with functions that can be computed over all of its frames.
pub fn computable(plan: LogicalPlan) -> Result<LogicalPlan> {
    let computable = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Window(mut window) => {
            let moving = window.window_expr.iter_mut().filter_map(wrap).count();
            let window = LogicalPlan::Window(window);
            Ok(if moving > 0 { Transformed::yes(window) } else { Transformed::no(window) })
        }
        node => Ok(Transformed::no(node)),
    })?;
    Ok(computable.data)
}

/// Lets the aggregate of a call move, if its frame does.
fn wrap(call: &mut Expr) -> Option<()> {
    let Expr::WindowFunction(call) = call else { return None };
    let frame = &call.params.window_frame;
    if frame.start_bound.is_unbounded() {
        return None;
    }
    let WindowFunctionDefinition::AggregateUDF(function) = &mut call.fun else { return None };
    *function = over(Arc::clone(function), frame);
    Some(())
}

/// The function as it can be computed over a frame.
pub fn over(function: Arc<AggregateUDF>, frame: &WindowFrame) -> Arc<AggregateUDF> {
    if frame.start_bound.is_unbounded() {
        return function;
    }
    Arc::new(AggregateUDF::from(Moving { function }))
}

/// A function whose frame moves.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Moving {
    function: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for Moving {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn window_function_schema_name(&self, call: &WindowFunctionParams) -> Result<String> {
        self.function.window_function_schema_name(call)
    }

    fn window_function_display_name(&self, call: &WindowFunctionParams) -> Result<String> {
        self.function.window_function_display_name(call)
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.function.return_type(arguments)
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        self.function.return_field(arguments)
    }

    fn is_nullable(&self) -> bool {
        self.function.is_nullable()
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.function.default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.function.supports_null_handling_clause()
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.function.state_fields(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.function.accumulator(arguments)
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let call = Call::new(Arc::clone(&self.function), &arguments);
        let name = self.function.name();
        match self.function.create_sliding_accumulator(arguments) {
            // DataFusion's is 0, not NULL, over a frame from which all values have gone.
            Ok(sliding) if sliding.supports_retract_batch() && name != "bit_xor" => Ok(sliding),
            _ => {
                call.accumulator()?;
                Ok(Box::new(Frame { call, rows: VecDeque::new() }))
            }
        }
    }
}

/// A call of a function.
#[derive(Debug)]
struct Call {
    function: Arc<AggregateUDF>,
    result: FieldRef,
    schema: SchemaRef,
    ignore_nulls: bool,
    order: Vec<PhysicalSortExpr>,
    is_reversed: bool,
    name: String,
    is_distinct: bool,
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    fields: Vec<FieldRef>,
}

impl Call {
    fn new(function: Arc<AggregateUDF>, arguments: &AccumulatorArgs<'_>) -> Self {
        Self {
            function,
            result: Arc::clone(&arguments.return_field),
            schema: Arc::new(Schema::clone(arguments.schema)),
            ignore_nulls: arguments.ignore_nulls,
            order: arguments.order_bys.to_vec(),
            is_reversed: arguments.is_reversed,
            name: arguments.name.to_owned(),
            is_distinct: arguments.is_distinct,
            arguments: arguments.exprs.to_vec(),
            fields: arguments.expr_fields.to_vec(),
        }
    }

    fn accumulator(&self) -> Result<Box<dyn Accumulator>> {
        self.function.accumulator(AccumulatorArgs {
            return_field: Arc::clone(&self.result),
            schema: &self.schema,
            ignore_nulls: self.ignore_nulls,
            order_bys: &self.order,
            is_reversed: self.is_reversed,
            name: &self.name,
            is_distinct: self.is_distinct,
            exprs: &self.arguments,
            expr_fields: &self.fields,
        })
    }
}

/// The rows of a frame.
#[derive(Debug)]
struct Frame {
    call: Call,
    /// In the order in which they came, which is the order in which they leave.
    rows: VecDeque<Vec<ArrayRef>>,
}

impl Frame {
    /// The result of all rows.
    fn accumulated(&mut self) -> Result<Box<dyn Accumulator>> {
        let mut accumulator = self.call.accumulator()?;
        if self.rows.len() > 1 {
            let columns = self.rows[0].len();
            let together = (0..columns).map(|column| {
                let pieces: Vec<&dyn Array> =
                    self.rows.iter().map(|piece| piece[column].as_ref()).collect();
                concat(&pieces)
            });
            let together = together.collect::<std::result::Result<Vec<_>, _>>()?;
            self.rows = VecDeque::from([together]);
        }
        for rows in &self.rows {
            accumulator.update_batch(rows)?;
        }
        Ok(accumulator)
    }
}

impl Accumulator for Frame {
    fn update_batch(&mut self, rows: &[ArrayRef]) -> Result<()> {
        if rows.first().is_some_and(|column| !column.is_empty()) {
            self.rows.push_back(rows.to_vec());
        }
        Ok(())
    }

    fn retract_batch(&mut self, rows: &[ArrayRef]) -> Result<()> {
        let mut leaving = rows.first().map_or(0, |column| column.len());
        while leaving > 0 {
            let Some(first) = self.rows.front_mut() else { break };
            let length = first[0].len();
            if length <= leaving {
                leaving -= length;
                self.rows.pop_front();
            } else {
                for column in first {
                    *column = column.slice(leaving, length - leaving);
                }
                leaving = 0;
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.accumulated()?.evaluate()
    }

    fn size(&self) -> usize {
        let columns = self.rows.iter().flatten();
        size_of_val(self) + columns.map(|column| column.get_array_memory_size()).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.accumulated()?.state()
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        not_impl_err!("{} over a frame has no partial results", self.call.name)
    }
}
