//! One operator over one input.

use std::collections::BTreeMap;

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::movement::input::input;
use alluvium_trace::Epoch;
use alluvium_trace::memory::context;
use arrow::datatypes::SchemaRef;

use super::{Feed, History, Random, Rows, Run, at, feed, history, numbers};

impl Run {
    /// Rows with a group out of few and `values` small numbers, some of them NULL.
    pub fn grouped_history(&self, random: &mut Random, values: usize) -> History {
        let groups = 1 + random.below(4);
        let bounds: Vec<u64> = (0..values).map(|_| 1 + random.below(6)).collect();
        history(random, self.epochs, |random| {
            let group = Some(random.below(groups) as i64);
            let values = bounds.iter().map(|&bound| random.value(bound));
            std::iter::once(group).chain(values).collect()
        })
    }
}

/// Compares what `build` makes of `rows`, which have these columns, with `model` at each epoch.
pub fn compare_single<B, M>(
    run: &Run,
    columns: &[&str],
    rows: &History,
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
    let (settings, script, schema) = (run.clone(), rows.clone(), numbers(columns));
    let views = run.execute(["output"], move |worker, watch| {
        let input = worker.dataflow(|scope| {
            let (input, rows) = input(scope, "rows", &context::current());
            watch.watch(&"output", build(rows, &schema));
            input
        });
        feed(worker, &settings, &schema, vec![Feed::new(input, &script)], &watch.probe);
    });
    run.compare(&views, |epoch| BTreeMap::from([("output", model(&at(rows, epoch)))]))
}
