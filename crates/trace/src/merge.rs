//! Merging several batches into one.
//!
//! A merge advances each time to the frontier `since`: to a representative that compares with all times at or beyond
//! `since` as the original does. Different times may become equal. So the updates of each row are sorted again and
//! consolidated, and those with sum zero are dropped.
//!
//! A page whose keys lie between two neighbouring keys of all other sources, and within which nothing can be
//! consolidated, is taken over as it is, with its own time. Keys that ascend with time, as order numbers do, are hardly
//! copied at all.

use differential_dataflow::lattice::Lattice;
use differential_dataflow::trace::{self, Description, Merger};
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;

use crate::batch::Batch;
use crate::bound::{Bound, FirstKey};
use crate::builder::BatchBuilder;
use crate::cursors::Cursors;
use crate::fault::{self, Fault};
use crate::last_rows::LastRows;
use crate::memory::{StateContext, context};
use crate::page::{Page, PageLimits};
use crate::time::PageTime;
use crate::weight;

/// All updates of `sources`, advanced to `since` and consolidated, as a batch of this description. The result goes to
/// memory or to a file, as the budget of `context` has it.
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
    BatchMerger::new(sources, since, description, limits_of(sources), None, context).finish()
}

/// The limits of the pages of a merge: those of the first source.
pub(crate) fn limits_of<T>(sources: &[Batch<T>]) -> PageLimits {
    sources.first().map_or_else(PageLimits::default, Batch::limits)
}

/// The description of consecutive batches after a merge that advances times to `since`.
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
    /// The updates of the current row.
    updates: Vec<(T, i64)>,
    /// The rows below it are dropped.
    bound: Option<Bound>,
    /// But for these.
    last: LastRows<T>,
    /// The first key that is kept, if rows are sorted by the column of the bound.
    first: Option<FirstKey>,
    /// How many updates of the sources it has gone through.
    progress: usize,
}

impl<T: PageTime> BatchMerger<T> {
    /// A merge as [`merge`] does it, with pages within `limits`, and without the rows below `bound`.
    pub(crate) fn new(
        sources: &[Batch<T>],
        since: AntichainRef<'_, T>,
        description: Description<T>,
        limits: PageLimits,
        bound: Option<Bound>,
        context: &StateContext,
    ) -> BatchMerger<T> {
        let files = sources.iter().filter(|source| source.is_file());
        let expected = files.map(Batch::bytes).sum();
        BatchMerger {
            sources: Cursors::scan_above(sources.iter().cloned(), bound),
            since: since.to_owned(),
            builder: BatchBuilder::with_limits(limits, context).expecting(expected),
            description,
            updates: Vec::new(),
            bound,
            last: LastRows::new(bound.as_ref()),
            first: bound.and_then(|bound| bound.first_key()),
            progress: 0,
        }
    }

    /// How many updates of the sources it has gone through.
    pub(crate) fn progress(&self) -> usize {
        self.progress
    }

    /// Whether it has gone through all updates.
    pub(crate) fn is_done(&self) -> bool {
        self.sources.key().is_none()
    }

    /// Does all of the merge.
    pub(crate) fn finish(mut self) -> Batch<T> {
        let mut fuel = isize::MAX;
        self.advance(&mut fuel);
        self.done()
    }

    /// Merges until all is done or the fuel is used up. An update costs one unit, or a sixteenth on a page that is taken
    /// over. Rows that are sorted by the column of the bound are skipped by their keys, and their pages are not read. Fuel
    /// is left only when all is done.
    pub(crate) fn advance(&mut self, fuel: &mut isize) {
        while *fuel > 0 {
            let Some(key) = self.sources.key() else {
                return;
            };
            if let Some(first) = &self.first
                && first.is_above(key)
            {
                self.sources.seek_key(first.bytes());
                *fuel = fuel.saturating_sub(1);
                continue;
            }
            if let Some(page) = self.sources.whole_page()
                && page.is_settled()
                && self.keeps_all(page)
                && (fault::armed(Fault::SkipPage) || {
                    self.last.release(&mut self.builder);
                    self.builder.push_page(page)
                })
            {
                *fuel = fuel.saturating_sub_unsigned(page.updates().div_ceil(16));
                self.progress += page.updates();
                self.sources.skip_page();
                continue;
            }
            let Some(val) = self.sources.val() else {
                self.sources.step_key();
                continue;
            };
            let is_below = self.bound.is_some_and(|bound| bound.forgets(key, val));
            if is_below && !self.last.admits(key, &mut self.builder) {
                *fuel = fuel.saturating_sub(1);
                self.sources.updates(|_, _| self.progress += 1);
                self.sources.step_val();
                continue;
            }
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
            self.progress += updates.len();
            // The builder adds equal times up.
            updates.sort_unstable_by_key(|update| update.0);
            weight::check(updates);
            if is_below && self.last.hold(val, updates) {
                self.sources.step_val();
                continue;
            }
            self.last.release(&mut self.builder);
            for (time, weight) in updates {
                self.builder.push(key, val, time, *weight);
            }
            self.sources.step_val();
        }
    }

    /// Whether no row of a page is below the bound.
    fn keeps_all(&self, page: &Page) -> bool {
        // Its first key is needed, and so are those after it, unless it is NULL: then they may be below the bound.
        let is_sorted_behind = self.first.is_some() && page.key(0).first() == Some(&1);
        is_sorted_behind || self.bound.is_none_or(|bound| !bound.forgets_some(page))
    }
}

impl<T: PageTime> trace::Batch for Batch<T> {
    type Merger = BatchMerger<T>;

    fn empty(lower: Antichain<T>, upper: Antichain<T>) -> Self {
        let since = Antichain::from_elem(T::minimum());
        let description = Description::new(lower, upper, since);
        Batch::from_pages(Vec::new(), PageLimits::default(), description, None)
    }
}

impl<T: PageTime> Merger<Batch<T>> for BatchMerger<T> {
    /// Only differential-dataflow's own spines call this. They hand in no context, so it is the one that the thread has
    /// entered.
    fn new(source1: &Batch<T>, source2: &Batch<T>, since: AntichainRef<'_, T>) -> Self {
        let sources = [source1.clone(), source2.clone()];
        let description = merged_description(&sources, since);
        let limits = limits_of(&sources);
        BatchMerger::new(&sources, since, description, limits, None, &context::current())
    }

    fn work(&mut self, _source1: &Batch<T>, _source2: &Batch<T>, fuel: &mut isize) {
        self.advance(fuel);
    }

    fn done(mut self) -> Batch<T> {
        self.last.release(&mut self.builder);
        self.builder.finish(self.description)
    }
}
