//! The outputs of a dataflow, collected from all workers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use alluvium_dataflow::KeyColumns;
use alluvium_dataflow::movement::delta::{Delta, DeltaStream};
use alluvium_dataflow::movement::exchange::exchange;
use alluvium_dataflow::rows::layout::Layout;
use alluvium_dataflow::state::arrangement::{Kept, keep};
use alluvium_trace::Epoch;
use alluvium_trace::memory::context;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, SchemaRef};
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::probe::{Handle, Probe};

use super::History;

type Collected = Arc<Mutex<History>>;

/// The changes of some views, and a probe that follows all that are watched on one worker.
pub struct Watch<V> {
    collected: Arc<BTreeMap<V, Collected>>,
    /// Follows every stream watched through this value.
    pub probe: Handle<Epoch>,
}

/// The part of a [`Watch`] that workers share.
pub struct Shared<V>(Arc<BTreeMap<V, Collected>>);

impl<V> Shared<V> {
    /// A watch for one worker.
    pub fn with_probe(&self) -> Watch<V> {
        Watch { collected: self.0.clone(), probe: Handle::new() }
    }
}

impl<V: Ord + Clone> Watch<V> {
    /// Watches nothing yet.
    pub fn new(views: impl IntoIterator<Item = V>) -> Self {
        let collected = views.into_iter().map(|view| (view, Collected::default())).collect();
        Self { collected: Arc::new(collected), probe: Handle::new() }
    }

    /// The part that workers share.
    pub fn share(&self) -> Shared<V> {
        Shared(self.collected.clone())
    }

    /// The changes of all views so far.
    pub fn into_histories(self) -> BTreeMap<V, History> {
        let views = self.collected.iter();
        views
            .map(|(view, collected)| {
                (view.clone(), std::mem::take(&mut *collected.lock().unwrap()))
            })
            .collect()
    }

    /// Collects the changes of `stream` as those of `view`, followed by the probe.
    pub fn watch(&self, view: &V, stream: DeltaStream<'_, Epoch>) {
        self.watch_with(view, stream, &self.probe);
    }

    /// Collects the changes of `stream` as those of `view`, followed by a probe of its own.
    pub fn watch_with(&self, view: &V, stream: DeltaStream<'_, Epoch>, probe: &Handle<Epoch>) {
        collect(stream, self.collected[view].clone()).probe_with(probe);
    }
}

fn collect(stream: DeltaStream<'_, Epoch>, into: Collected) -> DeltaStream<'_, Epoch> {
    stream.unary::<timely::container::NoopBuilder<Delta<Epoch>>, _, _, _>(
        Pipeline,
        "Collect",
        move |_, _| {
            move |input, output| {
                input.for_each(|capability, delta: &mut Delta<Epoch>| {
                    let mut collected = into.lock().unwrap();
                    let columns: Vec<ArrayRef> = delta
                        .rows
                        .columns()
                        .iter()
                        .map(|column| cast(column, &DataType::Int64).unwrap())
                        .collect();
                    for row in 0..delta.len() {
                        let values = columns
                            .iter()
                            .map(|column| {
                                let column = column.as_primitive::<Int64Type>();
                                column.is_valid(row).then(|| column.value(row))
                            })
                            .collect();
                        assert!(*delta.time(row) >= *capability.time());
                        collected.push((values, *delta.time(row), delta.weight(row)));
                    }
                    output.session_with_builder(&capability).give_container(delta);
                });
            }
        },
    )
}

/// Arranges a stream of numbers by the columns `keys`, on the workers that own the keys.
pub fn keyed<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    schema: &SchemaRef,
    keys: &[usize],
) -> Kept<'scope> {
    let context = context::current();
    let stream = exchange(stream, &KeyColumns::new(schema, keys).unwrap(), &context);
    keep(stream, Layout::keyed(schema.clone(), keys).unwrap(), "Test", &context)
}
