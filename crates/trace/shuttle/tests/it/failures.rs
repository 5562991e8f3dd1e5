//! Jobs that fail on the threads of a pool.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use alluvium_storage::{Compaction, Failing, MemoryStorage};
use alluvium_trace_shuttle::{Failure, Spine, StateTrace};
use differential_dataflow::trace::Trace;
use shuttle::rand::Rng;

use crate::model::*;

#[test]
fn a_job_that_fails_unwinds_its_owner_alone() {
    static FAILED: AtomicUsize = AtomicUsize::new(0);
    in_many_orders(|| {
        let storage = Failing::new(MemoryStorage::new());
        // Epochs go to files, which are merged eight at a time.
        let (context, pool) = with_pool(1, Some(Arc::new(storage.clone())), 1);
        let mut spine = Spine::in_context(&context);
        let batches = [0, 1, 2, 3, 4, 5, 6, 7]
            .map(|epoch| numbers(&context, epoch, epoch * ROWS..(epoch + 1) * ROWS, 1));
        batches.into_iter().for_each(|batch| spine.insert(batch));
        let calls = shuttle::rand::thread_rng().gen_range(1..6);
        storage.fail_from(storage.calls() + calls);
        let failed = catch_unwind(AssertUnwindSafe(|| {
            pass(&mut spine, 8);
            settle(&mut spine);
        }));
        storage.fail_from(u64::MAX);
        if let Err(caught) = failed {
            let reason = Failure::reason(&*caught).expect("a failure and no panic");
            assert!(reason.contains("fails on command"), "{reason}");
            FAILED.fetch_add(1, Ordering::Relaxed);
        }
        // Its inputs are still there, and they are merged when there is something new.
        assert_eq!(rows(&spine), (8 * ROWS as i64, 8 * ROWS as usize));
        insert(&mut spine, &context, 8);
        settle(&mut spine);
        assert_eq!(rows(&spine), (9 * ROWS as i64, 9 * ROWS as usize));
        // The thread of the pool is still there.
        do_another(&*pool);
        drop(spine);
        pool.close();
        assert_eq!((context.budget().used(), context.budget().debt()), (0, 0));
    });
    let failed = FAILED.load(Ordering::Relaxed);
    assert!(failed > 50, "{failed} runs have met a failure");
}
