//! Files that cannot be written, as a program meets them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use alluvium_storage::{Failing, MemoryStorage, Storage};
use alluvium_trace::Failure;
use alluvium_trace::memory::{MemoryBudget, StateContext, context};
use differential_dataflow::input::Input;
use timely::Config;

use super::programs::typed;

/// Runs a program whose `call`-th access to storage fails, and all that follow. The reason, if it has met one.
fn reason_of(call: u64) -> Option<String> {
    let files = Failing::new(MemoryStorage::new());
    files.fail_from(call);
    let files: Arc<dyn Storage> = Arc::new(files);
    let state = StateContext::new(MemoryBudget::new(1), Some(files));
    let budget = state.budget().clone();
    let guards = timely::execute(Config::thread(), move |worker| {
        let state = state.for_worker(Arc::default());
        context::enter(state.clone());
        let mut edges = worker.dataflow::<u64, _, _>(|scope| {
            let (input, edges) = scope.new_collection::<_, isize>();
            typed::bfs(edges.clone(), super::roots(edges));
            input
        });
        let worked = catch_unwind(AssertUnwindSafe(|| {
            for node in 0..100 {
                edges.insert((node, (node * 7 + 1) % 100));
            }
            edges.close();
            while worker.has_dataflows() {
                worker.step();
            }
        }));
        worked.err().map(|caught| {
            // The rest is dropped without another attempt to write it; timely would continue it.
            state.close();
            for dataflow in worker.installed_dataflows() {
                worker.drop_dataflow(dataflow);
            }
            Failure::reason(&*caught).expect("a failure, not a panic").to_owned()
        })
    });
    let reason = guards.unwrap().join().remove(0).unwrap();
    assert_eq!((budget.used(), budget.files()), (0, 0), "everything is released");
    reason
}

#[test]
fn a_file_that_cannot_be_written_ends_the_worker_with_a_reason() {
    for call in [1, 2, 3, 10, 50] {
        let reason = reason_of(call).unwrap();
        assert!(reason.starts_with("state cannot be written to a file: "), "{reason}");
        assert!(reason.contains("fails on command"), "{reason}");
    }
    assert_eq!(reason_of(u64::MAX), None);
}
