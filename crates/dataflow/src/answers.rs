//! Batches of answers, decoded.
//!
//! What folds groups puts out batches of encoded answers; one of these operators makes deltas of them.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Cursor, Epoch};
use timely::dataflow::Stream;

use crate::arrangement::{Gathered, read_each};
use crate::delta::{Delta, DeltaStream};
use crate::pieces::{Piece, in_pieces};

/// What `decode` makes of the answers. It takes all that was gathered.
pub(crate) fn rows<'scope>(
    answers: Stream<'scope, Epoch, Vec<Batch<Epoch>>>,
    context: &StateContext,
    mut decode: impl FnMut(&mut Gathered<Epoch>) -> Delta<Epoch> + 'static,
) -> DeltaStream<'scope, Epoch> {
    rows_and_errors(answers, context, move |gathered| Piece::from(decode(gathered))).0
}

/// What `decode` makes of the answers: rows, and errors if there are any. It takes all that was gathered.
pub(crate) fn rows_and_errors<'scope>(
    answers: Stream<'scope, Epoch, Vec<Batch<Epoch>>>,
    context: &StateContext,
    mut decode: impl FnMut(&mut Gathered<Epoch>) -> Piece<Epoch> + 'static,
) -> (DeltaStream<'scope, Epoch>, DeltaStream<'scope, Epoch>) {
    let mut gathered = Gathered::new(context);
    let next = move |cursor: &mut Cursor<Epoch>| {
        gathered.fill(cursor, |time| time).then(|| decode(&mut gathered))
    };
    in_pieces(answers, context, "Answers", read_each, next)
}
