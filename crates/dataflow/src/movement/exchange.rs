//! Sending rows to the worker of their key.
//!
//! A key's bytes are hashed into one of [`SHARDS`] shards, and each shard has a worker. The hash is
//! part of the format of state: it decides which shard a stored row belongs to, so it never changes.

use std::sync::Arc;

use alluvium_trace::memory::{MemoryBudget, StateContext};
use alluvium_trace::{Origin, PageTime};
use arrow::array::{Array, AsArray, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, UInt32Type};
use timely::communication::Push;
use timely::container::NoopBuilder;
use timely::dataflow::channels::Message;
use timely::dataflow::channels::pact::{DistributorPact, Pipeline};
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::Operator;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::fault::{self, Fault};
use crate::movement::delta::{Delta, DeltaStream};
use crate::rows::codec::Encoded;
use crate::rows::key_columns::KeyColumns;
use crate::rows::layout::{Layout, assemble};

/// How many shards keys fall into; the most workers that get rows.
pub const SHARDS: usize = 256;

const SEED: u64 = u64::from_be_bytes(*b"Alluvium");

/// The shard of an encoded key: the highest byte of its XXH3-64 seeded with "Alluvium" read as a
/// big-endian number, and 0 for the empty key.
pub fn shard_of(key: &[u8]) -> u8 {
    if key.is_empty() {
        // A fixed shard, so that every worker knows where the only key lives.
        return 0;
    }
    (xxh3_64_with_seed(key, SEED) >> 56) as u8
}

/// The worker of a shard, out of `workers`: shards are assigned to workers in turn.
pub fn worker_of(shard: u8, workers: usize) -> usize {
    usize::from(shard) % workers
}

/// Sends each row to the worker of its key.
///
/// Without key columns all rows go to worker 0. With one worker the stream stays as it is.
pub fn exchange<'scope, T: PageTime>(
    stream: DeltaStream<'scope, T>,
    key: &KeyColumns,
    context: &StateContext,
) -> DeltaStream<'scope, T> {
    let partitions = stream.scope().peers();
    exchange_in(stream, By::Columns(key.clone()), partitions, context)
}

/// Sends each row to the worker of the bytes that are its key in `layout`.
///
/// Without key columns all rows go to worker 0. With one worker the stream stays as it is.
pub fn exchange_by_key<'scope, T: PageTime>(
    stream: DeltaStream<'scope, T>,
    layout: &Layout,
    context: &StateContext,
) -> DeltaStream<'scope, T> {
    let partitions = stream.scope().peers();
    exchange_in(stream, By::Key(layout.clone()), partitions, context)
}

/// Sends each row to the worker of the bytes that are its value in `layout`.
///
/// With one worker the stream stays as it is.
pub fn exchange_by_value<'scope, T: PageTime>(
    stream: DeltaStream<'scope, T>,
    layout: &Layout,
    context: &StateContext,
) -> DeltaStream<'scope, T> {
    let partitions = stream.scope().peers();
    exchange_in(stream, By::Value(layout.clone()), partitions, context)
}

/// Sends each row to the worker of the bytes in a column.
///
/// With one worker the stream stays as it is.
pub(crate) fn exchange_by_bytes<'scope, T: PageTime>(
    stream: DeltaStream<'scope, T>,
    column: usize,
    context: &StateContext,
) -> DeltaStream<'scope, T> {
    let partitions = stream.scope().peers();
    exchange_in(stream, By::Bytes(column), partitions, context)
}

/// Sends each row to the worker of the partition of its key, out of so many.
pub(crate) fn exchange_in_partitions<'scope, T: PageTime>(
    stream: DeltaStream<'scope, T>,
    key: &KeyColumns,
    partitions: usize,
    context: &StateContext,
) -> DeltaStream<'scope, T> {
    exchange_in(stream, By::Columns(key.clone()), partitions, context)
}

/// The partition of a key, out of so many. Partitions are assigned to workers in turn, as shards are to partitions.
pub(crate) fn partition_of(key: &[u8], partitions: usize) -> usize {
    worker_of(shard_of(key), partitions)
}

fn exchange_in<'scope, T: PageTime>(
    stream: DeltaStream<'scope, T>,
    by: By,
    partitions: usize,
    context: &StateContext,
) -> DeltaStream<'scope, T> {
    if stream.scope().peers() == 1 {
        return stream;
    }
    let context = context.clone();
    let pact = DistributorPact(move |workers| ByShard {
        origin: Origin::here(),
        by,
        keys: Encoded::counted(&context),
        context,
        partitions,
        destinations: Vec::new(),
        rows: vec![Vec::new(); workers],
    });
    stream.unary(pact, "Exchange", |_capability, _info| {
        let origin = Origin::here();
        move |input, output: &mut OutputBuilderSession<'_, T, NoopBuilder<Delta<T>>>| {
            origin.run(|| {
                input.for_each(|capability, delta: &mut Delta<T>| {
                    delta.arrive();
                    output.session_with_builder(&capability).give_container(delta);
                });
            })
        }
    })
}

/// Sends each row to every worker.
///
/// With one worker the stream stays as it is.
pub fn broadcast<'scope, T: PageTime>(
    stream: DeltaStream<'scope, T>,
    context: &StateContext,
) -> DeltaStream<'scope, T> {
    let workers = stream.scope().worker().peers();
    if workers == 1 {
        return stream;
    }
    // A channel must deliver as many rows as were sent, so the copies are made before it, each marked with its worker.
    let copies = stream.unary(Pipeline, "Copy", move |_capability, _info| {
        let origin = Origin::here();
        move |input, output: &mut OutputBuilderSession<'_, T, NoopBuilder<Delta<T>>>| {
            origin.run(|| {
                input.for_each(|capability, delta: &mut Delta<T>| {
                    let delta = std::mem::take(delta);
                    let mut session = output.session_with_builder(&capability);
                    for worker in 0..workers {
                        session.give_container(&mut marked(delta.clone(), worker));
                    }
                });
            })
        }
    });
    let budget = context.budget().clone();
    let pact = DistributorPact(|_workers| ByMark { origin: Origin::here(), budget });
    copies.unary(pact, "Broadcast", |_capability, _info| {
        let origin = Origin::here();
        move |input, output: &mut OutputBuilderSession<'_, T, NoopBuilder<Delta<T>>>| {
            origin.run(|| {
                input.for_each(|capability, delta: &mut Delta<T>| {
                    delta.arrive();
                    let columns: Vec<usize> = (0..delta.rows.num_columns() - 1).collect();
                    let mut delta = delta.project(&columns);
                    output.session_with_builder(&capability).give_container(&mut delta);
                });
            })
        }
    })
}

/// The delta with a last column that names its worker.
fn marked<T: Clone>(mut delta: Delta<T>, worker: usize) -> Delta<T> {
    let rows = delta.len();
    let mark = u32::try_from(worker).expect("there are fewer than 2^32 workers");
    let mut fields = delta.rows.schema_ref().fields().to_vec();
    fields.push(Arc::new(Field::new("worker", DataType::UInt32, false)));
    let mut columns = delta.rows.columns().to_vec();
    columns.push(Arc::new(UInt32Array::from_value(mark, rows)));
    delta.rows = assemble(Arc::new(Schema::new(fields)), columns, rows);
    delta
}

/// Sends each delta to the worker that its last column names.
struct ByMark {
    /// Whose rows they are.
    origin: Origin,
    /// Accounts for rows on their way to another worker.
    budget: MemoryBudget,
}

impl<T: Clone> Distributor<Delta<T>> for ByMark {
    fn partition<S: Clone, P: Push<Message<S, Delta<T>>>>(
        &mut self,
        delta: &mut Delta<T>,
        time: &S,
        pushers: &mut [P],
    ) {
        let origin = self.origin.clone();
        origin.run(|| {
            if delta.is_empty() {
                return;
            }
            let marks =
                delta.rows.column(delta.rows.num_columns() - 1).as_primitive::<UInt32Type>();
            let worker = marks.value(0) as usize;
            delta.wait(&self.budget);
            Message::push_at(delta, time.clone(), &mut pushers[worker]);
        })
    }

    fn flush<S: Clone, P: Push<Message<S, Delta<T>>>>(&mut self, _time: &S, _pushers: &mut [P]) {}

    fn relax(&mut self) {}
}

/// The bytes whose hash is the shard of a row.
#[derive(Clone)]
enum By {
    Columns(KeyColumns),
    Key(Layout),
    Value(Layout),
    Bytes(usize),
}

impl By {
    fn encode(&self, rows: &RecordBatch, bytes: &mut Encoded) {
        match self {
            By::Columns(key) => key.encode(rows, bytes),
            By::Key(layout) => layout.encode_keys(rows, bytes),
            By::Value(layout) => layout.encode_values_of(rows, bytes),
            By::Bytes(column) => {
                let rows = rows.column(*column).as_binary::<i32>();
                (0..rows.len()).for_each(|row| bytes.push(rows.value(row)));
            }
        }
    }
}

/// Partitions the rows of a delta by the worker of their key.
struct ByShard {
    /// Whose rows they are.
    origin: Origin,
    context: StateContext,
    by: By,
    keys: Encoded,
    partitions: usize,
    /// The worker of each row.
    destinations: Vec<usize>,
    /// The rows of each worker.
    rows: Vec<Vec<u32>>,
}

impl ByShard {
    /// Finds the rows of each worker; returns the worker of all rows if there is only one.
    fn assign<T: Clone>(&mut self, delta: &Delta<T>) -> Option<usize> {
        let workers = self.rows.len();
        self.keys.clear();
        self.by.encode(&delta.rows, &mut self.keys);
        self.destinations.clear();
        let partitions = self.keys.iter().map(|key| partition_of(key, self.partitions));
        self.destinations.extend(partitions.map(|partition| partition % workers));
        if fault::armed(Fault::WrongWorker) {
            self.destinations.iter_mut().step_by(7).for_each(|worker| *worker = 0);
        }
        let first = *self.destinations.first()?;
        if self.destinations.iter().all(|&worker| worker == first) {
            return Some(first);
        }
        for (row, &worker) in self.destinations.iter().enumerate() {
            self.rows[worker].push(u32::try_from(row).expect("a delta has fewer than 2^32 rows"));
        }
        None
    }
}

impl<T: Clone> Distributor<Delta<T>> for ByShard {
    fn partition<S: Clone, P: Push<Message<S, Delta<T>>>>(
        &mut self,
        delta: &mut Delta<T>,
        time: &S,
        pushers: &mut [P],
    ) {
        let origin = self.origin.clone();
        origin.run(|| {
            if delta.is_empty() {
                return;
            }
            if let Some(worker) = self.assign(delta) {
                delta.wait(self.context.budget());
                Message::push_at(delta, time.clone(), &mut pushers[worker]);
                return;
            }
            for (rows, pusher) in self.rows.iter_mut().zip(pushers) {
                if !rows.is_empty() {
                    let mut part = delta.take(&UInt32Array::from(std::mem::take(rows)));
                    part.wait(self.context.budget());
                    Message::push_at(&mut part, time.clone(), pusher);
                }
            }
        })
    }

    fn flush<S: Clone, P: Push<Message<S, Delta<T>>>>(&mut self, _time: &S, _pushers: &mut [P]) {}

    fn relax(&mut self) {
        self.keys = Encoded::counted(&self.context);
        self.destinations = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::{DataType, Int64Type};
    use timely::dataflow::channels::pact::Pipeline;
    use timely::dataflow::operators::generic::operator::source;
    use timely::{CommunicationConfig, WorkerConfig};

    use super::*;
    use crate::movement::delta::Times;
    use crate::rows::codec::KeyCodec;

    #[test]
    fn the_shards_of_keys_stay_what_they_are() {
        let keys: [&[u8]; 6] =
            [b"", b"\x01", b"alluvium", b"\0\0\0\0\0\0\0\x2a", &[0xff; 40], &[7; 300]];
        assert_eq!(keys.map(shard_of), [0, 147, 163, 206, 45, 247]);
    }

    #[test]
    fn keys_spread_over_all_shards() {
        let mut counts = [0; SHARDS];
        (0..64_000_u64).for_each(|key| counts[usize::from(shard_of(&key.to_be_bytes()))] += 1);
        assert!(counts.iter().all(|count| (150..350).contains(count)), "{counts:?}");
    }

    #[test]
    fn every_worker_has_shards_until_there_are_more_workers() {
        for workers in [1, 2, 3, 7, 256] {
            let mut seen = vec![false; workers];
            (0..=255).for_each(|shard| seen[worker_of(shard, workers)] = true);
            assert!(seen.iter().all(|seen| *seen), "{workers} workers");
        }
    }

    /// The rows each worker gets of 100 rows a worker, by number: the row's time and weight.
    fn exchanged(
        communication: CommunicationConfig,
        columns: Vec<usize>,
    ) -> BTreeMap<(usize, i64), (u64, i64)> {
        let arrived = Arc::new(Mutex::new(BTreeMap::new()));
        let seen = arrived.clone();
        let config = timely::Config { communication, worker: WorkerConfig::default() };
        timely::execute(config, move |worker| {
            let (index, seen) = (worker.index(), seen.clone());
            worker.dataflow::<u64, _, _>(|scope| {
                let first = index as i64 * 100;
                let numbers: ArrayRef = Arc::new(Int64Array::from_iter(first..first + 100));
                let delta = Delta::new(
                    RecordBatch::try_from_iter([("number", numbers)]).unwrap(),
                    Times::Each((0..100).collect()),
                    Some((first..first + 100).collect::<Vec<_>>().into()),
                );
                let key = KeyColumns::new(delta.rows.schema_ref(), &columns).unwrap();
                let deltas = [delta.slice(0, 60), delta.slice(60, 40)];
                let stream = source(scope, "Deltas", move |capability, _info| {
                    let mut waiting = Some((capability, deltas));
                    move |output: &mut OutputBuilderSession<'_, u64, NoopBuilder<Delta<u64>>>| {
                        let Some((capability, mut deltas)) = waiting.take() else { return };
                        for delta in &mut deltas {
                            output.session_with_builder(&capability).give_container(delta);
                        }
                    }
                });
                exchange(stream, &key, &StateContext::default()).sink(
                    Pipeline,
                    "Check",
                    move |(input, _)| {
                        input.for_each(|_, delta: &mut Delta<u64>| {
                            let numbers = delta.rows.column(0).as_primitive::<Int64Type>();
                            let mut seen = seen.lock().unwrap();
                            for row in 0..delta.len() {
                                let change = (*delta.time(row), delta.weight(row));
                                let before = seen.insert((index, numbers.value(row)), change);
                                assert_eq!(before, None);
                            }
                        });
                    },
                );
            });
        })
        .unwrap();
        Arc::try_unwrap(arrived).unwrap().into_inner().unwrap()
    }

    #[test]
    fn every_row_arrives_once_at_the_worker_of_its_key_with_its_time_and_weight() {
        let codec = KeyCodec::new(&[DataType::Int64]).unwrap();
        for workers in [1, 2, 3] {
            let expected = (0..workers as i64 * 100).map(|number| {
                let mut key = Encoded::new();
                let column: ArrayRef = Arc::new(Int64Array::from(vec![number]));
                codec.encode(&[column], 1, &mut key).unwrap();
                let worker = worker_of(shard_of(key.get(0)), workers);
                ((worker, number), (number as u64 % 100, number))
            });
            let expected = expected.collect();
            assert_eq!(exchanged(CommunicationConfig::Process(workers), vec![0]), expected);
            // As bytes, as between processes.
            assert_eq!(exchanged(CommunicationConfig::ProcessBinary(workers), vec![0]), expected);
        }
    }

    #[test]
    fn without_a_key_all_rows_meet_at_the_first_worker() {
        let arrived = exchanged(CommunicationConfig::Process(3), Vec::new());
        assert_eq!(arrived.len(), 300);
        assert!(arrived.keys().all(|(worker, _)| *worker == 0));
    }
}
