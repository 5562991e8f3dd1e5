//! Rows at rest: sorted, indexed by key, shared by the operators of a worker.

use std::rc::Rc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Cursor, Epoch, Origin, PageTime, RowBuffer, Spine, StateTrace, Waker};
use arrow::array::BooleanArray;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::TraceReader;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::OperatorInfo;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{Scope, Stream};
use timely::progress::Timestamp;

use crate::fault::{self, Fault};
use crate::movement::batcher::{Batcher, Sealed};
use crate::movement::delta::{Delta, DeltaStream, EncodedDelta};
use crate::movement::fuel::{Produced, fueled};
use crate::rows::codec::Encoded;
use crate::rows::layout::Layout;
use crate::state::reader::Reader;
use crate::state::states;

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
    let mut encode = encode(layout, context);
    let is_index = name == "Index";
    arrange_encoded(stream, name, layout.key_names(), context, move |delta, buffer| {
        if is_index && fault::armed(Fault::IndexKeepsDeleted) {
            let inserted: BooleanArray =
                (0..delta.len()).map(|row| Some(delta.weight(row) > 0)).collect();
            return encode(&delta.filter(&inserted), buffer);
        }
        encode(delta, buffer);
    })
}

/// Appends the rows of deltas to a buffer, as keys and values of `layout`.
pub(crate) fn encode<T: PageTime>(
    layout: &Layout,
    context: &StateContext,
) -> impl FnMut(&Delta<T>, &mut RowBuffer<T>) + 'static {
    let layout = layout.clone();
    let (mut keys, mut values) = (Encoded::counted(context), Encoded::counted(context));
    move |delta, buffer| {
        keys.clear();
        values.clear();
        layout.encode(&delta.rows, &mut keys, &mut values);
        for row in 0..delta.len() {
            buffer.push(keys.get(row), values.get(row), delta.time(row), delta.weight(row));
        }
    }
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
        let origin = Origin::here();
        let mut trace = Tr::in_context(&context);
        trace.wake_by(waker(scope, &info));
        let any_thread = scope.worker().sync_activator_for(info.address.to_vec());
        let (trace, mut writer) = TraceAgent::new(trace, info, None);
        let sealed = states::add(&context, &trace, &mut writer);
        *reader_of = Some(trace);
        let mut batcher = Batcher::new(&context, sealed, any_thread);
        move |(input, frontier), output| {
            origin.run(|| {
                input.for_each(|capability, delta: &mut Delta<T>| {
                    encode(delta, batcher.rows(capability.retain(0)));
                });
                batcher.advance(frontier.frontier(), |sealed| match sealed {
                    Sealed::Until(upper) => writer.seal(upper),
                    Sealed::Batch(capability, batch) => {
                        writer.insert(batch.clone(), Some(*capability.time()));
                        output.session(capability).give(batch);
                    }
                });
                writer.exert();
            })
        }
    });
    Arranged { stream, trace: reader.expect("an operator is built when it is added") }
}

/// Schedules an operator that owns a trace.
pub(crate) fn waker<T: Timestamp>(scope: Scope<'_, T>, info: &OperatorInfo) -> Waker {
    let local = scope.activator_for(Rc::clone(&info.address));
    Waker::new(local, scope.worker().sync_activator_for(info.address.to_vec()))
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
