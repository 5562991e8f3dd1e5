//! When a spine merges its layers.
//!
//! The policy looks at the sizes of layers and at how many of their updates may cancel. It names the layers to merge, and leaves the work to others.
//!
//! # By size
//!
//! A new layer is merged with the older ones before it, as long as each of these has less than twice the updates of
//! what is merged behind it. On the heap, then, each layer has at least twice the updates of the next: there are
//! logarithmically many layers, and an update is copied a logarithmic number of times. Rewriting a file costs more than
//! looking for a key in one more of them, so files of about the same size are merged four at a time.
//!
//! # By churn
//!
//! Sizes alone would not free memory: an insertion in a large layer and its deletion in a small one meet late, and
//! cancel only if logical compaction has passed both. So every layer counts its *fresh* updates: deletions, and as many
//! updates that they can cancel, that were not yet merged with everything older under a frontier past all of them. When
//! a third of the updates in the layers that logical compaction has passed are fresh, these layers are merged into one.
//! In totally ordered time that leaves one update per row. It copies at most three updates for each fresh one, and a
//! spine holds little more than three times its minimum, apart from what readers hold back and from equal rows that were
//! only inserted, which meet by size.

use std::ops::Range;

use crate::schedule::Merging;

/// What the policy sees of a layer.
pub(super) trait Shape {
    /// The number of updates.
    fn updates(&self) -> usize;
    /// The number of updates that may cancel in a merge with everything older.
    fn fresh(&self) -> usize;
    /// The bytes of the pages.
    fn bytes(&self) -> usize;
    /// Whether the pages are in a file.
    fn is_file(&self) -> bool;
}

/// Names the layers to merge and to spill.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    merging: Merging,
}

/// How many files of about the same size are merged at once.
const FILES: usize = 4;

/// How many times the updates of all younger layers in a merge an older one has that stays out of it.
const GROWTH: usize = 2;

/// A merge by churn is due when one update in this many is fresh.
const FRESH: usize = 3;

impl Policy {
    pub(super) fn new(merging: Merging) -> Self {
        Policy { merging }
    }

    /// The youngest layers to merge for their sizes; `None` if all sizes are in proportion. Older layers may be due as
    /// well: ask again for those before the range.
    pub(super) fn by_size(&self, layers: &[impl Shape]) -> Option<Range<usize>> {
        let mut end = layers.len();
        while end > 1 {
            let start = self.run_before(&layers[..end]);
            if start + 1 < end {
                return Some(start..end);
            }
            end = start;
        }
        None
    }

    /// Where the run of layers begins that are to be merged with the last one; there is at least one layer.
    fn run_before(&self, layers: &[impl Shape]) -> usize {
        let mut start = layers.len() - 1;
        let mut sum = layers[start].updates();
        while let Some(older) = start.checked_sub(1)
            && match self.merging {
                Merging::InProportion => {
                    let layer = &layers[older];
                    sum == 0 || !layer.is_file() && layer.updates() < sum.saturating_mul(GROWTH)
                }
                Merging::Always => true,
                Merging::Never => sum == 0,
            }
        {
            start = older;
            sum += layers[older].updates();
        }
        match self.merging {
            Merging::InProportion => files_before(layers, start, sum),
            Merging::Always | Merging::Never => start,
        }
    }

    /// Whether the layers that logical compaction has passed, which are given, are to be merged into one because enough
    /// of their updates are fresh.
    pub(super) fn by_churn<'a>(&self, passed: impl Iterator<Item = &'a (impl Shape + 'a)>) -> bool {
        let (mut fresh, mut updates) = (0_usize, 0);
        for layer in passed {
            fresh += layer.fresh();
            updates += layer.updates();
        }
        fresh > 0 && fresh.saturating_mul(FRESH) >= updates
    }

    /// The layer to move to a file next: the largest of those on the heap that are worth one and that no job has.
    pub(super) fn next_to_spill(
        &self,
        layers: &[impl Shape],
        smallest_file: usize,
        is_free: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let is_worth_it = |&number: &usize| {
            let layer = &layers[number];
            let is_worth_it =
                layer.updates() > 0 && !layer.is_file() && layer.bytes() >= smallest_file;
            is_worth_it && is_free(number)
        };
        (0..layers.len()).filter(is_worth_it).max_by_key(|&layer| layers[layer].bytes())
    }
}

/// Where a merge begins that would begin at `start` and have so many `updates`: further back, if there are enough files
/// of about the same size.
fn files_before(layers: &[impl Shape], start: usize, updates: usize) -> usize {
    let files_at = |layer: usize| usize::from(layers[layer].is_file());
    let (mut first, mut largest, mut files) = (start, updates, files_at(start));
    while let Some(older) = first.checked_sub(1)
        && layers[older].updates() < largest.saturating_mul(GROWTH)
    {
        first = older;
        largest = largest.max(layers[older].updates());
        files += files_at(older);
    }
    if files < FILES { start } else { first }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A layer of a spine without its batch.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Drawn {
        updates: usize,
        fresh: usize,
        is_file: bool,
    }

    impl Shape for Drawn {
        fn updates(&self) -> usize {
            self.updates
        }
        fn fresh(&self) -> usize {
            self.fresh
        }
        fn bytes(&self) -> usize {
            self.updates * 16
        }
        fn is_file(&self) -> bool {
            self.is_file
        }
    }

    const IN_PROPORTION: Policy = Policy { merging: Merging::InProportion };

    fn layer(updates: usize, is_file: bool) -> Drawn {
        Drawn { updates, fresh: 0, is_file }
    }

    /// Adds a layer and does all merges that the policy names. Files stay files. How many updates were copied.
    fn insert(policy: Policy, layers: &mut Vec<Drawn>, new: Drawn) -> usize {
        layers.push(new);
        let (mut end, mut copied) = (layers.len(), 0);
        while let Some(range) = policy.by_size(&layers[..end]) {
            end = range.start;
            let updates = layers[range.clone()].iter().map(|layer| layer.updates).sum();
            let is_file = layers[range.clone()].iter().any(|layer| layer.is_file);
            copied += updates;
            layers.splice(range, [layer(updates, is_file)]);
        }
        copied
    }

    fn any_sizes() -> impl Strategy<Value = Vec<usize>> {
        prop::collection::vec(
            prop_oneof![1 => Just(0), 4 => 1..50_usize, 2 => 1..5000_usize],
            0..200,
        )
    }

    proptest! {
        #[test]
        fn layers_on_the_heap_at_least_double(sizes in any_sizes()) {
            let mut layers = Vec::new();
            for size in sizes {
                insert(IN_PROPORTION, &mut layers, layer(size, false));
                for pair in layers.windows(2) {
                    prop_assert!(pair[0].updates >= GROWTH * pair[1].updates, "{layers:?}");
                }
            }
        }

        #[test]
        fn an_update_on_the_heap_is_copied_a_logarithmic_number_of_times(sizes in any_sizes()) {
            let (mut layers, mut copied) = (Vec::new(), 0);
            for size in &sizes {
                copied += insert(IN_PROPORTION, &mut layers, layer(*size, false));
            }
            let updates: usize = sizes.iter().sum();
            // Each copy puts an update into a layer of at least 3/2 times the updates.
            let doublings = (updates.max(1) as f64).log(1.5).ceil() as usize + 1;
            prop_assert!(copied <= updates * doublings, "{copied} copies of {updates}");
        }

        #[test]
        fn files_are_few_and_a_merge_takes_several(sizes in any_sizes()) {
            let mut layers: Vec<Drawn> = Vec::new();
            for size in sizes {
                layers.push(layer(size, true));
                let mut end = layers.len();
                while let Some(range) = IN_PROPORTION.by_size(&layers[..end]) {
                    let full = layers[range.clone()].iter().filter(|layer| layer.updates > 0);
                    // Empty layers extend their neighbour; full ones wait until there are enough.
                    prop_assert!(full.count() <= 1 || range.len() >= FILES, "{range:?} of {layers:?}");
                    end = range.start;
                    let updates = layers[range.clone()].iter().map(|layer| layer.updates).sum();
                    layers.splice(range, [layer(updates, true)]);
                }
                prop_assert!(layers.len() <= FILES * 16, "{} layers", layers.len());
            }
        }

        #[test]
        fn a_merge_names_neighbours_that_are_there(
            sizes in prop::collection::vec((0..1000_usize, any::<bool>()), 0..20),
            merging in prop_oneof![
                Just(Merging::InProportion), Just(Merging::Always), Just(Merging::Never),
            ],
        ) {
            let layers: Vec<_> = sizes.into_iter().map(|(size, file)| layer(size, file)).collect();
            if let Some(range) = Policy::new(merging).by_size(&layers) {
                prop_assert!(range.start + 1 < range.end && range.end <= layers.len());
            }
        }

        #[test]
        fn churn_is_due_from_a_third_on(
            sizes in prop::collection::vec((0..1000_usize, 0..1000_usize), 0..10),
        ) {
            let layers: Vec<_> = sizes
                .into_iter()
                .map(|(updates, fresh)| Drawn { updates, fresh: fresh.min(updates), is_file: false })
                .collect();
            let fresh: usize = layers.iter().map(|layer| layer.fresh).sum();
            let updates: usize = layers.iter().map(|layer| layer.updates).sum();
            let is_due = IN_PROPORTION.by_churn(layers.iter());
            prop_assert_eq!(is_due, fresh > 0 && fresh * FRESH >= updates);
        }

        #[test]
        fn the_largest_layer_on_the_heap_is_spilled_first(
            sizes in prop::collection::vec((0..1000_usize, any::<bool>()), 0..20), least in 0..8000_usize,
        ) {
            let layers: Vec<_> = sizes.into_iter().map(|(size, file)| layer(size, file)).collect();
            let candidates = layers.iter().skip(1).filter(|layer| {
                !layer.is_file && layer.updates > 0 && layer.bytes() >= least
            });
            let largest = candidates.map(Shape::bytes).max();
            let spilled = IN_PROPORTION.next_to_spill(&layers, least, |layer| layer != 0);
            prop_assert_eq!(spilled.map(|layer| layers[layer].bytes()), largest);
        }
    }

    #[test]
    fn always_merges_everything_and_never_nothing() {
        let layers = [layer(1000, false), layer(10, true), layer(1, false)];
        assert_eq!(Policy::new(Merging::Always).by_size(&layers), Some(0..3));
        assert_eq!(Policy::new(Merging::Never).by_size(&layers), None);
        // An empty layer extends its neighbour in any case.
        let layers = [layer(1000, false), layer(0, false)];
        assert_eq!(Policy::new(Merging::Never).by_size(&layers), Some(0..2));
    }

    #[test]
    fn four_files_of_like_size_are_merged_at_once() {
        let mut layers = vec![layer(100, true); 3];
        assert_eq!(IN_PROPORTION.by_size(&layers), None);
        layers.push(layer(100, true));
        assert_eq!(IN_PROPORTION.by_size(&layers), Some(0..4));
        // A much larger file stays out of it.
        layers.insert(0, layer(1000, true));
        assert_eq!(IN_PROPORTION.by_size(&layers), Some(1..5));
    }
}
