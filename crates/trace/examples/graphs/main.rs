//! Time and peak memory of two programs, on typed spines and on differential-dataflow's own.
//!
//! ```sh
//! cargo run --release -p alluvium-trace --example graphs -- [bfs|scc] [nodes] [edges] [rounds] [changes] [workers]
//! ```
//!
//! Each program computes a random graph and then rounds of changes. It runs on differential-dataflow's spines, on typed
//! spines without a limit, and on typed spines with an eighth of the memory that the first run took: each in a process of
//! its own, whose peak of resident memory is printed.

mod programs;

use std::cell::Cell;
use std::error::Error;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use alluvium_storage::{Scratch, Storage};
use alluvium_trace::memory::{MemoryBudget, StateContext, context};
use differential_dataflow::VecCollection;
use differential_dataflow::hashable::Hashable;
use differential_dataflow::input::Input;
use procfs::process::Process;
use timely::Config;
use timely::worker::Worker;

use self::programs::{Node, plain, typed};

type Edge = (Node, Node);

/// The argument that makes a process one run: the spine and the limit follow.
const RUN: &str = "--run";

/// The task of a program.
#[derive(Clone, Debug)]
struct Task {
    program: String,
    nodes: u32,
    edges: usize,
    rounds: usize,
    changes: usize,
    workers: usize,
}

/// The cost of a run: seconds for the graph, seconds for all rounds, bytes at the peak; and what it has found.
struct Run {
    load: f64,
    rounds: f64,
    peak: u64,
    answer: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let run = arguments.iter().position(|argument| argument == RUN);
    let run = run.map(|run| arguments.split_off(run));
    let number = |place: usize, default: usize| {
        arguments.get(place).map_or(Ok(default), |given| given.parse::<usize>())
    };
    let program = arguments.first().map_or("bfs", String::as_str).to_owned();
    // A change of a strongly connected component costs more.
    let default = match program.as_str() {
        "scc" => (50_000, 100_000, 5, 10),
        _ => (500_000, 2_500_000, 10, 1_000),
    };
    let task = Task {
        program,
        nodes: number(1, default.0)? as u32,
        edges: number(2, default.1)?,
        rounds: number(3, default.2)?,
        changes: number(4, default.3)?,
        workers: number(5, 2)?,
    };
    match run.as_deref() {
        Some([_, spine, limit]) => perform(task, spine, limit.parse()?),
        _ => compare(&task, &arguments),
    }
}

/// Starts the three runs and prints them beside each other.
fn compare(task: &Task, arguments: &[String]) -> Result<(), Box<dyn Error>> {
    println!("{task:?}");
    println!("| spine | limit | graph | round | peak | to the first: round | peak |");
    println!("|---|---|---|---|---|---|---|");
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    let first = start(task, arguments, "plain", usize::MAX)?;
    let eighth = first.peak as usize / 8;
    let unlimited = start(task, arguments, "typed", usize::MAX)?;
    let limited = start(task, arguments, "typed", eighth)?;
    let limit = mib(eighth as u64);
    for (name, limit, run) in [
        ("differential-dataflow", "", &first),
        ("typed", "", &unlimited),
        ("typed", limit.as_str(), &limited),
    ] {
        if run.answer != first.answer {
            return Err(format!("answers differ: {} and {}", run.answer, first.answer).into());
        }
        let round = run.rounds / task.rounds as f64;
        println!(
            "| {name} | {limit} | {:.1} s | {:.0} ms | {} | {:.2} | {:.2} |",
            run.load,
            1e3 * round,
            mib(run.peak),
            run.rounds / first.rounds,
            run.peak as f64 / first.peak as f64,
        );
    }
    println!("The same answers, by a sum of hashes: {}", first.answer);
    Ok(())
}

/// Performs one run in a process of its own.
fn start(
    task: &Task,
    arguments: &[String],
    spine: &str,
    limit: usize,
) -> Result<Run, Box<dyn Error>> {
    let own = std::env::current_exe()?;
    let task = if arguments.is_empty() { std::slice::from_ref(&task.program) } else { arguments };
    let run = [RUN, spine, &limit.to_string()];
    let output = Command::new(own).args(task).args(run).output()?;
    let printed = String::from_utf8(output.stdout)?;
    let mut lines = printed.lines();
    let (Some(load), Some(rounds), Some(peak), Some(answer)) =
        (lines.next(), lines.next(), lines.next(), lines.next())
    else {
        let reason = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("a run on {spine} has failed: {printed}{reason}").into());
    };
    Ok(Run {
        load: load.parse()?,
        rounds: rounds.parse()?,
        peak: peak.parse()?,
        answer: answer.to_owned(),
    })
}

/// Does one run and prints what it took, a number per line.
fn perform(task: Task, spine: &str, limit: usize) -> Result<(), Box<dyn Error>> {
    let files: Arc<dyn Storage> = Arc::new(Scratch::create()?);
    let state = StateContext::new(MemoryBudget::new(limit), Some(files));
    let is_typed = spine == "typed";
    let guards = timely::execute(Config::process(task.workers), move |worker| {
        context::enter(state.for_worker(Arc::default()));
        work(worker, &task, is_typed)
    })?;
    let mut found = 0_u64;
    let mut taken = (0.0, 0.0);
    for worker in guards.join() {
        let (load, rounds, sum) = worker?;
        taken = (load, rounds);
        found = found.wrapping_add(sum);
    }
    println!("{}\n{}\n{}\n{found:x}", taken.0, taken.1, peak_resident()?);
    Ok(())
}

/// The program of one worker: the seconds for the graph and for all rounds, and a sum over all changes of the output.
fn work(worker: &mut Worker, task: &Task, is_typed: bool) -> (f64, f64, u64) {
    let found = Rc::new(Cell::new(0_u64));
    let seen = Rc::clone(&found);
    let (mut input, probe) = worker.dataflow(|scope| {
        let (input, edges) = scope.new_collection();
        let changes = program(task, is_typed, edges).inspect(move |change| {
            let ((one, other), epoch, weight) = *change;
            let hash = (((one, other), epoch).hashed()).wrapping_mul(weight as u64);
            seen.set(seen.get().wrapping_add(hash));
        });
        (input, changes.probe().0)
    });

    let (index, peers) = (worker.index(), worker.peers());
    let start = Instant::now();
    for number in (0..task.edges).filter(|number| number % peers == index) {
        input.insert(edge(number, task));
        if number % 10_000 < peers {
            input.flush();
            worker.step();
        }
    }
    let mut load = None;
    for round in 0..=task.rounds {
        input.advance_to(round as u64 + 1);
        input.flush();
        while probe.less_than(input.time()) {
            worker.step_or_park(None);
        }
        load.get_or_insert_with(|| start.elapsed());
        let replaced = round * task.changes..(round + 1) * task.changes;
        if round < task.rounds {
            for number in replaced.filter(|number| number % peers == index) {
                input.remove(edge(number, task));
                input.insert(edge(task.edges + number, task));
            }
        }
    }
    let (load, all) = (load.unwrap_or_default().as_secs_f64(), start.elapsed().as_secs_f64());
    drop(input);
    while worker.has_dataflows() {
        worker.step();
    }
    (load, all - load, found.get())
}

/// A random edge, the same whenever it is asked for.
fn edge(number: usize, task: &Task) -> Edge {
    let mut random = fastrand::Rng::with_seed(number as u64);
    (random.u32(..task.nodes), random.u32(..task.nodes))
}

/// The program on these spines.
fn program<'scope>(
    task: &Task,
    is_typed: bool,
    edges: VecCollection<'scope, u64, Edge>,
) -> VecCollection<'scope, u64, (Node, Node)> {
    let every = (task.nodes / 10).max(1);
    let roots = edges.clone().map(|(from, _)| from).filter(move |node| node % every == 0);
    match (task.program.as_str(), is_typed) {
        ("scc", true) => typed::scc(edges),
        ("scc", false) => plain::scc(edges),
        (_, true) => typed::bfs(edges, roots),
        (_, false) => plain::bfs(edges, roots),
    }
}

/// The most bytes of this process that were in memory.
fn peak_resident() -> Result<u64, Box<dyn Error>> {
    let status = Process::myself()?.status()?;
    Ok(status.vmhwm.ok_or("the system does not count it")? << 10)
}
