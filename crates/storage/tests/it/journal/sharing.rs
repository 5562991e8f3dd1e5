//! Threads that share the calls of a disk.

use std::sync::{Arc, Barrier};

use alluvium_storage::{Disk, FileJournalOptions, Journal, SimulatedDisk};

use super::twins::{SMALL, open, replay};

/// The calls of a disk are counted: 64 committers that arrive together need one write and one sync.
#[test]
fn committers_that_wait_share_a_sync() {
    let simulated = SimulatedDisk::new(1);
    let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
    let options = FileJournalOptions { queue_size: 1 << 20, ..SMALL };
    let journal = open(&disk, options).unwrap();
    let first = journal.append(b"begins the segment").unwrap();
    journal.sync(first).unwrap();
    let before = simulated.calls();
    let barrier = Barrier::new(64);
    std::thread::scope(|scope| {
        for thread in 0..64_u8 {
            let (journal, barrier) = (&journal, &barrier);
            scope.spawn(move || {
                let position = journal.append(&[thread]).unwrap();
                barrier.wait();
                journal.sync(position).unwrap();
            });
        }
    });
    // One more write may put zeros ahead.
    let calls = simulated.calls() - before;
    assert!((2..=3).contains(&calls), "{calls} calls");
    assert_eq!(replay(&journal, 1).unwrap().len(), 64);
}
