//! Several streams as one.

use timely::dataflow::operators::Concatenate;
use timely::progress::Timestamp;

use super::DeltaStream;

/// The changes of all of these streams; `None` if there are none. A single one stays as it is, without an operator.
pub fn concatenated<'scope, T: Timestamp>(
    streams: impl IntoIterator<Item = DeltaStream<'scope, T>>,
) -> Option<DeltaStream<'scope, T>> {
    let mut streams = streams.into_iter();
    let first = streams.next()?;
    let mut rest = streams.peekable();
    if rest.peek().is_none() {
        return Some(first);
    }
    Some(first.scope().concatenate([first].into_iter().chain(rest)))
}
