//! Random changes to two inputs, and a random way to feed them.

use std::sync::Arc;

use alluvium_dataflow::fault::Fault;
use alluvium_dataflow::input::Input;
use alluvium_storage::MemoryStorage;
use alluvium_trace::Epoch;
use alluvium_trace::memory::{MemoryBudget, StateContext, context};
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use crate::model::{History, Random, Row, delta, numbers};

/// One random run.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it is drawn from.
    pub seed: u64,
    /// How many workers.
    pub workers: usize,
    /// How many epochs.
    pub epochs: u64,
    /// Whether batches come in tiles.
    pub tiled: bool,
    /// Whether a reader holds compaction back.
    pub hold_compaction: bool,
    /// Whether the right input ends half way.
    pub close_right_early: bool,
    /// The mistake that operators make.
    pub fault: Option<Fault>,
}

impl Run {
    /// Draws a run.
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self {
            seed,
            workers: 1 + random.below(3) as usize,
            epochs: 3 + random.below(12),
            tiled: random.once_in(2),
            hold_compaction: random.once_in(3),
            close_right_early: random.once_in(4),
            fault: None,
        }
    }
}

/// What changes, and when: per input, per epoch.
#[derive(Clone)]
pub struct Script {
    /// Of the left input.
    pub left: History,
    /// Of the right input.
    pub right: History,
}

/// Keeps the state of a worker, depending on the run, in memory, in files, or where there happens to be room.
pub fn surround(seed: u64) {
    let memory = [usize::MAX, 1, 20_000][(seed % 3) as usize];
    let storage = Arc::new(MemoryStorage::new());
    let budget = MemoryBudget::new(memory);
    context::enter(StateContext::new(budget, Some(storage)));
}

/// Draws changes: rows come, come again, and go, but never more often than they came.
pub fn script(run: &Run) -> Script {
    let mut random = Random::new(run.seed ^ 0xabcd);
    let keys = 1 + random.below(6);
    let values = 1 + random.below(5);
    let mut draw = |last: Epoch| {
        let mut history = History::new();
        let mut present: Vec<Row> = Vec::new();
        for epoch in 1..=last {
            if random.once_in(4) {
                continue;
            }
            for _ in 0..random.below(9) {
                if !present.is_empty() && random.once_in(3) {
                    let index = random.below(present.len() as u64) as usize;
                    history.push((present.swap_remove(index), epoch, -1));
                } else {
                    let value = (!random.once_in(8)).then(|| random.below(values) as i64 - 1);
                    let row = vec![Some(random.below(keys) as i64), value];
                    present.push(row.clone());
                    history.push((row, epoch, 1));
                }
            }
        }
        history
    };
    let left = draw(run.epochs);
    let right = draw(if run.close_right_early { run.epochs / 2 } else { run.epochs });
    Script { left, right }
}

/// Feeds this worker's share of the script to the inputs, with columns `key` and `value`, and steps until all
/// is done.
pub fn play(
    worker: &mut Worker,
    run: &Run,
    script: &Script,
    inputs: (Input<Epoch>, Input<Epoch>),
    probe: &Handle<Epoch>,
) {
    let (mut left_input, mut right_input) = inputs;
    let index = worker.index();
    let mut random = Random::new(run.seed ^ 0x5eed);
    // Rows are dealt out over the workers; where they arrive must not matter.
    let share = |history: &History, epoch: Epoch| -> Vec<(Row, i64)> {
        history
            .iter()
            .enumerate()
            .filter(|(at, (_, time, _))| *time == epoch && at % run.workers == index)
            .map(|(_, (row, _, weight))| (row.clone(), *weight))
            .collect()
    };
    let schema = numbers(&["key", "value"]);
    let mut lagging = 1;
    let mut right_input_open = true;
    for epoch in 1..=run.epochs {
        let sent = delta(&schema, &share(&script.left, epoch), epoch);
        left_input.send(epoch, move || sent);
        // Sometimes several epochs are sent before the frontier moves, and moves at once.
        if !random.once_in(3) {
            left_input.advance_to(epoch + 1);
        }
        // The right input lags behind by some epochs, then catches up in one jump.
        if random.once_in(2) && right_input_open {
            for late in lagging..=epoch {
                let sent = delta(&schema, &share(&script.right, late), late);
                right_input.send(late, move || sent);
            }
            lagging = epoch + 1;
            right_input.advance_to(lagging);
            if run.close_right_early && epoch > run.epochs / 2 {
                right_input_open = false;
            }
        }
        // Sometimes the dataflow is stepped now, sometimes epochs pile up.
        for _ in 0..random.below(6) {
            worker.step();
        }
        if random.once_in(5) {
            for _ in 0..100 {
                worker.step();
            }
        }
    }
    if right_input_open {
        for late in lagging..=run.epochs {
            let sent = delta(&schema, &share(&script.right, late), late);
            right_input.send(late, move || sent);
        }
    }
    drop((left_input, right_input));
    while !probe.done() {
        worker.step();
    }
}
