//! How the operator that owns a spine gets to run when a job is done.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use alluvium_storage::Compaction as _;
use alluvium_trace_shuttle::memory::StateContext;
use alluvium_trace_shuttle::{Epoch, Spine, StateTrace, Waker};
use differential_dataflow::trace::Trace;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::InputHandle;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Input;
use timely::dataflow::operators::generic::operator::Operator;
use timely::worker::Worker;

use crate::model::*;

/// Nothing runs the operator but what wakes it: were a wake lost, the spine would never settle.
#[test]
fn a_job_that_is_done_wakes_its_owner() {
    static WOKEN: AtomicUsize = AtomicUsize::new(0);
    in_many_orders(|| {
        let (context, pool) = with_pool(usize::MAX, None, 2);
        let of_worker = context.clone();
        let woken = timely::execute_directly(move |worker| own_a_spine(worker, &of_worker));
        WOKEN.fetch_add(woken, Ordering::Relaxed);
        pool.close();
        assert_eq!((context.budget().used(), context.budget().debt()), (0, 0));
    });
    let woken = WOKEN.load(Ordering::Relaxed);
    assert!(woken > 50, "most often the owner waits before the job is done: {woken}");
}

/// Lets a spine merge four epochs. How often its operator ran meanwhile.
fn own_a_spine(worker: &mut Worker, context: &StateContext) -> usize {
    let runs = Rc::new(Cell::new(0));
    let spine = Rc::new(RefCell::new(Spine::<Epoch>::in_context(context)));
    let mut input = InputHandle::<u64, CapacityContainerBuilder<Vec<()>>>::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let stream = scope.input_from(&mut input);
        let (spine, runs) = (Rc::clone(&spine), Rc::clone(&runs));
        type Container = CapacityContainerBuilder<Vec<()>>;
        stream.unary_frontier::<Container, _, _, _>(Pipeline, "owner", |_, info| {
            let local = scope.activator_for(Rc::clone(&info.address));
            let any_thread = scope.worker().sync_activator_for(info.address.to_vec());
            spine.borrow_mut().wake_by(Waker::new(local, any_thread));
            move |(input, _), _| {
                input.for_each(|_, _| {});
                runs.set(runs.get() + 1);
                spine.borrow_mut().exert();
            }
        });
    });
    for _ in 0..5 {
        worker.step();
    }
    (0..4).for_each(|epoch| insert(&mut spine.borrow_mut(), context, epoch));
    let before = runs.get();
    while !spine.borrow().is_settled() {
        shuttle::thread::yield_now();
        worker.step();
    }
    assert_eq!(rows(&spine.borrow()), (4 * ROWS as i64, 4 * ROWS as usize));
    runs.get() - before
}
