//! How a memory limit is divided.
//!
//! Every threshold of the engine derives from the limit, once, when the budget is made. Three quarters of the limit are
//! for counted memory. An eighth is for pages of mapped files. The last eighth is for uncounted memory: columns that
//! operators decode for a moment, and holes in the allocator's heap.
//!
//! | threshold | share of the limit | bounds | what happens there |
//! |---|---|---|---|
//! | [`counted`](MemoryPolicy::counted) | 3/4 | | above it spines move batches to files, and new batches are built there |
//! | [`critical`](MemoryPolicy::critical) | 13/16 | | above it spines finish merges and moves to files first |
//! | [`debt`](MemoryPolicy::debt) | 1/2 | 16 MiB to 4 GiB | above it workers take part in merges from their beginning |
//! | [`most_debt`](MemoryPolicy::most_debt) | 16 | 64 MiB to 64 GiB | inputs wait there: workers do merges first; from half of it on, also those of spines that rest |
//! | [`pressure`](MemoryPolicy::pressure) | 1/3 | | when first passed, the program may ask its allocator to release early |
//! | [`resident`](MemoryPolicy::resident) | 1/8 | | above it mapped files are evicted, those with most resident pages first |
//! | [`resident_after_eviction`](MemoryPolicy::resident_after_eviction) | 1/16 | | where that eviction stops |
//! | [`large_buffer`](MemoryPolicy::large_buffer) | 1/16 | | a buffer of unsorted rows this large becomes a sorted run |
//! | [`large_buffer_when_over`](MemoryPolicy::large_buffer_when_over) | 1/64 | | the same while counted memory exceeds its share |
//! | [`all_buffers_when_over`](MemoryPolicy::all_buffers_when_over) | 1/8 | | each buffer has an equal share of it then, if that is less: many views have hundreds |
//! | [`queued`](MemoryPolicy::queued) | 1/16 | at least 64 KiB | above it producers wait: rows queue between workers |
//! | [`portion`](MemoryPolicy::portion) | 1/16 | 256 KiB to 16 MiB | rows that a source reads at a time, for all views they enter ([`portion_for`](MemoryPolicy::portion_for)) |
//! | [`refused`](MemoryPolicy::refused) | 1/16 | 64 KiB to 16 MiB | refused rows that are kept to be queried |
//! | [`group`](MemoryPolicy::group) | 1/8 | 4 MiB more, at most 1 GiB | the rows of a group that is recomputed as a whole |
//! | [`queries`](MemoryPolicy::queries) | 1/4 | at least 32 MiB | rows that ad-hoc queries hold, before they move them to files; beyond the limit itself |
//! | [`prefetch`](MemoryPolicy::prefetch) | 1/16 | at most 8 MiB | the most that one prefetch asks a file for |
//! | [`scan_windows`](MemoryPolicy::scan_windows) | 1/32 | | read-ahead of all files that are scanned together |
//! | [`retained_buffer`](MemoryPolicy::retained_buffer) | 1/64 | | the most that an emptied buffer keeps allocated |
//! | [`free_slots`](MemoryPolicy::free_slots) | 1/64 | 256 KiB to 1 GiB | memory of freed pages that is kept for new ones |
//! | [`activation`](MemoryPolicy::activation) | 1/128 | 64 KiB to 1 MiB | rows that an operator emits each time it runs |
//! | [`activation_when_filling`](MemoryPolicy::activation_when_filling) | 1/1024 | 64 KiB to 128 KiB | the same while a worker fills dataflows beside others |
//! | [`output_batch`](MemoryPolicy::output_batch) | 1/256 | 4 KiB to 1 MiB | encoded rows that make one message |
//! | [`smallest_file`](MemoryPolicy::smallest_file) | 1/256 | at most 64 KiB | smaller batches stay in memory |

use super::slots::SLOT;

/// The thresholds that follow from a memory limit, in bytes. See the [module](self) for what each is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPolicy {
    /// The limit itself; `usize::MAX` for none.
    pub limit: usize,
    /// Counted memory that may be in use before batches go to files.
    pub counted: usize,
    /// Counted memory above which merges and moves to files do not wait.
    pub critical: usize,
    /// Bytes that jobs have to merge, above which workers take part from the beginning.
    pub debt: usize,
    /// Bytes that jobs have to merge, which are not exceeded. Much more than the limit: state in files can be many times
    /// as large, and a merge of the larger part of it owes all of that in the beginning.
    pub most_debt: usize,
    /// Counted memory at which the program is called, once, to ask its allocator to release early.
    pub pressure: usize,
    /// Pages of mapped files that may be resident.
    pub resident: usize,
    /// Resident pages at which an eviction stops.
    pub resident_after_eviction: usize,
    /// The size from which a buffer of rows is worth sorting into a run.
    pub large_buffer: usize,
    /// The same while more than [`counted`](Self::counted) bytes are in use.
    pub large_buffer_when_over: usize,
    /// The limit on all buffers together while more than [`counted`](Self::counted) bytes are in use.
    pub all_buffers_when_over: usize,
    /// Rows that may wait between workers before producers stop.
    pub queued: usize,
    /// Rows that a source reads at a time, give or take one.
    pub portion: usize,
    /// Refused rows, with the reasons, that are kept to be queried.
    pub refused: usize,
    /// The rows of a group that is recomputed as a whole; a larger one is an error.
    pub group: usize,
    /// Rows that all ad-hoc queries may hold together, beyond the limit; more is an error.
    pub queries: usize,
    /// The most that is asked for in one prefetch.
    pub prefetch: usize,
    /// Read-ahead of all files that are scanned together.
    pub scan_windows: usize,
    /// The most that an emptied buffer keeps allocated, unless an output batch is larger.
    pub retained_buffer: usize,
    /// Memory of freed pages that is kept for new ones.
    pub free_slots: usize,
    /// Rows that an operator emits each time it runs.
    pub activation: usize,
    /// The same while a worker fills dataflows beside others, which wait as long as a few operators take for it.
    pub activation_when_filling: usize,
    /// Encoded rows that make one message.
    pub output_batch: usize,
    /// The smallest batch that is worth a file.
    pub smallest_file: usize,
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

impl MemoryPolicy {
    /// The thresholds for a limit of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        MemoryPolicy {
            limit,
            counted: limit - limit / 4,
            critical: limit - limit / 16 * 3,
            debt: (limit / 2).clamp(16 * MIB, 4 * GIB),
            most_debt: limit.saturating_mul(16).clamp(64 * MIB, 64 * GIB),
            pressure: limit / 3,
            resident: limit / 8,
            resident_after_eviction: limit / 16,
            large_buffer: limit / 16,
            large_buffer_when_over: limit / 64,
            all_buffers_when_over: limit / 8,
            queued: (limit / 16).max(64 * KIB),
            portion: portion(limit, 1),
            refused: (limit / 16).clamp(64 * KIB, 16 * MIB),
            group: (limit / 8).saturating_add(4 * MIB).min(GIB),
            queries: (limit / 4).max(32 * MIB),
            prefetch: (limit / 16).min(8 * MIB),
            scan_windows: limit / 32,
            retained_buffer: limit / 64,
            free_slots: (limit / 64).clamp(16 * SLOT, (1 << 16) * SLOT),
            activation: (limit / 128).clamp(64 * KIB, MIB),
            activation_when_filling: (limit / 1024).clamp(64 * KIB, 128 * KIB),
            output_batch: (limit / 256).clamp(4 * KIB, MIB),
            smallest_file: (limit / 256).min(64 * KIB),
        }
    }

    /// The share of [`portion`](Self::portion) if the rows enter this many views, which all hold some of them at once: not
    /// less than an operator emits each time it runs.
    pub fn portion_for(&self, views: usize) -> usize {
        portion(self.limit, views).max(self.activation).min(self.portion)
    }
}

fn portion(limit: usize, views: usize) -> usize {
    (limit / 16 / views.max(1)).clamp(256 * KIB, 16 * MIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fit_within_any_limit() {
        for limit in [0, 1, 4096, 1 << 20, 64 << 20, 1 << 40, usize::MAX] {
            let policy = MemoryPolicy::new(limit);
            assert!(policy.counted + policy.resident <= limit);
            assert!(policy.resident_after_eviction <= policy.resident);
            assert!(policy.large_buffer_when_over <= policy.large_buffer);
        }
    }

    #[test]
    fn an_unlimited_budget_uses_the_upper_bounds() {
        let policy = MemoryPolicy::new(usize::MAX);
        assert_eq!((policy.activation, policy.output_batch), (MIB, MIB));
        assert_eq!((policy.smallest_file, policy.prefetch), (64 * KIB, 8 * MIB));
        assert_eq!(policy.free_slots, 1 << 30);
    }

    #[test]
    fn views_share_a_portion_only_where_memory_is_short() {
        let portions =
            |limit| [0, 1, 4, 1000].map(|views| MemoryPolicy::new(limit).portion_for(views));
        assert_eq!(portions(64 * MIB), [4 * MIB, 4 * MIB, MIB, 512 * KIB]);
        assert_eq!(portions(GIB), [16 * MIB, 16 * MIB, 16 * MIB, MIB]);
        assert_eq!(portions(1024 * GIB), [16 * MIB; 4]);
        assert_eq!(portions(0), [256 * KIB; 4]);
    }
}
