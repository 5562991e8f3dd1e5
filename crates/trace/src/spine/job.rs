//! A merge as plain data.

use differential_dataflow::trace::Description;
use timely::PartialOrder;
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;

use crate::batch::Batch;
use crate::bound::Bound;
use crate::memory::StateContext;
use crate::merge::{BatchMerger, limits_of, merged_description};
use crate::page::PageLimits;
use crate::time::PageTime;

/// A merge of consecutive batches: which they are, how far their times are advanced, below which bound rows are dropped, and
/// the description and page limits of the result.
///
/// A job refers to nothing but its inputs, which are immutable: any thread may run it, and the spine keeps showing
/// the inputs meanwhile.
pub(super) struct MergeJob<T> {
    inputs: Vec<Batch<T>>,
    since: Antichain<T>,
    bound: Option<Bound>,
    output: Description<T>,
    limits: PageLimits,
}

impl<T: PageTime> MergeJob<T> {
    /// The merge of these batches, of which there is at least one, with times advanced to `since`, and without the rows below
    /// `bound`.
    pub(super) fn new(
        inputs: Vec<Batch<T>>,
        since: AntichainRef<'_, T>,
        bound: Option<Bound>,
    ) -> Self {
        let output = merged_description(&inputs, since);
        let limits = limits_of(&inputs);
        MergeJob { inputs, since: since.to_owned(), bound, output, limits }
    }

    /// The bytes of the inputs.
    pub(super) fn bytes(&self) -> usize {
        self.inputs.iter().map(Batch::bytes).sum()
    }

    /// The updates of the inputs.
    pub(super) fn updates(&self) -> usize {
        self.inputs.iter().map(Batch::len).sum()
    }

    /// Whether the times of all updates are advanced as far as the result tells times apart.
    pub(super) fn passes_all(&self) -> bool {
        PartialOrder::less_equal(self.output.upper(), &self.since)
    }

    /// The result, if that takes no work: the only input that has updates, described as all of them. Times are not
    /// advanced.
    pub(super) fn trivial(&self) -> Option<Batch<T>> {
        let mut full = self.inputs.iter().filter(|input| !input.is_empty());
        match (full.next(), full.next()) {
            (Some(only), None) if self.inputs.len() > 1 => {
                let since = only.description().since().clone();
                let (lower, upper) = (self.output.lower().clone(), self.output.upper().clone());
                Some(only.described(Description::new(lower, upper, since)))
            }
            _ => None,
        }
    }

    /// The only input, if a merge would leave it as it is.
    pub(super) fn settled(&self) -> Option<Batch<T>> {
        match self.inputs.as_slice() {
            [only] if self.bound.is_none() && only.has_one_time() => Some(only.clone()),
            _ => None,
        }
    }

    /// The merge, to be done step by step. The result is in memory or in a file, as the budget of `context` has it.
    ///
    /// It unwinds if a file cannot be read or written, or a sum of weights leaves the range of an `i64`.
    pub(super) fn merger(&self, context: &StateContext) -> BatchMerger<T> {
        let (since, output) = (self.since.borrow(), self.output.clone());
        BatchMerger::new(&self.inputs, since, output, self.limits, self.bound, context)
    }
}
