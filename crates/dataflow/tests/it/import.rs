//! An arrangement read in other dataflows, as of an epoch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use alluvium_dataflow::KeyColumns;
use alluvium_dataflow::aggregate::{self, Aggregate, Function, aggregate};
use alluvium_dataflow::arrangement::keep;
use alluvium_dataflow::contents::Contents;
use alluvium_dataflow::exchange::exchange;
use alluvium_dataflow::import::Imports;
use alluvium_dataflow::input::input;
use alluvium_dataflow::join::{self, join};
use alluvium_dataflow::layout::Layout;
use alluvium_trace::Epoch;
use alluvium_trace::memory::context;
use arrow::datatypes::DataType;
use timely::dataflow::operators::probe::{Handle, Probe};

use crate::model::{Collected, History, Random, Row, Rows, at, collect, delta, numbers};

/// Changes by epoch: a few keys, retractions included.
fn changes(random: &mut Random, epochs: Epoch) -> History {
    let mut history = History::new();
    let mut present: Vec<Row> = Vec::new();
    for epoch in 1..=epochs {
        for _ in 0..random.below(8) {
            if !present.is_empty() && random.once_in(3) {
                let index = random.below(present.len() as u64) as usize;
                history.push((present.swap_remove(index), epoch, -1));
            } else {
                let row = vec![Some(random.below(4) as i64), Some(random.below(5) as i64)];
                present.push(row.clone());
                history.push((row, epoch, 1));
            }
        }
    }
    history
}

/// What the views that import put out, by the epoch they were built at.
type Built = BTreeMap<Epoch, (Collected, Collected)>;

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

fn check(seed: u64) {
    let mut random = Random::new(seed);
    let epochs = 4 + random.below(8);
    let workers = 1 + random.below(3) as usize;
    let history = changes(&mut random, epochs);
    let built: Arc<Built> = Arc::new(
        (1..=epochs).map(|epoch| (epoch, (Collected::default(), Collected::default()))).collect(),
    );
    let (shared, script) = (built.clone(), history.clone());
    let guards = timely::execute(timely::Config::process(workers), move |worker| {
        let schema = numbers(&["key", "value"]);
        let (mut rows, mut contents, probe) = worker.dataflow(|scope| {
            let probe = Handle::new();
            let (end, stream) = input(scope, "rows", &context::current());
            let stream =
                exchange(stream, &KeyColumns::new(&schema, &[0]).unwrap(), &context::current());
            let layout = Layout::keyed(numbers(&["key", "value"]), &[0]).unwrap();
            let kept = keep(stream, layout, "Rows", &context::current());
            kept.arranged.stream.clone().probe_with(&probe);
            (end, Contents::new(&kept, &context::current()), probe)
        });
        let mut views = Vec::new();
        for epoch in 1..=epochs {
            let mine: Vec<(Row, i64)> = script
                .iter()
                .enumerate()
                .filter(|(at, (_, time, _))| *time == epoch && at % workers == worker.index())
                .map(|(_, (row, _, weight))| (row.clone(), *weight))
                .collect();
            let sent = delta(&schema, &mine, epoch);
            rows.send(epoch, move || sent);
            rows.advance_to(epoch + 1);
            while probe.less_than(&(epoch + 1)) {
                worker.step();
            }
            // Every third epoch compaction catches up: the trace then holds advanced times.
            if epoch % 3 == 0 {
                contents.allow_compaction(epoch);
            }
            let view = worker.dataflow(|scope| {
                let done = Handle::new();
                let mut imports = Imports::default();
                let imported = contents.import(scope, epoch, &mut imports);
                let (pairs, sums) = shared[&epoch].clone();
                let all = [0, 1];
                let spec = join::Spec::new((&schema, &all), (&schema, &all));
                let joined = join(&spec, imported.clone(), imported.clone(), &context::current());
                collect(joined, pairs).probe_with(&done);
                let count = Aggregate {
                    function: Function::Count,
                    input: None,
                    distinct: false,
                    result: DataType::Int64,
                };
                let sum = Aggregate {
                    function: Function::Sum,
                    input: Some(1),
                    distinct: false,
                    result: DataType::Int64,
                };
                let output = numbers(&["key", "count", "sum"]);
                let stream = imported.deltas(&all, &context::current());
                let spec =
                    aggregate::Spec::compile(&schema, &[0], &[count, sum], &[], false, &output);
                let groups = aggregate(&spec.unwrap(), stream, &context::current());
                collect(groups.rows, sums).probe_with(&done);
                (imports, done)
            });
            views.push(view);
        }
        // Views that are dropped end while the rest goes on.
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
    })
    .unwrap();
    for result in guards.join() {
        result.unwrap();
    }
    for (as_of, (pairs, sums)) in built.iter() {
        let (pairs, sums) = (pairs.lock().unwrap(), sums.lock().unwrap());
        let last = if *as_of == 1 { 1 } else { epochs };
        for (_, time, _) in pairs.iter().chain(sums.iter()) {
            assert!(time >= as_of, "a change at {time} in a view built as of {as_of}, seed {seed}");
        }
        for epoch in *as_of..=last {
            let rows = at(&history, epoch);
            assert_eq!(
                at(&pairs, epoch),
                self_join(&rows),
                "join as of {as_of} at {epoch}, {seed}"
            );
            assert_eq!(at(&sums, epoch), totals(&rows), "sums as of {as_of} at {epoch}, {seed}");
        }
    }
}

#[test]
fn a_view_built_as_of_an_epoch_holds_that_epoch_and_all_after_and_nothing_before() {
    for seed in 0..60 {
        check(seed);
    }
}

#[test]
fn a_snapshot_reads_every_epoch_that_compaction_has_not_passed() {
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
