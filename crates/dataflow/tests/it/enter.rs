//! An arrangement of an outer scope, joined inside a loop.
//!
//! The test counts the paths of a changing acyclic graph by following its edges in a loop: a linear recursion, whose fixpoint
//! needs only the join.

use std::collections::BTreeMap;

use alluvium_dataflow::fault::Fault;
use alluvium_dataflow::joins::join::Spec;
use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::movement::input::input;
use alluvium_dataflow::recursion::variable::Limit;
use alluvium_dataflow::recursion::{Round, Side, enter, join, leave, variable};
use alluvium_dataflow::rows::layout::Layout;
use alluvium_dataflow::state::arrangement::keep;
use alluvium_trace::Epoch;
use alluvium_trace::memory::context;
use timely::dataflow::Scope;
use timely::dataflow::operators::Concat;

use crate::harness::{Feed, Rows, Run, at, every_seed, feed, history, numbers};

fn paths<'scope>(
    scope: Scope<'scope, Epoch>,
    edges: DeltaStream<'scope, Epoch>,
) -> DeltaStream<'scope, Epoch> {
    let context = context::current();
    let schema = numbers(&["start", "end"]);
    let by_start = Layout::keyed(schema.clone(), &[0]).unwrap();
    let by_end = Layout::keyed(schema.clone(), &[1]).unwrap();
    // (start, end) of a path and (start, end) of an edge to (start, end).
    let follow = Spec::new((&schema, &[0]), (&schema, &[1]));
    let kept = keep(edges.clone(), by_start, "Edges", &context);
    scope.scoped::<Round, _, _>("Paths", |rounds| {
        let first = enter(edges, rounds);
        let (variable, before) = variable(rounds);
        let ended = Side::arrange(before, &by_end, &context);
        let longer = join(&follow, ended, Side::Entered(kept), rounds, &context);
        let all = first.concat(longer);
        let limit = Limit { name: "paths".into(), rounds: u64::MAX, taken_back: None };
        variable.set(all.clone(), limit, &context);
        leave(all, Vec::new(), scope)
    })
}

/// The number of paths between each two nodes.
fn count_paths(edges: &Rows) -> Rows {
    let mut all = edges.clone();
    let mut last = edges.clone();
    while !last.is_empty() {
        let mut longer = Rows::new();
        for (path, count) in &last {
            for (edge, times) in edges.iter().filter(|(edge, _)| edge[0] == path[1]) {
                *longer.entry(vec![path[0], edge[1]]).or_default() += count * times;
            }
        }
        for (path, count) in &longer {
            *all.entry(path.clone()).or_default() += count;
        }
        last = longer;
    }
    all
}

fn check(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    // Paths are not exchanged, so there is one worker.
    let run = Run { workers: 1, ..Run::draw(seed, fault) };
    let edges = history(&mut run.random(0xe47e4), run.epochs, |random| {
        let start = random.below(6) as i64;
        vec![Some(start), Some(start + 1 + random.below(3) as i64)]
    });
    let (settings, script) = (run.clone(), edges.clone());
    let views = run.execute(["paths"], move |worker, watch| {
        let input = worker.dataflow(|scope| {
            let (input, edges) = input(scope, "edges", &context::current());
            watch.watch(&"paths", paths(scope, edges));
            input
        });
        let schema = numbers(&["start", "end"]);
        feed(worker, &settings, &schema, vec![Feed::new(input, &script)], &watch.probe);
    });
    run.compare(&views, |epoch| BTreeMap::from([("paths", count_paths(&at(&edges, epoch)))]))
}

#[test]
fn an_outer_arrangement_joined_inside_a_loop_counts_the_paths_of_a_changing_graph() {
    every_seed(60, check);
}
