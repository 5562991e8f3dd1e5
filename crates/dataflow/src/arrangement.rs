//! Rows at rest: sorted, indexed by key, shared by the operators of a worker.

use alluvium_trace::memory::{StateContext, context};
use alluvium_trace::{Batch, Cursor, Epoch, NullTrace, PageTime, RowBuffer, Spine, StateTrace};
use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::TraceReader;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::operator::Operator;
use timely::order::PartialOrder;
use timely::progress::Antichain;

use crate::codec::Encoded;
use crate::delta::{Delta, DeltaStream, Times};
use crate::layout::Layout;
use crate::pieces::{Piece, in_pieces};

/// How many rows an operator puts into one delta.
pub const DELTA_ROWS: usize = 8192;
/// How many bytes of encoded rows an operator puts into one delta, or little more.
pub(crate) fn delta_bytes(context: &StateContext) -> usize {
    context.budget().policy().output_batch
}

/// A stream of batches and the trace they add up to, with the meaning of their bytes.
pub struct Arrangement<'scope, Tr: TraceReader> {
    /// The batches and the trace.
    pub arranged: Arranged<'scope, Tr>,
    /// How rows lie in keys and values.
    pub layout: Layout,
    /// The time from which on the batches may be read: readers advance earlier times to it.
    ///
    /// The minimum but for an arrangement that was imported from another dataflow.
    pub as_of: Tr::Time,
}

/// An arrangement whose past is kept.
pub type Kept<'scope, T> = Arrangement<'scope, TraceAgent<Spine<T>>>;
/// An arrangement that is only a stream of batches.
pub type Passing<'scope, T> = Arrangement<'scope, TraceAgent<NullTrace<T>>>;

impl<'scope, Tr: TraceReader + Clone> Clone for Arrangement<'scope, Tr> {
    fn clone(&self) -> Self {
        Self {
            arranged: self.arranged.clone(),
            layout: self.layout.clone(),
            as_of: self.as_of.clone(),
        }
    }
}

/// Sorts what arrives by key into one batch per step of the frontier.
///
/// Rows stay on the worker they are on: exchange them first where their place matters.
pub fn arrange<'scope, T, Tr>(
    stream: DeltaStream<'scope, T>,
    layout: Layout,
    name: &str,
) -> Arrangement<'scope, TraceAgent<Tr>>
where
    T: PageTime,
    Tr: StateTrace<Time = T, Batch = Batch<T>> + 'static,
{
    let context = context::current();
    let mut keys = Encoded::counted(&context);
    let mut values = Encoded::counted(&context);
    let encoding = layout.clone();
    let key = layout.key_names();
    let arranged = arrange_encoded(stream, &context, name, key, move |delta, buffer| {
        keys.clear();
        values.clear();
        encoding
            .encode(&delta.rows, &mut keys, &mut values)
            .expect("rows have the types their layout was made for");
        for row in 0..delta.len() {
            buffer.push(keys.get(row), values.get(row), delta.time(row), delta.weight(row));
        }
    });
    Arrangement { arranged, layout, as_of: T::minimum() }
}

/// As [`arrange`], keeping the past.
pub fn keep<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    layout: Layout,
    name: &str,
) -> Kept<'scope, Epoch> {
    arrange(stream, layout, name)
}

/// As [`arrange`], for rows that `encode` turns into keys and values of its own; `key` names their columns, for
/// people.
pub(crate) fn arrange_encoded<'scope, T, Tr>(
    stream: DeltaStream<'scope, T>,
    context: &StateContext,
    name: &str,
    key: String,
    mut encode: impl FnMut(&Delta<T>, &mut RowBuffer<T>) + 'static,
) -> Arranged<'scope, TraceAgent<Tr>>
where
    T: PageTime,
    Tr: StateTrace<Time = T, Batch = Batch<T>> + 'static,
{
    let mut reader = None;
    let reader_of = &mut reader;
    let context = context.for_operator(name, key);
    let stream = stream.unary_frontier(Pipeline, name, move |_capability, info| {
        let tiled = context.schedule().tiled;
        let trace = Tr::in_context(&context);
        let (trace_reader, mut writer) = TraceAgent::new(trace, info, None);
        *reader_of = Some(trace_reader);

        let mut held = Antichain::<Capability<T>>::new();
        let mut sealed = Antichain::from_elem(T::minimum());
        let mut buffer = RowBuffer::new(&context);
        let mut tiles = Vec::new();

        move |(input, frontier), output| {
            input.for_each(|capability, delta: &mut Delta<T>| {
                if tiled {
                    tiles.push(*capability.time());
                }
                held.insert(capability.retain(0));
                encode(delta, &mut buffer);
            });
            if !PartialOrder::less_than(&sealed.borrow(), &frontier.frontier()) {
                writer.exert();
                return;
            }
            if held.elements().iter().any(|capability| !frontier.less_equal(capability.time())) {
                // A message carries one capability, so a step past several of them is cut into
                // as many batches: each reaches up to the frontier and the capabilities to come.
                for index in 0..held.elements().len() {
                    if frontier.less_equal(held.elements()[index].time()) {
                        continue;
                    }
                    let mut upper = frontier.frontier().to_owned();
                    for later in &held.elements()[index + 1..] {
                        upper.insert(*later.time());
                    }
                    if upper == sealed {
                        continue;
                    }
                    let mut held_from = sealed.clone();
                    let capability = &held.elements()[index];
                    let mut seal = |upper: Antichain<T>| {
                        let batch = buffer.seal(describe(&sealed, &upper));
                        sealed = upper;
                        writer.insert(batch.clone(), Some(*capability.time()));
                        output.session(capability).give(batch);
                    };
                    tiles.sort_unstable();
                    for tile in tiles.drain(..).map(Antichain::from_elem) {
                        let within = PartialOrder::less_than(&held_from, &tile)
                            && PartialOrder::less_than(&tile, &upper);
                        if within {
                            held_from = tile.clone();
                            seal(tile);
                        }
                    }
                    seal(upper);
                }
                let mut still_held = Antichain::new();
                for time in buffer.frontier().iter() {
                    let capability = held
                        .elements()
                        .iter()
                        .find(|capability| capability.time().less_equal(time))
                        .expect("a row arrives under a capability for its time");
                    still_held.insert(capability.delayed(time));
                }
                held = still_held;
            }
            sealed = frontier.frontier().to_owned();
            writer.seal(sealed.clone());
            writer.exert();
        }
    });
    Arranged { stream, trace: reader.expect("an operator is built when it is added") }
}

fn describe<T: PageTime>(
    lower: &Antichain<T>,
    upper: &Antichain<T>,
) -> differential_dataflow::trace::Description<T> {
    let since = Antichain::from_elem(T::minimum());
    differential_dataflow::trace::Description::new(lower.clone(), upper.clone(), since)
}

impl<'scope, Tr> Arrangement<'scope, Tr>
where
    Tr: TraceReader<Time = Epoch, Batch = Batch<Epoch>> + 'static,
{
    /// The changes as they pass, with the columns `columns` of the rows.
    pub fn deltas(self, columns: &[usize]) -> DeltaStream<'scope, Epoch> {
        // The trace is dropped: a stream of deltas reads nothing from it.
        read(self.arranged.stream, self.layout, columns.to_vec(), self.as_of)
    }
}

/// The rows of batches, with times advanced to `as_of`.
fn read<'scope>(
    batches: Stream<'scope, Epoch, Vec<Batch<Epoch>>>,
    layout: Layout,
    columns: Vec<usize>,
    as_of: Epoch,
) -> DeltaStream<'scope, Epoch> {
    let context = context::current();
    let mut gathered = Gathered::new(&context);
    let next = move |cursor: &mut Cursor<Epoch>| {
        gathered.fill(cursor, |time| time.max(as_of));
        gathered.take(&layout, &columns).map(Piece::from)
    };
    in_pieces(batches, &context, "Deltas", read_each, next).0
}

/// The work of reading batches one after the other.
pub(crate) fn read_each<T: PageTime>(batches: &mut Vec<Batch<T>>, work: &mut dyn FnMut(Cursor<T>)) {
    batches.drain(..).for_each(|batch| work(batch.scan()));
}

/// Encoded rows on their way into a delta.
pub(crate) struct Gathered<T> {
    keys: Encoded,
    values: Encoded,
    stamps: Stamps<T>,
    /// How many bytes make a delta.
    most: usize,
}

impl<T: PageTime> Gathered<T> {
    pub(crate) fn new(context: &StateContext) -> Self {
        Self {
            keys: Encoded::counted(context),
            values: Encoded::counted(context),
            stamps: Stamps::default(),
            most: delta_bytes(context),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.stamps.times.len()
    }

    /// Whether it is enough for a delta.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= DELTA_ROWS || self.keys.bytes().len() + self.values.bytes().len() >= self.most
    }

    pub(crate) fn push(&mut self, key: &[u8], value: &[u8], time: T, weight: i64) {
        self.keys.push(key);
        self.values.push(value);
        self.stamps.push(time, weight);
    }

    /// Adds the rows of a batch from where `cursor` stands, until they make a delta; their times are what
    /// `advance` makes of them. Whether there are any.
    pub(crate) fn fill(&mut self, cursor: &mut Cursor<T>, advance: impl Fn(T) -> T) -> bool {
        while !self.is_full() {
            let Some(key) = cursor.key() else { break };
            let Some(value) = cursor.val() else {
                cursor.step_key();
                continue;
            };
            for (time, weight) in cursor.updates() {
                self.push(key, value, advance(time), weight);
            }
            cursor.step_val();
        }
        self.len() > 0
    }

    /// What was gathered, as `decode` reads its keys and values.
    pub(crate) fn finish(
        &mut self,
        decode: impl FnOnce(&Encoded, &Encoded) -> RecordBatch,
    ) -> Delta<T> {
        let rows = decode(&self.keys, &self.values);
        self.keys.clear();
        self.values.clear();
        self.stamps.take(rows)
    }

    /// What was gathered: keys, values, and when and by how much they change.
    pub(crate) fn parts(&self) -> (&Encoded, &Encoded, &Stamps<T>) {
        (&self.keys, &self.values, &self.stamps)
    }

    /// Forgets what was gathered.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
        self.stamps.times.clear();
        self.stamps.weights.clear();
    }

    /// What was gathered, decoded; `None` if nothing was.
    pub(crate) fn take(&mut self, layout: &Layout, columns: &[usize]) -> Option<Delta<T>> {
        if self.len() == 0 {
            return None;
        }
        Some(self.finish(|keys, values| {
            layout
                .decode_batch(keys, values, columns)
                .expect("a batch holds what its layout encoded")
        }))
    }
}

/// The times and weights of the rows of a delta to come.
pub(crate) struct Stamps<T> {
    pub(crate) times: Vec<T>,
    pub(crate) weights: Vec<i64>,
}

impl<T> Default for Stamps<T> {
    fn default() -> Self {
        Self { times: Vec::new(), weights: Vec::new() }
    }
}

impl<T: PageTime> Stamps<T> {
    pub(crate) fn push(&mut self, time: T, weight: i64) {
        self.times.push(time);
        self.weights.push(weight);
    }

    /// The delta of `rows`, one for each stamp.
    pub(crate) fn take(&mut self, rows: RecordBatch) -> Delta<T> {
        let times = std::mem::take(&mut self.times);
        let weights = std::mem::take(&mut self.weights);
        let times = match times.first() {
            Some(first) if times.iter().all(|time| time == first) => Times::Same(*first),
            _ => Times::Each(times.into()),
        };
        let weights = if weights.iter().all(|&weight| weight == 1) {
            None
        } else {
            Some(ScalarBuffer::from(weights))
        };
        Delta::new(rows, times, weights)
    }
}
