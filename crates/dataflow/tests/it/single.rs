//! One operator over one input that changes at random, held against a model at every epoch.

use std::sync::{Arc, Mutex};

use alluvium_dataflow::delta::DeltaStream;
use alluvium_dataflow::fault::{self, Fault};
use alluvium_dataflow::input::input;
use alluvium_trace::Epoch;
use alluvium_trace::memory::context;
use arrow::datatypes::SchemaRef;
use timely::dataflow::operators::probe::{Handle, Probe};

use crate::model::{Collected, History, Random, Row, Rows, at, collect, delta, numbers};
use crate::schedule::surround;

/// One random run.
#[derive(Clone, Debug)]
pub struct Run {
    pub seed: u64,
    pub workers: usize,
    pub epochs: u64,
    /// Whether arrangements put out a batch for each time.
    pub tiled: bool,
    pub fault: Option<Fault>,
}

impl Run {
    /// What `seed` says, and the randomness that is left.
    pub fn draw(seed: u64, fault: Option<Fault>) -> (Self, Random) {
        let mut random = Random::new(seed ^ 0x51_49_13);
        let run = Self {
            seed,
            workers: 1 + random.below(3) as usize,
            epochs: 3 + random.below(12),
            tiled: random.once_in(2),
            fault,
        };
        (run, random)
    }

    /// Rows of a group out of few, and of `values` small numbers, some of them NULL: they come, come again,
    /// and go, but never more often than they came.
    pub fn history(&self, random: &mut Random, values: usize) -> History {
        let groups = 1 + random.below(4);
        let bounds: Vec<u64> = (0..values).map(|_| 1 + random.below(6)).collect();
        let mut history = History::new();
        let mut present: Vec<Row> = Vec::new();
        for epoch in 1..=self.epochs {
            if random.once_in(5) {
                continue;
            }
            for _ in 0..random.below(9) {
                if !present.is_empty() && random.once_in(3) {
                    let index = random.below(present.len() as u64) as usize;
                    history.push((present.swap_remove(index), epoch, -1));
                } else {
                    let mut row = vec![Some(random.below(groups) as i64)];
                    row.extend(bounds.iter().map(|&bound| {
                        (!random.once_in(8)).then(|| random.below(bound) as i64 - 1)
                    }));
                    present.push(row.clone());
                    history.push((row, epoch, 1));
                }
            }
        }
        history
    }

    /// The first epoch at which what `build` makes of the history is not what `model` makes of its rows.
    pub fn compare<B, M>(
        &self,
        columns: &[&str],
        history: &History,
        build: B,
        model: M,
    ) -> Result<(), String>
    where
        B: for<'scope> Fn(DeltaStream<'scope, Epoch>, &SchemaRef) -> DeltaStream<'scope, Epoch>
            + Send
            + Sync
            + 'static,
        M: Fn(&Rows) -> Rows,
    {
        let found = self.changes(columns, history, build);
        for epoch in 0..=self.epochs {
            let (found, expected) = (at(&found, epoch), model(&at(history, epoch)));
            if found != expected {
                return Err(format!(
                    "at epoch {epoch}: found {found:?}, expected {expected:?}, in {self:?}"
                ));
            }
        }
        Ok(())
    }

    fn changes<B>(&self, columns: &[&str], history: &History, build: B) -> History
    where
        B: for<'scope> Fn(DeltaStream<'scope, Epoch>, &SchemaRef) -> DeltaStream<'scope, Epoch>
            + Send
            + Sync
            + 'static,
    {
        let collected: Collected = Arc::new(Mutex::new(Vec::new()));
        let into = collected.clone();
        let (run, history, schema) = (self.clone(), history.clone(), numbers(columns));
        let guards = timely::execute(timely::Config::process(self.workers), move |worker| {
            fault::arm(run.fault);
            fault::tile(run.tiled);
            surround(run.seed);
            let index = worker.index();
            let mut random = Random::new(run.seed ^ 0x5eed);
            let probe = Handle::new();
            let mut rows_input = worker.dataflow(|scope| {
                let (rows_input, rows) = input(scope, "rows", &context::current());
                collect(build(rows, &schema), into.clone()).probe_with(&probe);
                rows_input
            });
            for epoch in 1..=run.epochs {
                // Rows are dealt out over the workers; where they arrive must not matter.
                let share: Vec<(Row, i64)> = history
                    .iter()
                    .enumerate()
                    .filter(|(at, (_, time, _))| *time == epoch && at % run.workers == index)
                    .map(|(_, (row, _, weight))| (row.clone(), *weight))
                    .collect();
                let sent = delta(&schema, &share, epoch);
                rows_input.send(epoch, move || sent);
                // Sometimes several epochs are sent before the frontier moves, and moves at once.
                if !random.once_in(3) {
                    rows_input.advance_to(epoch + 1);
                }
                for _ in 0..random.below(12) {
                    worker.step();
                }
            }
            drop(rows_input);
            while !probe.done() {
                worker.step();
            }
        })
        .unwrap();
        for result in guards.join() {
            result.unwrap();
        }
        std::mem::take(&mut *collected.lock().unwrap())
    }
}

/// How many random runs a test makes.
pub fn runs() -> u64 {
    std::env::var("ALLUVIUM_RUNS").map_or(100, |runs| runs.parse().unwrap())
}
