//! One random run.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use alluvium_dataflow::fault::{self, Fault};
use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::movement::input::input;
use alluvium_storage::{Compaction, Haphazard, MemoryStorage};
use alluvium_trace::memory::{MemoryBudget, StateContext, context};
use alluvium_trace::{Epoch, Pace, Schedule};
use arrow::datatypes::SchemaRef;
use timely::worker::Worker;

use super::{Feed, History, Random, Rows, Watch, at, feed, history};

/// The settings of one random run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The seed that everything is drawn from.
    pub seed: u64,
    /// The number of workers.
    pub workers: usize,
    /// The number of epochs.
    pub epochs: u64,
    /// Whether arrangements emit a batch for each time.
    pub tiled: bool,
    /// Whether a reader holds compaction back.
    pub hold_compaction: bool,
    /// Whether the inputs that lag end half way.
    pub close_early: bool,
    /// The fault that is armed.
    pub fault: Option<Fault>,
}

impl Run {
    /// Draws a run.
    pub fn draw(seed: u64, fault: Option<Fault>) -> Self {
        let mut random = Random::new(seed);
        Self {
            seed,
            workers: 1 + random.below(3) as usize,
            epochs: 3 + random.below(12),
            tiled: random.once_in(2),
            hold_compaction: random.once_in(3),
            close_early: random.once_in(4),
            fault,
        }
    }

    /// A generator that depends on the run and on `purpose` alone.
    pub fn random(&self, purpose: u64) -> Random {
        Random::new(self.seed ^ purpose)
    }

    /// Histories of two inputs with columns `key` and `value`; the second ends early if the run says so.
    pub fn keyed_histories(&self) -> [History; 2] {
        let mut random = self.random(0xabcd);
        let keys = 1 + random.below(6);
        let values = 1 + random.below(5);
        let mut draw = |last| {
            history(&mut random, last, |random| {
                let value = random.value(values);
                vec![Some(random.below(keys) as i64), value]
            })
        };
        let left = draw(self.epochs);
        [left, draw(if self.close_early { self.epochs / 2 } else { self.epochs })]
    }

    /// Runs `work` on every worker and returns what it watched, by view.
    ///
    /// Depending on the seed, workers keep their state in memory, in files, or in memory until 20 kB are used; and they merge
    /// it at once, in slices, or let other threads do that at any speed; rows are sorted by the worker or by other threads.
    pub fn execute<V, W>(&self, views: impl IntoIterator<Item = V>, work: W) -> BTreeMap<V, History>
    where
        V: Ord + Clone + Debug + Send + Sync + 'static,
        W: Fn(&mut Worker, &Watch<V>) + Send + Sync + 'static,
    {
        let watch = Watch::new(views);
        let (run, shared) = (self.clone(), watch.share());
        let merges = self.seed / 3 % 3;
        let pace = if merges == 1 { Pace::InSlices } else { Pace::AtOnce };
        let background = (merges == 2).then(|| Arc::new(Haphazard::new(self.seed)));
        let guards = timely::execute(timely::Config::process(self.workers), move |worker| {
            fault::arm(run.fault);
            let memory = [usize::MAX, 1, 20_000][(run.seed % 3) as usize];
            let storage = Arc::new(MemoryStorage::new());
            let context = StateContext::new(MemoryBudget::new(memory), Some(storage));
            let tiled = run.tiled;
            let schedule = Schedule { tiled, pace, smallest_job: 0, ..Schedule::default() };
            let mut context = context.with_schedule(schedule);
            if let Some(background) = &background {
                context = context.with_compaction(Arc::clone(background) as Arc<dyn Compaction>);
            }
            // Then other threads sort rows into batches.
            context.set_filling(run.seed / 9 % 2 == 1);
            context::enter(context);
            work(worker, &shared.with_probe());
        })
        .unwrap();
        for result in guards.join() {
            result.unwrap();
        }
        watch.into_histories()
    }

    /// Runs what `build` makes of two inputs of rows of `schema`, which are fed the histories, and returns what it watched, by view.
    pub fn execute_two<V, B>(
        &self,
        views: impl IntoIterator<Item = V>,
        schema: &SchemaRef,
        histories: &[History; 2],
        build: B,
    ) -> BTreeMap<V, History>
    where
        V: Ord + Clone + Debug + Send + Sync + 'static,
        B: for<'scope> Fn(DeltaStream<'scope, Epoch>, DeltaStream<'scope, Epoch>, &Watch<V>)
            + Send
            + Sync
            + 'static,
    {
        let (run, schema, histories) = (self.clone(), schema.clone(), histories.clone());
        self.execute(views, move |worker, watch| {
            let inputs = worker.dataflow(|scope| {
                let context = context::current();
                let (left_input, left) = input(scope, "left", &context);
                let (right_input, right) = input(scope, "right", &context);
                build(left, right, watch);
                [left_input, right_input]
            });
            let feeds = inputs.into_iter().zip(&histories);
            let feeds = feeds.map(|(input, history)| Feed::new(input, history)).collect();
            feed(worker, &run, &schema, feeds, &watch.probe);
        })
    }

    /// Compares the views with what `model` says they hold at each epoch; returns the first difference.
    pub fn compare<V: Ord + Debug>(
        &self,
        views: &BTreeMap<V, History>,
        mut model: impl FnMut(Epoch) -> BTreeMap<V, Rows>,
    ) -> Result<(), String> {
        for epoch in 0..=self.epochs {
            let expected = model(epoch);
            for (view, history) in views {
                let (found, expected) = (at(history, epoch), &expected[view]);
                if found != *expected {
                    return Err(format!(
                        "{view:?} at epoch {epoch}: found {found:?}, expected {expected:?}, in {self:?}"
                    ));
                }
            }
        }
        Ok(())
    }
}
