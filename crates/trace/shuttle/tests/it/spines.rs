//! The rows that a spine shows and holds while others do its jobs.

use std::sync::Arc;

use alluvium_storage::{Compaction, MemoryStorage};
use alluvium_trace_shuttle::{Metrics, Spine, StateTrace};

use crate::model::*;

#[test]
fn each_result_is_installed_once_and_all_rows_are_there() {
    in_many_orders(|| {
        let metrics = Arc::new(Metrics::default());
        let (context, pool) = with_pool(usize::MAX, None, 2);
        let context = context.for_worker(metrics.clone());
        let mut spine = Spine::in_context(&context);
        for epoch in 0..4 {
            insert(&mut spine, &context, epoch);
            let all = (epoch + 1) * ROWS;
            assert_eq!(rows(&spine), (all as i64, all as usize));
        }
        settle(&mut spine);
        assert_eq!(rows(&spine), (4 * ROWS as i64, 4 * ROWS as usize));
        // A result is counted where it is installed.
        assert_eq!(metrics.spines()[0].merges, context.installed());
        assert_eq!((metrics.spines()[0].jobs, metrics.spines()[0].debt), (0, 0));
        assert_eq!(context.budget().debt(), 0);
        drop(spine);
        assert_eq!(context.budget().used(), 0);
        pool.close();
    });
}

#[test]
fn a_spine_that_is_dropped_while_slices_run_leaves_nothing() {
    in_many_orders(|| {
        let storage = Arc::new(MemoryStorage::new());
        let (context, pool) = with_pool(4 << 20, Some(storage), 1);
        let mut spine = Spine::in_context(&context);
        (0..4).for_each(|epoch| insert(&mut spine, &context, epoch));
        shuttle::thread::yield_now();
        drop(spine);
        assert_eq!(context.budget().debt(), 0);
        // The slice that was running is over then, and no other has begun.
        do_another(&*pool);
        assert_eq!((context.budget().used(), context.budget().files()), (0, 0));
        pool.close();
    });
}

#[test]
fn where_memory_is_short_the_owner_completes_what_others_have_begun() {
    in_many_orders(|| {
        let (context, pool) = with_pool(1 << 20, Some(Arc::new(MemoryStorage::new())), 1);
        let mut spine = Spine::in_context(&context);
        for epoch in 0..9 {
            insert(&mut spine, &context, epoch);
            let is_critical = context.budget().used() > context.budget().policy().critical;
            assert!(spine.is_settled() || !is_critical, "a job is left at {epoch}");
        }
        assert_eq!(rows(&spine), (9 * ROWS as i64, 9 * ROWS as usize));
        drop(spine);
        pool.close();
        assert_eq!((context.budget().used(), context.budget().files()), (0, 0));
    });
}
