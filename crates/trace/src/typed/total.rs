//! Counting where time is totally ordered.

use differential_dataflow::consolidation::consolidate;
use differential_dataflow::operators::arrange::Arranged;
use differential_dataflow::trace::cursor::cursor_list;
use differential_dataflow::trace::{BatchCursor, BatchReader, Cursor, Navigable, TraceReader};
use differential_dataflow::{AsCollection, Data, VecCollection};
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::Operator;
use timely::order::TotalOrder;
use timely::progress::{Antichain, Timestamp};

use super::codec::Codec;
use super::encoded::Encoded;
use super::weight::Weight;
use crate::weight;

/// `count_total` of a typed arrangement.
pub trait CountTotalTyped<'scope, K, T: Timestamp, R> {
    /// Each key with the sum of the weights of its values, where that is not zero. It keeps no state but the arrangement.
    ///
    /// # Panics
    ///
    /// Its operator, if a sum does not fit an `i64`.
    fn count_total_typed(self) -> VecCollection<'scope, T, (K, R), isize>;
}

impl<'scope, K, R, Tr> CountTotalTyped<'scope, K, Tr::Time, R> for Arranged<'scope, Tr>
where
    K: Codec + Data,
    R: Weight + Data,
    Tr: TraceReader<Batch: Navigable, Time: TotalOrder> + Clone + 'static,
    for<'a> BatchCursor<Tr>: Cursor<Time = Tr::Time, Diff = R, Key<'a> = Encoded<'a, K>>,
{
    fn count_total_typed(self) -> VecCollection<'scope, Tr::Time, (K, R), isize> {
        let mut trace = self.trace;
        let counts = self.stream.unary_frontier(Pipeline, "CountTotalTyped", move |_, _| {
            let mut upper = Antichain::from_elem(Tr::Time::minimum());
            move |(input, _), output| {
                let lower = upper.clone();
                let mut capability = None;
                let mut changes = Vec::new();
                input.for_each(|time, batches| {
                    capability.get_or_insert_with(|| time.retain(0));
                    changes.append(batches);
                });
                if let Some(last) = changes.last() {
                    upper.clone_from(last.upper());
                }
                if let Some(capability) = capability {
                    let mut session = output.session(&capability);
                    let counted = trace.cursor_through(lower.borrow());
                    let counted = counted.expect("no reader has compacted beyond what it has read");
                    count::<_, K, R>(counted, cursor_list(changes), |change| session.give(change));
                }
                trace.advance_upper(&mut upper);
                trace.set_logical_compaction(upper.borrow());
                trace.set_physical_compaction(upper.borrow());
            }
        });
        counts.as_collection()
    }
}

/// A cursor, and the storage that it reads.
type Reading<C> = (C, <C as Cursor>::Storage);

/// Gives the changes of the counts of all keys that have `changes`, after what is `counted` already.
fn count<C, K, R>(
    (mut counted, batches): Reading<C>,
    (mut changes, changed): Reading<C>,
    mut give: impl FnMut(((K, R), C::Time, isize)),
) where
    C: for<'a> Cursor<Diff = R, Key<'a> = Encoded<'a, K>>,
    K: Codec,
    R: Weight,
{
    let mut updates: Vec<(C::Time, R)> = Vec::new();
    while let Some(key) = changes.get_key(&changed) {
        while changes.val_valid(&changed) {
            changes.map_times(&changed, |time, weight| {
                updates.push((C::owned_time(time), C::owned_diff(weight)));
            });
            changes.step_val(&changed);
        }
        consolidate(&mut updates);
        let mut count = 0;
        counted.seek_key(&batches, key);
        while counted.get_key(&batches) == Some(key) && counted.val_valid(&batches) {
            counted.map_times(&batches, |_, weight| {
                count = weight::add(count, C::owned_diff(weight).store());
            });
            counted.step_val(&batches);
        }
        for (time, weight) in updates.drain(..) {
            let after = weight::add(count, weight.store());
            for (count, sign) in [(count, -1), (after, 1)] {
                if count != 0 {
                    give(((key.decode(), R::load(count)), time.clone(), sign));
                }
            }
            count = after;
        }
        changes.step_key(&changed);
    }
}
