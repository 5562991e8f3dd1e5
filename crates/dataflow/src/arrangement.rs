//! Rows at rest: sorted, indexed by key, shared by the operators of a worker.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Cursor, Epoch, PageTime, RowBuffer, Spine, StateTrace};
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::{Description, TraceReader};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::operator::Operator;
use timely::order::PartialOrder;
use timely::progress::Antichain;

use crate::codec::Encoded;
use crate::delta::{Delta, DeltaStream, EncodedDelta};
use crate::fuel::{Produced, fueled};
use crate::layout::Layout;
use crate::reader::Reader;

/// A stream of batches and the trace they add up to, with the meaning of their bytes.
pub struct Arrangement<'scope, Tr: TraceReader> {
    /// The batches and the trace.
    pub arranged: Arranged<'scope, Tr>,
    /// How rows lie in keys and values.
    pub layout: Layout,
}

/// An arrangement whose past is kept.
pub type Kept<'scope> = Arrangement<'scope, Reader>;

impl<'scope, Tr: TraceReader + Clone> Clone for Arrangement<'scope, Tr> {
    fn clone(&self) -> Self {
        Self { arranged: self.arranged.clone(), layout: self.layout.clone() }
    }
}

/// Sorts rows by key into one batch per step of the frontier, and keeps their history.
///
/// Rows stay on the worker they are on: exchange them first where their place matters.
pub fn keep<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    layout: Layout,
    name: &str,
    context: &StateContext,
) -> Kept<'scope> {
    Arrangement::kept(arrange::<Epoch, Spine<Epoch>>(stream, &layout, name, context), layout)
}

/// Sorts rows of `layout` by key into one batch per step of the frontier.
///
/// Rows stay on the worker they are on: exchange them first where their place matters.
pub fn arrange<'scope, T, Tr>(
    stream: DeltaStream<'scope, T>,
    layout: &Layout,
    name: &str,
    context: &StateContext,
) -> Arranged<'scope, TraceAgent<Tr>>
where
    T: PageTime,
    Tr: StateTrace<Time = T, Batch = Batch<T>> + 'static,
{
    let mut keys = Encoded::counted(context);
    let mut values = Encoded::counted(context);
    let encoding = layout.clone();
    arrange_encoded(stream, name, layout.key_names(), context, move |delta, buffer| {
        keys.clear();
        values.clear();
        encoding.encode(&delta.rows, &mut keys, &mut values);
        for row in 0..delta.len() {
            buffer.push(keys.get(row), values.get(row), delta.time(row), delta.weight(row));
        }
    })
}

/// As [`arrange`], for rows that `encode` turns into keys and values of its own. `key` names the key columns in metrics.
pub(crate) fn arrange_encoded<'scope, T, Tr>(
    stream: DeltaStream<'scope, T>,
    name: &str,
    key: String,
    context: &StateContext,
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

/// The interval from `lower` to `upper`, with exact times.
pub(crate) fn describe<T: PageTime>(lower: &Antichain<T>, upper: &Antichain<T>) -> Description<T> {
    Description::new(lower.clone(), upper.clone(), Antichain::from_elem(T::minimum()))
}

impl<'scope> Arrangement<'scope, Reader> {
    /// Rows of `layout` that a spine keeps, from the first epoch on.
    pub(crate) fn kept(
        arranged: Arranged<'scope, TraceAgent<Spine<Epoch>>>,
        layout: Layout,
    ) -> Self {
        let trace = Reader::new(arranged.trace, 0);
        Self { arranged: Arranged { stream: arranged.stream, trace }, layout }
    }

    /// The changes, with the columns `columns` of the rows.
    pub fn deltas(self, columns: &[usize], context: &StateContext) -> DeltaStream<'scope, Epoch> {
        // The trace is dropped: a stream of deltas reads nothing from it.
        deltas(self.arranged.stream, self.layout, columns.to_vec(), context)
    }
}

/// The updates of batches of `layout` as deltas, with the columns `columns`.
pub(crate) fn deltas<'scope>(
    batches: Stream<'scope, Epoch, Vec<Batch<Epoch>>>,
    layout: Layout,
    columns: Vec<usize>,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let mut rows = EncodedDelta::new(context);
    let next = move |cursor: &mut Cursor<Epoch>| {
        rows.fill(cursor);
        rows.decode(&layout, &columns).map(Produced::from)
    };
    fueled(batches, "Deltas", context, scan_each, next).0
}

/// Opens a cursor over each of `batches`, to be read one after the other.
pub(crate) fn scan_each<T: PageTime>(batches: &mut Vec<Batch<T>>, push: &mut dyn FnMut(Cursor<T>)) {
    batches.drain(..).for_each(|batch| push(batch.scan()));
}
