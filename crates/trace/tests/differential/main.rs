//! Programs of differential-dataflow on typed spines have the answers that they have on its own.
//!
//! These tests are a binary of their own: programs of differential-dataflow take long to compile.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod failures;
mod graphs;
mod operators;
#[path = "../../examples/graphs/programs.rs"]
mod programs;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use alluvium_storage::{MemoryStorage, MergePool, Storage};
use alluvium_trace::memory::{MemoryBudget, StateContext, context};
use differential_dataflow::consolidation::consolidate_updates;
use differential_dataflow::input::Input;
use differential_dataflow::{Data, VecCollection};
use proptest::prelude::*;
use timely::Config;

use self::programs::Node;

/// Two nodes: an edge.
pub type Pair = (Node, Node);

/// A program: pairs in, any collection out.
pub type Program<D> =
    for<'scope> fn(VecCollection<'scope, u64, Pair>) -> VecCollection<'scope, u64, D>;

/// The changes of each epoch, and whether the program is run up to its end before the next one begins.
pub type History = Vec<(Vec<(Pair, isize)>, bool)>;

/// Histories in which pairs come and go, of so many nodes and changes per epoch.
pub fn any_history(nodes: Node, changes: usize) -> impl Strategy<Value = History> {
    let change = ((0..nodes, 0..nodes), prop_oneof![3 => Just(1), 1 => Just(2), 3 => Just(-1)]);
    let epoch = (prop::collection::vec(change, 0..changes), any::<bool>());
    prop::collection::vec(epoch, 1..6).prop_map(|mut history| {
        // Reductions are of collections in which nothing is less than absent.
        let mut held = std::collections::BTreeMap::<Pair, isize>::new();
        for (changes, _) in &mut history {
            changes.retain(|(pair, weight)| {
                let count = held.entry(*pair).or_default();
                let stays = *count + weight >= 0;
                *count += if stays { *weight } else { 0 };
                stays
            });
        }
        history
    })
}

/// How a program is run: its workers, and what its state may take.
#[derive(Clone, Debug)]
pub struct Setting {
    /// How many threads.
    pub workers: usize,
    /// Where all of them keep state.
    pub state: StateContext,
}

/// One to three workers; a budget without limit, with none, and in between; merges in slices or by a thread.
pub fn any_setting() -> impl Strategy<Value = Setting> {
    let limit = prop_oneof![Just(usize::MAX), Just(1), Just(20_000), Just(1 << 20)];
    (1..4usize, limit, any::<bool>()).prop_map(|(workers, limit, in_background)| {
        let mut state = with_memory(limit);
        if in_background {
            state = state.with_compaction(Arc::new(MergePool::start(1).unwrap()));
        }
        Setting { workers, state }
    })
}

/// A context with this budget, and files in memory for the rest.
pub fn with_memory(limit: usize) -> StateContext {
    let files: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    StateContext::new(MemoryBudget::new(limit), Some(files))
}

/// Some of the nodes that edges start from.
pub fn roots(edges: VecCollection<'_, u64, Pair>) -> VecCollection<'_, u64, Node> {
    edges.map(|(from, _)| from).filter(|node| node % 5 == 0)
}

/// All changes of the program's output, consolidated.
pub fn run<D: Data + Send>(
    program: Program<D>,
    history: &History,
    setting: &Setting,
) -> Vec<(D, u64, isize)> {
    let (history, setting) = (history.clone(), setting.clone());
    let guards = timely::execute(Config::process(setting.workers), move |worker| {
        context::enter(setting.state.for_worker(Arc::default()));
        let output = Rc::new(RefCell::new(Vec::new()));
        let (mut input, probe) = worker.dataflow(|scope| {
            let (input, pairs) = scope.new_collection();
            let seen = Rc::clone(&output);
            let changes =
                program(pairs).inspect(move |change| seen.borrow_mut().push(change.clone()));
            (input, changes.probe().0)
        });
        let (index, peers) = (worker.index(), worker.peers());
        for (epoch, (changes, is_waiting)) in history.iter().enumerate() {
            for (pair, weight) in changes.iter().skip(index).step_by(peers) {
                input.update(*pair, *weight);
            }
            input.advance_to(epoch as u64 + 1);
            input.flush();
            while *is_waiting && probe.less_than(input.time()) {
                worker.step();
            }
        }
        drop(input);
        while worker.has_dataflows() {
            worker.step();
        }
        output.take()
    });
    let workers = guards.unwrap().join();
    let mut output: Vec<_> = workers.into_iter().flat_map(Result::unwrap).collect();
    consolidate_updates(&mut output);
    output
}
