//! Repartitioning: of the batches of several traces, those rows that belong in one.
//!
//! The traces have different rows of the same times. Their rows are merged, as a [merge](mod@crate::merge) does it, and those
//! that belong elsewhere are skipped.

use differential_dataflow::lattice::Lattice;
use differential_dataflow::trace::Description;
use timely::progress::Antichain;

use crate::batch::Batch;
use crate::builder::BatchBuilder;
use crate::cursors::Cursors;
use crate::memory::StateContext;
use crate::merge::limits_of;
use crate::time::PageTime;
use crate::weight;

/// The rows of `sources` whose keys `has_key` and whose values `has_value`, as a batch of all times before `upper`. Times are
/// advanced to where those of some source may be. The result, about one part in `parts` of the sources, goes to memory or to
/// a file, as the budget of `context` has it.
///
/// # Panics
///
/// If the weights of one row at one time add up to more than an `i64` holds.
pub fn deal<T: PageTime>(
    sources: &[Batch<T>],
    upper: Antichain<T>,
    parts: usize,
    mut has_key: impl FnMut(&[u8]) -> bool,
    mut has_value: impl FnMut(&[u8]) -> bool,
    context: &StateContext,
) -> Batch<T> {
    let lower = Antichain::from_elem(T::minimum());
    let sinces = sources.iter().map(|source| source.description().since());
    let since = sinces.fold(lower.clone(), |since, other| since.join(other));
    let files = sources.iter().filter(|source| source.is_file());
    let expected = files.map(Batch::bytes).sum::<usize>() / parts.max(1);
    let mut builder = BatchBuilder::with_limits(limits_of(sources), context).expecting(expected);
    let mut rows = Cursors::scan(sources.iter().cloned());
    let mut updates: Vec<(T, i64)> = Vec::new();
    let mut is_wanted = false;
    while let Some(key) = rows.key() {
        if !is_wanted && !has_key(key) {
            rows.step_key();
            continue;
        }
        is_wanted = true;
        let Some(value) = rows.val() else {
            is_wanted = false;
            rows.step_key();
            continue;
        };
        if has_value(value) {
            updates.clear();
            rows.updates(|mut time, weight| {
                time.advance_by(since.borrow());
                updates.push((time, weight));
            });
            // The builder adds equal times up.
            updates.sort_unstable_by_key(|update| update.0);
            weight::check(&updates);
            for (time, weight) in &updates {
                builder.push(key, value, time, *weight);
            }
        }
        rows.step_val();
    }
    builder.finish(Description::new(lower, upper, since))
}
