//! Several batches into one.
//!
//! Merging advances each time to the frontier `since`: to the earliest time that all times beyond `since`
//! find at or before them exactly when they found the old one so. Times that were different may then be one,
//! so that the updates of a row are sorted anew and added up; those that come to zero are gone.
//!
//! A page that lies between two keys of all other sources, and in which there is nothing to add up, becomes
//! part of the merged batch as it is, with the time it has: keys that ascend with time, as numbers of orders
//! do, are hardly copied at all.

use differential_dataflow::lattice::Lattice;
use differential_dataflow::trace::{Description, Merger};
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;

use crate::batch::Batch;
use crate::builder::BatchBuilder;
use crate::cursors::Cursors;
use crate::fault::{self, Fault};
use crate::memory::{StateContext, context};
use crate::page::PageLimits;
use crate::time::PageTime;

/// All updates of `sources`, added up after advancing them to `since`, as a batch of this description.
///
/// With an empty `since` times stay as they are.
///
/// # Panics
///
/// If the weights of one row at one time add up to more than an `i64` holds.
pub fn merge<T: PageTime>(
    sources: &[Batch<T>],
    since: AntichainRef<'_, T>,
    description: Description<T>,
    context: &StateContext,
) -> Batch<T> {
    let mut merger = BatchMerger::over(sources, since, description, context);
    let mut fuel = isize::MAX;
    merger.advance(&mut fuel);
    merger.done()
}

/// What describes consecutive batches once they are merged with times advanced to `since`.
pub(crate) fn merged_description<T: PageTime>(
    sources: &[Batch<T>],
    since: AntichainRef<'_, T>,
) -> Description<T> {
    let (first, last) = match sources {
        [first, .., last] => (first.description(), last.description()),
        [only] => (only.description(), only.description()),
        [] => panic!("a merge has at least one source"),
    };
    for pair in sources.windows(2) {
        let (earlier, later) = (pair[0].description(), pair[1].description());
        assert_eq!(earlier.upper(), later.lower(), "merged batches have to be consecutive");
    }
    let since = sources
        .iter()
        .fold(since.to_owned(), |since, source| since.join(source.description().since()));
    Description::new(first.lower().clone(), last.upper().clone(), since)
}

/// A merge in progress.
pub struct BatchMerger<T> {
    sources: Cursors<T>,
    since: Antichain<T>,
    builder: BatchBuilder<T>,
    description: Description<T>,
    /// The updates of the row in hand.
    updates: Vec<(T, i64)>,
}

impl<T: PageTime> BatchMerger<T> {
    fn over(
        sources: &[Batch<T>],
        since: AntichainRef<'_, T>,
        description: Description<T>,
        context: &StateContext,
    ) -> BatchMerger<T> {
        let limits = sources.first().map_or_else(PageLimits::default, Batch::limits);
        let files = sources.iter().filter(|source| source.is_file());
        let expected = files.map(Batch::bytes).sum();
        BatchMerger {
            sources: Cursors::scan(sources.iter().cloned()),
            since: since.to_owned(),
            builder: BatchBuilder::with_limits(limits, context).expecting(expected),
            description,
            updates: Vec::new(),
        }
    }

    /// Merges on while there is fuel, of which each update, or page that is taken as it is, takes one; leaves some only when all is done.
    fn advance(&mut self, fuel: &mut isize) {
        while *fuel > 0 {
            let Some(key) = self.sources.key() else {
                return;
            };
            if let Some(page) = self.sources.page_ahead()
                && page.is_settled()
                && (fault::armed(Fault::SkipPage) || self.builder.push_page(page))
            {
                *fuel -= 1;
                self.sources.skip_page();
                continue;
            }
            let Some(val) = self.sources.val() else {
                self.sources.step_key();
                continue;
            };
            let (since, updates) = (self.since.borrow(), &mut self.updates);
            updates.clear();
            self.sources.updates(|mut time, weight| {
                if weight < 0 && fault::armed(Fault::LoseRetraction) {
                    return;
                }
                time.advance_by(since);
                updates.push((time, weight));
            });
            *fuel = fuel.saturating_sub_unsigned(updates.len());
            // The builder adds up equal times.
            updates.sort_unstable_by_key(|update| update.0);
            for (time, weight) in updates {
                self.builder.push(key, val, time, *weight);
            }
            self.sources.step_val();
        }
    }
}

impl<T: PageTime> Merger<Batch<T>> for BatchMerger<T> {
    /// Only spines of differential-dataflow call this, which have no context to hand in: it is that of the thread.
    fn new(source1: &Batch<T>, source2: &Batch<T>, since: AntichainRef<'_, T>) -> Self {
        let sources = [source1.clone(), source2.clone()];
        let description = merged_description(&sources, since);
        Self::over(&sources, since, description, &context::current())
    }

    fn work(&mut self, _source1: &Batch<T>, _source2: &Batch<T>, fuel: &mut isize) {
        self.advance(fuel);
    }

    fn done(self) -> Batch<T> {
        self.builder.finish(self.description)
    }
}
