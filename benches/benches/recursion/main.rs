//! The cost of a change under a recursion, beside differential-dataflow's own `iterate` over the same graph and changes.
//!
//! ```sh
//! cargo bench -p alluvium-benches --bench recursion -- [edges] [workers] [changes]
//! ```
//!
//! The graph is random: four edges leave a vertex, so nearly all vertices can be reached from the first one. One epoch has the
//! whole graph. Then each epoch has one edge that comes or goes, and is waited for. The answers of both have to be equal.
//!
//! The aim: a median of at most 10 ms, and of at most that of differential-dataflow.

mod differential;
mod engine;
mod graph;

use self::graph::Graph;

/// The computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    /// The vertices that can be reached.
    Reached,
    /// The vertices that can be reached, with the length of the shortest way.
    Distances,
}

/// The time of a run, and its result.
#[derive(Debug)]
struct Run {
    /// Seconds for the graph.
    fill: f64,
    /// Milliseconds for each change.
    changes: Vec<f64>,
    /// Milliseconds of all processors for a change, on average.
    processors: f64,
    /// The answers with the graph, and after all changes.
    answers: [Answer; 2],
}

/// The number of rows, and the sum of their [`value`]s.
type Answer = (i64, i64);

/// The contribution of a vertex to an answer.
fn value(vertex: i64, distance: i64) -> i64 {
    vertex * 31 + distance * 1_000_003
}

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let mut number = |default: usize| numbers.next().unwrap_or(default);
    let graph = Graph { edges: number(1_000_000), workers: number(1), changes: number(400) };
    println!("{} edges, {} workers, {} changes\n", graph.edges, graph.workers, graph.changes);
    println!(
        "| program | by | graph, s | edge comes, ms: median, p99 | edge goes, ms: median, p99 | median of all, ms \
         | processors per change, ms | to differential: median, processors |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for program in [Program::Reached, Program::Distances] {
        let theirs = differential::run(program, graph);
        let ours = engine::run(program, graph);
        assert_eq!(ours.answers, theirs.answers, "both compute {program:?} of the same graph");
        print(program, "differential-dataflow", &theirs, &theirs);
        print(program, "Alluvium", &ours, &theirs);
    }
}

/// Prints a line. The ratios say how many times as fast as `other` it is.
fn print(program: Program, by: &str, run: &Run, other: &Run) {
    let every_other =
        |first: usize| -> Vec<f64> { run.changes.iter().skip(first).step_by(2).copied().collect() };
    let [come, go] = [0, 1]
        .map(every_other)
        .map(|took| format!("{:.2}, {:.2}", quantile(&took, 0.5), quantile(&took, 0.99)));
    println!(
        "| {program:?} | {by} | {:.2} | {come} | {go} | {:.2} | {:.2} | {:.2}, {:.2} |",
        run.fill,
        median(&run.changes),
        run.processors,
        median(&other.changes) / median(&run.changes),
        other.processors / run.processors
    );
}

fn median(took: &[f64]) -> f64 {
    quantile(took, 0.5)
}

fn quantile(took: &[f64], share: f64) -> f64 {
    let mut took = took.to_vec();
    took.sort_unstable_by(f64::total_cmp);
    took[((took.len() - 1) as f64 * share).round() as usize]
}
