//! An arrangement imported into other dataflows as of an epoch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use alluvium_dataflow::fault::Fault;
use alluvium_dataflow::joins::join::{self, join};
use alluvium_dataflow::movement::import::Imports;
use alluvium_dataflow::movement::input::input;
use alluvium_dataflow::reductions::aggregate::{self, Function, aggregate};
use alluvium_dataflow::rows::layout::Layout;
use alluvium_dataflow::state::arrangement::keep;
use alluvium_dataflow::state::contents::Contents;
use alluvium_trace::Epoch;
use alluvium_trace::memory::context;
use timely::dataflow::operators::probe::{Handle, Probe};
use timely::worker::Worker;

use crate::fallback::own;
use crate::harness::{
    Feed, History, Rows, Run, Watch, at, delta, every_seed, history, keyed, numbers,
};

/// A view that imports: what it computes, and the epoch it is built as of.
type View = (&'static str, Epoch);

fn self_join(rows: &Rows) -> Rows {
    let mut pairs = Rows::new();
    for (one, weight) in rows {
        for (other, times) in rows.iter().filter(|(other, _)| other[0] == one[0]) {
            let row = one.iter().chain(other).copied().collect();
            *pairs.entry(row).or_default() += weight * times;
        }
    }
    pairs
}

fn totals(rows: &Rows) -> Rows {
    let mut totals: BTreeMap<Option<i64>, (i64, i64)> = BTreeMap::new();
    for (row, weight) in rows {
        let total = totals.entry(row[0]).or_default();
        total.0 += weight;
        total.1 += row[1].unwrap() * weight;
    }
    totals.into_iter().map(|(key, (count, sum))| (vec![key, Some(count), Some(sum)], 1)).collect()
}

fn check(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let run = Run::draw(seed, fault);
    let mut random = run.random(0x1a_90_47);
    let rows = history(&mut random, run.epochs, |random| {
        vec![Some(random.below(4) as i64), Some(random.below(5) as i64)]
    });
    let all = (1..=run.epochs).flat_map(|epoch| [("join", epoch), ("sums", epoch)]);
    let (epochs, script) = (run.epochs, rows.clone());
    let views = run.execute(all, move |worker, watch| import_all(worker, watch, epochs, &script));
    for ((view, as_of), changes) in &views {
        if let Some((_, time, _)) = changes.iter().find(|(_, time, _)| time < as_of) {
            return Err(format!("{view} as of {as_of} changes at {time}, in {run:?}"));
        }
        // The views built first are dropped as soon as the last ones are built.
        let last = if *as_of == 1 { 1 } else { run.epochs };
        for epoch in *as_of..=last {
            let rows = at(&rows, epoch);
            let expected = if *view == "join" { self_join(&rows) } else { totals(&rows) };
            let found = at(changes, epoch);
            if found != expected {
                return Err(format!(
                    "{view} as of {as_of} at {epoch}: found {found:?}, expected {expected:?}, in {run:?}"
                ));
            }
        }
    }
    Ok(())
}

/// Arranges the rows in one dataflow, and imports the arrangement as of each epoch into two more.
fn import_all(worker: &mut Worker, watch: &Watch<View>, epochs: Epoch, rows: &History) {
    let schema = numbers(&["key", "value"]);
    let (end, mut contents, probe) = worker.dataflow(|scope| {
        let probe = Handle::new();
        let (end, stream) = input(scope, "rows", &context::current());
        let kept = keyed(stream, &schema, &[0]);
        kept.arranged.stream.clone().probe_with(&probe);
        (end, Contents::new(&kept, &context::current()), probe)
    });
    let mut rows = Feed::new(end, rows);
    let mut views = Vec::new();
    for epoch in 1..=epochs {
        rows.send(worker, &schema, epoch);
        rows.advance();
        while probe.less_than(&(epoch + 1)) {
            worker.step();
        }
        // Every third epoch compaction catches up: the trace then holds advanced times.
        if epoch % 3 == 0 {
            contents.allow_compaction(epoch, epoch);
        }
        let view = worker.dataflow(|scope| {
            let done = Handle::new();
            let mut imports = Imports::default();
            let imported = contents.import(scope, epoch, &mut imports);
            let all = [0, 1];
            let spec = join::Spec::new((&schema, &all), (&schema, &all));
            let joined = join(&spec, imported.clone(), imported.clone(), &context::current());
            watch.watch_with(&("join", epoch), joined, &done);
            let aggregates =
                [own(Function::Count, None, false), own(Function::Sum, Some(1), false)];
            let output = numbers(&["key", "count", "sum"]);
            let stream = imported.deltas(&all, &context::current());
            let spec = aggregate::Spec::compile(&schema, &[0], &aggregates, &[], false, &output);
            let groups = aggregate(&spec.unwrap(), stream, &context::current());
            watch.watch_with(&("sums", epoch), groups.rows, &done);
            (imports, done)
        });
        views.push(view);
    }
    // Views that are dropped end while the others continue.
    let (dropped, ended) = views.remove(0);
    drop(dropped);
    while !ended.done() {
        worker.step();
    }
    drop(rows);
    drop(contents);
    while views.iter().any(|(_, done)| !done.done()) {
        worker.step();
    }
}

#[test]
fn a_view_built_as_of_an_epoch_equals_the_model_from_that_epoch_on() {
    every_seed(60, check);
}
#[test]
fn a_snapshot_reads_every_epoch_that_is_not_compacted() {
    let found = Arc::new(Mutex::new(Vec::new()));
    let shared = found.clone();
    timely::execute_directly(move |worker| {
        let schema = numbers(&["key", "value"]);
        let probe = Handle::new();
        let (mut rows, contents) = worker.dataflow(|scope| {
            let (end, stream) = input(scope, "rows", &context::current());
            let layout = Layout::rows(numbers(&["key", "value"])).unwrap();
            let kept = keep(stream, layout, "Rows", &context::current());
            kept.arranged.stream.clone().probe_with(&probe);
            (end, Contents::new(&kept, &context::current()))
        });
        let row = |value| vec![Some(1), Some(value)];
        let sent = delta(&schema, &[(row(10), 2)], 1);
        rows.send(1, move || sent);
        let sent = delta(&schema, &[(row(10), -1), (row(20), 1)], 2);
        rows.send(2, move || sent);
        rows.advance_to(3);
        while probe.less_than(&3) {
            worker.step();
        }
        let snapshot = contents.snapshot();
        for epoch in 0..3 {
            let count: usize = snapshot.read(epoch, &[1]).map(|batch| batch.num_rows()).sum();
            shared.lock().unwrap().push(count);
        }
    });
    assert_eq!(*found.lock().unwrap(), [0, 2, 2]);
}
