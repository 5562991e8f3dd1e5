//! Rows at rest: sorted, indexed by key, shared by the operators of a worker.

use std::rc::Rc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Cursor, Epoch, PageTime, RowBuffer, Spine, StateTrace, Waker};
use differential_dataflow::operators::arrange::{Arranged, TraceAgent, TraceWriter};
use differential_dataflow::trace::{Description, Trace, TraceReader};
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OperatorInfo;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{Scope, Stream};
use timely::order::PartialOrder;
use timely::progress::frontier::AntichainRef;
use timely::progress::{Antichain, Timestamp};

use crate::codec::Encoded;
use crate::delta::{Delta, DeltaStream, EncodedDelta};
use crate::fault::{self, Fault};
use crate::fuel::{Produced, fueled};
use crate::layout::Layout;
use crate::reader::Reader;
use crate::states;

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
    let is_index = name == "Index";
    arrange_encoded(stream, name, layout.key_names(), context, move |delta, buffer| {
        keys.clear();
        values.clear();
        encoding.encode(&delta.rows, &mut keys, &mut values);
        let forgets = is_index && fault::armed(Fault::IndexKeepsDeleted);
        for row in (0..delta.len()).filter(|row| !forgets || delta.weight(*row) > 0) {
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
    let scope = stream.scope();
    let stream = stream.unary_frontier(Pipeline, name, move |_capability, info| {
        let is_tiled = context.schedule().tiled;
        let mut trace = Tr::in_context(&context);
        trace.wake_by(waker(scope, &info));
        let (trace, mut writer) = TraceAgent::new(trace, info, None);
        let sealed = states::add(&context, &trace, &mut writer);
        *reader_of = Some(trace);
        let mut arranger = Arranger {
            writer,
            buffer: RowBuffer::new(&context),
            held: Antichain::new(),
            sealed,
            tiles: Vec::new(),
        };
        move |(input, frontier), output| {
            input.for_each(|capability, delta: &mut Delta<T>| {
                if is_tiled {
                    arranger.tiles.push(*capability.time());
                }
                arranger.held.insert(capability.retain(0));
                encode(delta, &mut arranger.buffer);
            });
            arranger.advance(frontier.frontier(), |capability, batch| {
                output.session(capability).give(batch);
            });
            arranger.writer.exert();
        }
    });
    Arranged { stream, trace: reader.expect("an operator is built when it is added") }
}

/// Schedules an operator that owns a trace.
pub(crate) fn waker<T: Timestamp>(scope: Scope<'_, T>, info: &OperatorInfo) -> Waker {
    let local = scope.activator_for(Rc::clone(&info.address));
    Waker::new(local, scope.worker().sync_activator_for(info.address.to_vec()))
}

/// The state of an operator that arranges rows.
struct Arranger<T: PageTime, Tr: Trace<Time = T, Batch = Batch<T>>> {
    writer: TraceWriter<Tr>,
    buffer: RowBuffer<T>,
    /// The capabilities of the buffered rows.
    held: Antichain<Capability<T>>,
    /// Everything before this is in the trace.
    sealed: Antichain<T>,
    /// Times at which to cut batches besides, in tests.
    tiles: Vec<T>,
}

impl<T: PageTime, Tr: Trace<Time = T, Batch = Batch<T>>> Arranger<T, Tr> {
    /// Puts all rows before `frontier` into batches.
    fn advance(
        &mut self,
        frontier: AntichainRef<'_, T>,
        mut ship: impl FnMut(&Capability<T>, Batch<T>),
    ) {
        if !PartialOrder::less_than(&self.sealed.borrow(), &frontier) {
            return;
        }
        let is_due = |capability: &Capability<T>| !frontier.less_equal(capability.time());
        if self.held.elements().iter().any(is_due) {
            // A batch starts where its rows do. Readers of a trace that has not changed advance without it, and may ask for
            // the batches through any epoch before these rows.
            let mut start = frontier.to_owned();
            start.extend(self.held.elements().iter().map(|capability| *capability.time()));
            if PartialOrder::less_than(&self.sealed, &start) {
                self.writer.seal(start.clone());
                self.sealed = start;
            }
            // A message carries one capability, so a step past several of them is cut into as many batches: each reaches
            // up to the frontier and the capabilities to come.
            let held = std::mem::take(&mut self.held).into_iter().collect::<Vec<_>>();
            for (index, capability) in held.iter().enumerate() {
                let mut upper = frontier.to_owned();
                upper.extend(held[index + 1..].iter().map(|later| *later.time()));
                if is_due(capability) && upper != self.sealed {
                    self.seal_tiles(capability, upper, &mut ship);
                }
            }
            for time in self.buffer.frontier().iter() {
                let capability = held
                    .iter()
                    .find(|capability| capability.time().less_equal(time))
                    .expect("a row arrives under a capability for its time");
                self.held.insert(capability.delayed(time));
            }
        }
        self.sealed = frontier.to_owned();
        self.writer.seal(self.sealed.clone());
    }

    /// Puts the rows before `upper` into a batch, or into several that end at tiles.
    fn seal_tiles(
        &mut self,
        capability: &Capability<T>,
        upper: Antichain<T>,
        ship: &mut impl FnMut(&Capability<T>, Batch<T>),
    ) {
        let mut tiles = std::mem::take(&mut self.tiles);
        tiles.sort_unstable();
        for tile in tiles.into_iter().map(Antichain::from_elem) {
            let is_within = PartialOrder::less_than(&self.sealed, &tile)
                && PartialOrder::less_than(&tile, &upper);
            if is_within {
                self.seal(capability, tile, ship);
            }
        }
        self.seal(capability, upper, ship);
    }

    fn seal(
        &mut self,
        capability: &Capability<T>,
        upper: Antichain<T>,
        ship: &mut impl FnMut(&Capability<T>, Batch<T>),
    ) {
        let batch = self.buffer.seal(describe(&self.sealed, &upper));
        self.sealed = upper;
        self.writer.insert(batch.clone(), Some(*capability.time()));
        ship(capability, batch);
    }
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
pub(crate) fn deltas<'scope, T: PageTime>(
    batches: Stream<'scope, T, Vec<Batch<T>>>,
    layout: Layout,
    columns: Vec<usize>,
    context: &StateContext,
) -> DeltaStream<'scope, T> {
    let mut rows = EncodedDelta::new(context);
    let next = move |cursor: &mut Cursor<T>| {
        rows.fill(cursor);
        rows.decode(&layout, &columns).map(Produced::from)
    };
    fueled(batches, "Deltas", context, scan_each, next).0
}

/// Opens a cursor over each of `batches`, to be read one after the other.
pub(crate) fn scan_each<T: PageTime>(batches: &mut Vec<Batch<T>>, push: &mut dyn FnMut(Cursor<T>)) {
    batches.drain(..).for_each(|batch| push(batch.scan()));
}
