//! Decoding the output of reductions.
//!
//! A reduction emits batches of encoded rows. These operators turn them into deltas.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Cursor, Epoch};
use timely::dataflow::Stream;

use crate::arrangement::scan_each;
use crate::delta::{Delta, DeltaStream, EncodedDelta};
use crate::fuel::{Produced, fueled};

/// The rows that `decode` makes of encoded ones. It must take all rows of the delta it is given.
pub(crate) fn decoded<'scope>(
    batches: Stream<'scope, Epoch, Vec<Batch<Epoch>>>,
    context: &StateContext,
    mut decode: impl FnMut(&mut EncodedDelta<Epoch>) -> Delta<Epoch> + 'static,
) -> DeltaStream<'scope, Epoch> {
    decoded_with_errors(batches, context, move |encoded| Produced::from(decode(encoded))).0
}

/// The rows and the errors that `decode` makes of encoded rows. It must take all rows of the delta it is given.
pub(crate) fn decoded_with_errors<'scope>(
    batches: Stream<'scope, Epoch, Vec<Batch<Epoch>>>,
    context: &StateContext,
    mut decode: impl FnMut(&mut EncodedDelta<Epoch>) -> Produced<Epoch> + 'static,
) -> (DeltaStream<'scope, Epoch>, DeltaStream<'scope, Epoch>) {
    let mut encoded = EncodedDelta::new(context);
    let advance =
        move |cursor: &mut Cursor<Epoch>| encoded.fill(cursor).then(|| decode(&mut encoded));
    fueled(batches, "Decode", context, scan_each, advance)
}
