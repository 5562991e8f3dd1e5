//! DISTINCT: each row once, however often it is there.

use alluvium_trace::memory::context;
use alluvium_trace::{Epoch, NullTrace, PageTime, Spine};
use arrow::datatypes::SchemaRef;

use crate::arrangement::{Arrangement, arrange};
use crate::codec::CodecError;
use crate::delta::DeltaStream;
use crate::fault::{self, Fault};
use crate::fold::{Answer, Before, Changes, Logic, add, fold, weight_of};
use crate::layout::Layout;

/// The rows of `stream` that are there at least once, each with weight one.
///
/// Equal rows are on the same worker. Floats come out canonical.
pub fn distinct<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    schema: SchemaRef,
) -> Result<DeltaStream<'scope, Epoch>, CodecError> {
    let columns: Vec<usize> = (0..schema.fields().len()).collect();
    let layout = Layout::distinct(schema)?;
    let input = arrange::<Epoch, Spine<Epoch>>(stream, layout, "ArrangeDistinct");
    let key = input.layout.key_names();
    let arranged = fold::<Epoch, _, NullTrace<Epoch>, _>(
        input.arranged,
        input.as_of,
        &context::current(),
        "Distinct",
        key,
        Threshold,
    );
    Ok(Arrangement { arranged, layout: input.layout, as_of: 0 }.deltas(&columns))
}

/// One where the weight is above zero.
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
