//! The programs on differential-dataflow's own spines.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use alluvium_benches::processors;
use differential_dataflow::VecCollection;
use differential_dataflow::input::Input;
use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::Iterate;
use timely::Config;
use timely::dataflow::operators::probe::{Handle, Probe};
use timely::progress::Timestamp;

use super::graph::Graph;
use super::{Answer, Program, Run, value};

type Found<'scope, T> = VecCollection<'scope, T, (i64, i64)>;

/// The vertices that a program finds from `roots`. Edges are keyed by their start and have an end and a length.
fn find<'scope, T: Timestamp + Lattice + Ord>(
    program: Program,
    edges: VecCollection<'scope, T, (i64, (i64, i64))>,
    roots: Found<'scope, T>,
) -> Found<'scope, T> {
    let edges = edges.arrange_by_key();
    match program {
        Program::Reached => {
            let roots = roots.map(|(root, _)| root);
            let reached = roots.clone().iterate(|scope, reached| {
                let (edges, roots) = (edges.enter(scope), roots.enter(scope));
                reached
                    .arrange_by_self()
                    .join_core(edges, |_, (), (finish, _)| Some(*finish))
                    .concat(roots)
                    .distinct()
            });
            reached.map(|vertex| (vertex, 0))
        }
        Program::Distances => roots.clone().iterate(|scope, reached| {
            let (edges, roots) = (edges.enter(scope), roots.enter(scope));
            reached
                .arrange_by_key()
                .join_core(edges, |_, distance, (finish, length)| {
                    Some((*finish, distance + length))
                })
                .concat(roots)
                .reduce(|_, distances, least| least.push((*distances[0].0, 1)))
        }),
    }
}

/// The answer so far.
#[derive(Debug, Default)]
struct Sums {
    rows: AtomicI64,
    values: AtomicI64,
}

impl Sums {
    fn answer(&self) -> Answer {
        (self.rows.load(Ordering::SeqCst), self.values.load(Ordering::SeqCst))
    }
}

pub(crate) fn run(program: Program, graph: Graph) -> Run {
    let sums = Arc::new(Sums::default());
    let run = Arc::new(Mutex::new(None));
    let (found, noted) = (Arc::clone(&sums), Arc::clone(&run));
    let guards = timely::execute(Config::process(graph.workers), move |worker| {
        let probe = Handle::new();
        let (mut edges, mut roots) = worker.dataflow::<u64, _, _>(|scope| {
            let (edges_input, edges) = scope.new_collection();
            let (roots_input, roots) = scope.new_collection();
            let sums = Arc::clone(&found);
            find(program, edges, roots)
                .inspect(move |((vertex, distance), _, weight)| {
                    let weight = *weight as i64;
                    sums.rows.fetch_add(weight, Ordering::SeqCst);
                    sums.values.fetch_add(weight * value(*vertex, *distance), Ordering::SeqCst);
                })
                .inner
                .probe_with(&probe);
            (edges_input, roots_input)
        });
        let is_first = worker.index() == 0;
        let mut epoch = 0;
        let mut complete =
            |edges: &mut differential_dataflow::input::InputSession<_, _, isize>,
             roots: &mut differential_dataflow::input::InputSession<_, _, isize>| {
                let begun = Instant::now();
                epoch += 1;
                edges.advance_to(epoch);
                roots.advance_to(epoch);
                edges.flush();
                roots.flush();
                worker.step_while(|| probe.less_than(&epoch));
                begun.elapsed().as_secs_f64()
            };
        if is_first {
            roots.insert((0, 0));
            graph
                .edges()
                .for_each(|(start, finish, length)| edges.insert((start, (finish, length))));
        }
        let fill = complete(&mut edges, &mut roots);
        let mut changes = Vec::with_capacity(graph.changes);
        let before = found.answer();
        let begun = processors();
        for ((start, finish, length), weight) in graph.changes() {
            if is_first {
                edges.update((start, (finish, length)), weight as isize);
            }
            changes.push(complete(&mut edges, &mut roots) * 1e3);
        }
        if is_first {
            let answers = [before, found.answer()];
            let processors = (processors() - begun) * 1e3 / graph.changes as f64;
            *noted.lock().expect("nobody has panicked") =
                Some(Run { fill, changes, processors, answers });
        }
    });
    for worker in guards.expect("threads start").join() {
        worker.expect("workers end");
    }
    let run = run.lock().expect("nobody has panicked").take();
    run.expect("the first worker has ended")
}
