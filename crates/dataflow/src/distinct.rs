//! DISTINCT: each row once, however many copies there are.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, NullTrace, Spine};
use arrow::datatypes::SchemaRef;

use crate::arrangement::{arrange, deltas};
use crate::codec::CodecError;
use crate::combine::{self, combine};
use crate::delta::DeltaStream;
use crate::exchange::exchange;
use crate::fault::{self, Fault};
use crate::key_columns::KeyColumns;
use crate::layout::{Layout, all_columns};
use crate::reduce::{Changes, Logic, Output, Prior, reduce};
use crate::weight::{add, weight_of};

/// How rows are compared.
#[derive(Clone, Debug)]
pub struct Spec {
    key: KeyColumns,
    layout: Layout,
    combined: combine::Spec,
}

impl Spec {
    /// DISTINCT of rows of `schema`. Fails if a column cannot be a key.
    pub fn compile(schema: SchemaRef) -> Result<Self, CodecError> {
        let key = KeyColumns::new(&schema, &all_columns(&schema))?;
        let combined = combine::Spec::compile(&schema)?;
        Ok(Self { key, layout: Layout::distinct(schema)?, combined })
    }

    /// The layout of the rows that are kept.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// The rows of `stream` with a positive weight, each with weight one.
///
/// Exchanges rows by all columns. Floats come out canonical.
pub fn distinct<'scope>(
    spec: &Spec,
    stream: DeltaStream<'scope, Epoch>,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let layout = &spec.layout;
    let stream = exchange(combine(&spec.combined, stream, context), &spec.key, context);
    let input = arrange::<Epoch, Spine<Epoch>>(stream, layout, "ArrangeDistinct", context);
    let key = layout.key_names();
    let rows = reduce::<_, NullTrace<Epoch>, _>(input, "Distinct", key, context, Threshold);
    deltas(rows.stream, layout.clone(), all_columns(layout.schema()), context)
}

/// Weight one while the weight of the input is positive.
struct Threshold;

impl Logic for Threshold {
    fn reduce(
        &mut self,
        changes: &Changes,
        key: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
    ) {
        let mut weight = prior.input(changes.key(key)).map_or(0, |rows| weight_of(rows));
        for slice in changes.time_slices(key) {
            let time = changes.change(slice.start).time;
            let was_there = weight > 0;
            for row in slice {
                weight = add(weight, changes.change(row).weight);
            }
            let leaves = fault::armed(Fault::LeaveEarly) && weight == 1;
            match (was_there, weight > 0 && !leaves) {
                (false, true) => output.push(&[], time, 1),
                (true, false) => output.push(&[], time, -1),
                _ => {}
            }
        }
    }
}
