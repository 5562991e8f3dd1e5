//! When a spine merges its layers.
//!
//! The policy looks at the sizes of layers and at how many of their updates may cancel. It names the layers to merge, and leaves the work to others.
//!
//! # By size
//!
//! Layers of about the same size are merged four at a time, the youngest first; eight at a time if there are files among
//! them. So there are logarithmically many layers, and an update is copied a logarithmic number of times, half or a third
//! as often as if they were merged two at a time. That is the shape for state that is written more than it is read.
//!
//! # By reads
//!
//! A look-up seeks its key in each layer, where one would do. Layers count the seeks. As soon as the younger ones of a
//! spine have cost as many needless seeks as it takes to merge them with an older one, they are merged. So merges are paid
//! for by what was read: state that is read more than it is written comes to have few layers, and neither kind of state
//! costs more than about twice what it would if its future were known. This is the ski-rental problem: rent for as much as
//! it costs to buy, then buy.
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

/// The policy's view of a layer.
pub(super) trait Shape {
    /// The number of updates.
    fn updates(&self) -> usize;
    /// The number of updates that may cancel in a merge with everything older.
    fn fresh(&self) -> usize;
    /// The bytes of the pages.
    fn bytes(&self) -> usize;
    /// Whether the pages are in a file.
    fn is_file(&self) -> bool;
    /// How often readers have sought a key in it, which they may do meanwhile.
    fn seeks(&self) -> u64;
}

/// Why layers are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Size,
    Reads,
    Churn,
    Bound,
}

/// Names the layers to merge and to spill.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    merging: Merging,
}

/// How many layers of about the same size are merged at once, on the heap.
const FAN_IN: usize = 4;

/// The same if one of them is in a file: writing them again costs more.
const FAN_IN_OF_FILES: usize = 8;

/// How many times the updates of the largest younger layer in a merge an older one has that stays out of it.
const GROWTH: usize = 2;

/// How many updates on the heap are merged for each needless seek.
const UPDATES_PER_SEEK: u64 = 4;

/// The same where some are in files: a seek takes four times as long there, a merge does not.
const UPDATES_PER_SEEK_IN_FILES: u64 = 10;

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

    /// The youngest layers to merge because look-ups have sought keys in each of them; `None` if there are none.
    pub(super) fn by_reads(&self, layers: &[impl Shape]) -> Option<Range<usize>> {
        if self.merging != Merging::InProportion {
            return None;
        }
        let (mut seeks, mut most, mut updates, mut start) = (0, 0, 0, None);
        let mut updates_per_seek = UPDATES_PER_SEEK;
        for (number, layer) in layers.iter().enumerate().rev() {
            if layer.is_file() {
                updates_per_seek = UPDATES_PER_SEEK_IN_FILES;
            }
            // Other threads keep seeking: asked twice, a layer may give two numbers.
            let sought = layer.seeks();
            seeks += sought;
            most = most.max(sought);
            updates += layer.updates() as u64;
            let needless = seeks - most;
            if needless > 0 && needless.saturating_mul(updates_per_seek) >= updates {
                start = Some(number);
            }
        }
        start.map(|start| start..layers.len())
    }

    /// Where the run of layers begins that are to be merged with the last one; there is at least one layer.
    fn run_before(&self, layers: &[impl Shape]) -> usize {
        let mut start = layers.len() - 1;
        let mut sum = layers[start].updates();
        // An empty layer extends its neighbour.
        while let Some(older) = start.checked_sub(1)
            && (sum == 0 || layers[older].updates() == 0 || self.merging == Merging::Always)
        {
            start = older;
            sum += layers[older].updates();
        }
        match self.merging {
            Merging::InProportion => like_before(layers, start, sum),
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

/// Where a merge begins that would begin at `start` and have so many `updates`: further back, if there are enough layers
/// of about the same size.
fn like_before(layers: &[impl Shape], start: usize, updates: usize) -> usize {
    let (mut first, mut largest) = (start, updates);
    // Empty layers wait for nothing.
    let mut full = usize::from(updates > 0);
    let mut has_file = layers[start..].iter().any(Shape::is_file);
    while let Some(older) = first.checked_sub(1)
        && layers[older].updates() < largest.saturating_mul(GROWTH)
    {
        first = older;
        largest = largest.max(layers[older].updates());
        full += usize::from(layers[older].updates() > 0);
        has_file |= layers[older].is_file();
    }
    if full < if has_file { FAN_IN_OF_FILES } else { FAN_IN } { start } else { first }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// A layer of a spine without its batch.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Drawn {
        updates: usize,
        fresh: usize,
        is_file: bool,
        seeks: u64,
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
        fn seeks(&self) -> u64 {
            self.seeks
        }
    }

    const IN_PROPORTION: Policy = Policy { merging: Merging::InProportion };

    fn layer(updates: usize, is_file: bool) -> Drawn {
        Drawn { updates, fresh: 0, is_file, seeks: 0 }
    }

    /// Adds a layer and does all merges that the policy names. How many updates were copied.
    fn insert(policy: Policy, layers: &mut Vec<Drawn>, new: Drawn) -> usize {
        layers.push(new);
        let copied = settle(layers, |layers| policy.by_reads(layers));
        copied + settle(layers, |layers| policy.by_size(layers))
    }

    /// Merges as long as there is something to merge, the youngest layers first.
    fn settle(layers: &mut Vec<Drawn>, next: impl Fn(&[Drawn]) -> Option<Range<usize>>) -> usize {
        let (mut end, mut copied) = (layers.len(), 0);
        while let Some(range) = next(&layers[..end]) {
            end = range.start;
            let updates = layers[range.clone()].iter().map(|layer| layer.updates).sum();
            let is_file = layers[range.clone()].iter().any(|layer| layer.is_file);
            // The only full layer of a merge is taken as it is.
            let full = layers[range.clone()].iter().filter(|layer| layer.updates > 0).count();
            copied += if full > 1 { updates } else { 0 };
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
        fn layers_are_few_and_a_merge_takes_several(sizes in any_sizes(), is_file in any::<bool>()) {
            let mut layers: Vec<Drawn> = Vec::new();
            for size in sizes {
                layers.push(layer(size, is_file));
                let mut end = layers.len();
                while let Some(range) = IN_PROPORTION.by_size(&layers[..end]) {
                    let full = layers[range.clone()].iter().filter(|layer| layer.updates > 0);
                    // Empty layers extend their neighbour; full ones wait until there are enough.
                    let fan_in = if is_file { FAN_IN_OF_FILES } else { FAN_IN };
                    prop_assert!(full.count() <= 1 || range.len() >= fan_in, "{range:?} of {layers:?}");
                    end = range.start;
                    let updates = layers[range.clone()].iter().map(|layer| layer.updates).sum();
                    layers.splice(range, [layer(updates, is_file)]);
                }
                prop_assert!(layers.len() <= FAN_IN_OF_FILES * 16, "{} layers", layers.len());
            }
        }

        #[test]
        fn an_update_is_copied_a_logarithmic_number_of_times(sizes in any_sizes()) {
            let (mut layers, mut copied) = (Vec::new(), 0);
            for size in &sizes {
                copied += insert(IN_PROPORTION, &mut layers, layer(*size, false));
            }
            let updates: usize = sizes.iter().sum();
            // Each copy puts an update into a layer of at least 3/2 times the updates.
            let doublings = (updates.max(1) as f64).log(1.5).ceil() as usize + 1;
            prop_assert!(copied <= updates * doublings, "{copied} copies of {updates}");
        }

        /// Merging for reads copies no more than was sought for nothing, and where it is not done that was less than it
        /// would cost.
        #[test]
        fn merges_for_reads_cost_what_needless_seeks_have_cost(
            steps in prop::collection::vec((1..2000_usize, 0..3000_u64), 1..200),
        ) {
            let (mut layers, mut copied, mut needless) = (Vec::<Drawn>::new(), 0, 0);
            for (updates, look_ups) in steps {
                layers.push(layer(updates, false));
                copied += settle(&mut layers, |layers| IN_PROPORTION.by_reads(layers));
                layers.iter_mut().for_each(|layer| layer.seeks += look_ups);
                needless += look_ups * (layers.len() as u64 - 1);
                prop_assert!(copied as u64 <= needless * UPDATES_PER_SEEK);
            }
            settle(&mut layers, |layers| IN_PROPORTION.by_reads(layers));
            let seeks: u64 = layers.iter().map(|layer| layer.seeks).sum();
            let most = layers.iter().map(|layer| layer.seeks).max().unwrap_or(0);
            let updates: usize = layers.iter().map(|layer| layer.updates).sum();
            prop_assert!((seeks - most) * UPDATES_PER_SEEK <= updates as u64);
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
                .map(|(updates, fresh)| Drawn { fresh: fresh.min(updates), ..layer(updates, false) })
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
    fn four_layers_of_like_size_are_merged_at_once_and_eight_if_there_are_files() {
        for (is_file, fan_in) in [(false, 4), (true, 8)] {
            let mut layers = vec![layer(110, is_file)];
            layers.extend(vec![layer(100, false); fan_in - 2]);
            assert_eq!(IN_PROPORTION.by_size(&layers), None);
            layers.push(layer(90, false));
            assert_eq!(IN_PROPORTION.by_size(&layers), Some(0..fan_in));
            // A much larger one stays out of it.
            layers.insert(0, layer(1000, true));
            assert_eq!(IN_PROPORTION.by_size(&layers), Some(1..fan_in + 1));
        }
    }

    #[test]
    fn layers_that_are_read_are_merged_the_small_ones_first() {
        let sought = |updates, seeks| Drawn { seeks, ..layer(updates, false) };
        assert_eq!(IN_PROPORTION.by_reads(&[sought(1000, 50), sought(100, 50)]), None);
        let layers = [sought(1000, 50), sought(100, 50), sought(100, 50)];
        assert_eq!(IN_PROPORTION.by_reads(&layers), Some(1..3));
        let layers = [sought(1000, 300), sought(100, 300)];
        assert_eq!(IN_PROPORTION.by_reads(&layers), Some(0..2));
        // One layer costs nothing, and layers without readers may stay apart.
        assert_eq!(IN_PROPORTION.by_reads(&[sought(1000, 1 << 40)]), None);
        assert_eq!(IN_PROPORTION.by_reads(&[sought(1000, 1 << 40), sought(1, 0)]), None);
        assert_eq!(Policy::new(Merging::Never).by_reads(&layers), None);
    }

    /// A layer that another thread seeks keys in.
    struct Busy(Cell<u64>);

    impl Shape for Busy {
        fn updates(&self) -> usize {
            1000
        }
        fn fresh(&self) -> usize {
            0
        }
        fn bytes(&self) -> usize {
            16_000
        }
        fn is_file(&self) -> bool {
            false
        }
        fn seeks(&self) -> u64 {
            self.0.update(|seeks| seeks + 1);
            self.0.get()
        }
    }

    #[test]
    fn layers_may_be_read_while_the_policy_looks_at_them() {
        let busy = || Busy(Cell::new(0));
        assert_eq!(IN_PROPORTION.by_reads(&[busy(), busy()]), None);
    }
}
