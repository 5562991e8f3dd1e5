//! DISTINCT: each row once, however many copies there are.

use alluvium_trace::{Epoch, NullTrace, PageTime, Spine};
use arrow::datatypes::SchemaRef;

use crate::arrangement::{arrange, deltas};
use crate::codec::CodecError;
use crate::delta::DeltaStream;
use crate::exchange::exchange;
use crate::fault::{self, Fault};
use crate::fold::{Answer, Before, Changes, Logic, fold};
use crate::key_columns::KeyColumns;
use crate::layout::{Layout, all_columns};
use crate::weight::{add, weight_of};

/// How rows are compared.
#[derive(Clone, Debug)]
pub struct Spec {
    key: KeyColumns,
    layout: Layout,
}

impl Spec {
    /// DISTINCT of rows of `schema`. Fails if a column cannot be a key.
    pub fn compile(schema: SchemaRef) -> Result<Self, CodecError> {
        let key = KeyColumns::new(&schema, &all_columns(&schema))?;
        Ok(Self { key, layout: Layout::distinct(schema)? })
    }
}

/// The rows of `stream` with a positive weight, each with weight one.
///
/// Exchanges rows by all columns. Floats come out canonical.
pub fn distinct<'scope>(
    spec: &Spec,
    stream: DeltaStream<'scope, Epoch>,
) -> DeltaStream<'scope, Epoch> {
    let layout = &spec.layout;
    let stream = exchange(stream, &spec.key);
    let input = arrange::<Epoch, Spine<Epoch>>(stream, layout, "ArrangeDistinct");
    let key = layout.key_names();
    let rows = fold::<Epoch, _, NullTrace<Epoch>, _>(input, "Distinct", key, Threshold);
    deltas(rows.stream, layout.clone(), all_columns(layout.schema()))
}

/// Weight one while the weight of the input is positive.
struct Threshold;

impl<T: PageTime> Logic<T> for Threshold {
    fn fold(
        &mut self,
        changes: &Changes<T>,
        key: usize,
        before: &mut Before<'_, T>,
        answer: &mut Answer<T>,
    ) {
        let mut weight = before.input(changes.key(key)).map_or(0, |rows| weight_of(rows));
        for moment in changes.moments(key) {
            let time = changes.change(moment.start).time;
            let was_there = weight > 0;
            for row in moment {
                weight = add(weight, changes.change(row).weight);
            }
            let leaves = fault::armed(Fault::LeaveEarly) && weight == 1;
            match (was_there, weight > 0 && !leaves) {
                (false, true) => answer.push(&[], time, 1),
                (true, false) => answer.push(&[], time, -1),
                _ => {}
            }
        }
    }
}
