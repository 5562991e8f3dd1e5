//! Filters and projections, fused, over whole batches.

mod errors;
mod evaluate;
mod fallible;

use std::sync::Arc;

use alluvium_trace::Epoch;
use arrow::datatypes::SchemaRef;
use datafusion_physical_expr::PhysicalExpr;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use self::evaluate::Evaluation;
use crate::delta::{Delta, DeltaStream};
use crate::fault::{self, Fault};

pub use errors::{ErrorRows, error_schema, message};
pub use fallible::can_fail;

/// The rows of `stream` that `filter` keeps, with the columns `project`, and the errors of rows for
/// which either fails.
///
/// All expressions are over the columns of `stream`. A row is kept if the filter is true for it; the
/// projection is evaluated only for those. `schema` names the columns of the output and is of the
/// types of `project`.
///
/// A row for which an expression fails is not in the first stream. Instead the second stream has one row of
/// [`error_schema`], at the same time and with the same weight, so that retracting the row retracts its error. Whether a
/// row is an error depends on that row alone, not on the batch it is in. If [`can_fail`] is false for every expression, the
/// second stream stays empty.
pub fn map<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    project: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
) -> (DeltaStream<'scope, Epoch>, DeltaStream<'scope, Epoch>) {
    let evaluation = Evaluation::new(filter, project, schema);
    let mut builder = OperatorBuilder::new("Map".to_owned(), stream.scope());
    let mut input = builder.new_input(stream, Pipeline);
    let (rows_output, rows) = builder.new_output();
    let mut rows_output = OutputBuilder::<Epoch, NoopBuilder<Delta<Epoch>>>::from(rows_output);
    let (errors_output, errors) = builder.new_output();
    let mut errors_output = OutputBuilder::<Epoch, NoopBuilder<Delta<Epoch>>>::from(errors_output);
    builder.build(move |_capabilities| {
        move |_frontiers| {
            let mut rows_output = rows_output.activate();
            let mut errors_output = errors_output.activate();
            input.for_each(|capability, delta: &mut Delta<Epoch>| {
                let rows_capability = capability.retain(0);
                let errors_capability = capability.retain(1);
                if fault::armed(Fault::PanicInMap) {
                    panic!("a fault was injected into a map");
                }
                let mapped = evaluation.map(&std::mem::take(delta));
                for mut rows in mapped.rows {
                    rows_output.session_with_builder(&rows_capability).give_container(&mut rows);
                }
                if let Some(mut errors) = mapped.errors {
                    errors_output
                        .session_with_builder(&errors_capability)
                        .give_container(&mut errors);
                }
            });
        }
    });
    (rows, errors)
}
