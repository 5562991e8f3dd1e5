//! Errors as rows, kept while their cause exists.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, Spine};
use std::sync::Arc;

use arrow::array::{AsArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, UInt64Type};

use crate::fault::{self, Fault};
use crate::map::error_schema;
use crate::movement::delta::DeltaStream;
use crate::movement::exchange::exchange_by_key;
use crate::reductions::reduce::{Changes, Logic, Output, Prior, Unkept, reduce};
use crate::rows::codec::{CodecError, Encoded};
use crate::rows::layout::Layout;
use crate::rows::weight::{add, weight_of};
use crate::state::arrangement::{Arrangement, Kept, encode};
use crate::state::states;

/// How errors are kept.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Of errors as they come.
    rows: Layout,
    /// Of errors with their epoch.
    layout: Layout,
}

impl Spec {
    /// Errors of [`error_schema`].
    pub fn compile() -> Result<Self, CodecError> {
        let fields = error_schema().fields().iter().cloned().collect::<Vec<_>>();
        let epoch = Arc::new(Field::new("epoch", DataType::UInt64, false));
        let schema = Arc::new(Schema::new([fields, vec![epoch]].concat()));
        Ok(Self { rows: Layout::rows(error_schema())?, layout: Layout::dense(schema, &[0, 1, 2])? })
    }
}

/// Keeps errors with the epoch in which each first appeared, as a last column `epoch`.
///
/// An error is removed with its cause. Of equal errors the latest is removed first.
pub fn keep_errors<'scope>(
    spec: &Spec,
    errors: DeltaStream<'scope, Epoch>,
    context: &StateContext,
) -> Kept<'scope> {
    let Spec { rows, layout } = spec.clone();
    let errors = match states::is_dealt() {
        true => exchange_by_key(errors, &rows, context),
        false => errors,
    };
    let logic =
        FirstSeen { layout: layout.clone(), epoch: Encoded::counted(context), seen: Vec::new() };
    let changes = Unkept { rows: errors, encode: encode(&rows, context) };
    let arranged =
        reduce::<Spine<Epoch>, _>(changes, "FirstSeen", layout.key_names(), context, logic);
    Arrangement::kept(arranged, layout)
}

/// Adds the epoch in which an error appeared, and removes the error under the same epoch.
struct FirstSeen {
    layout: Layout,
    epoch: Encoded,
    /// Of the current key: encoded epochs, ascending, and the number of errors of each.
    seen: Vec<(Vec<u8>, i64)>,
}

impl Logic for FirstSeen {
    fn reduce(
        &mut self,
        changes: &Changes,
        key_number: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
    ) {
        self.seen.clear();
        if let Some(rows) = prior.output(changes.key(key_number)) {
            while let Some(epoch) = rows.val() {
                self.seen.push((epoch.to_vec(), weight_of(rows)));
                rows.step_val();
            }
        }
        // As bytes they are in another order.
        let (layout, key) = (&self.layout, changes.key(key_number));
        self.seen.sort_by_cached_key(|(epoch, _)| epoch_of(layout, key, epoch));
        for slice in changes.time_slices(key_number) {
            let time = changes.change(slice.start).time;
            let mut weight = slice.fold(0, |sum, row| add(sum, changes.change(row).weight));
            if weight > 0 {
                self.epoch.clear();
                let column = Arc::new(UInt64Array::from(vec![time])) as _;
                self.layout.encode_values(&[column], 1, &mut self.epoch);
                output.push(self.epoch.get(0), time, weight);
                self.seen.push((self.epoch.get(0).to_vec(), weight));
            }
            while weight < 0 && !fault::armed(Fault::KeepErrors) {
                let Some((epoch, count)) = self.seen.last_mut() else { break };
                let taken = (*count).min(-weight);
                if taken > 0 {
                    output.push(epoch, time, -taken);
                    *count -= taken;
                    weight += taken;
                }
                if *count <= 0 {
                    self.seen.pop();
                }
            }
        }
    }
}

/// The epoch of an error with this key and value.
fn epoch_of(layout: &Layout, key: &[u8], value: &[u8]) -> Epoch {
    let last = layout.schema().fields().len() - 1;
    let columns = layout.decode([key], [value], &[last]);
    columns[0].as_primitive::<UInt64Type>().value(0)
}
