//! Reductions of one input.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Cursors, Epoch, StateTrace, Waker};
use differential_dataflow::operators::arrange::{Arranged, TraceAgent, TraceWriter};
use differential_dataflow::trace::{BatchReader, Trace, TraceReader};
use timely::dataflow::operators::generic::OperatorInfo;

use super::changes::Changes;
use super::driver::{Changing, Reducer};
use super::input::Input;
use super::interval::{Interval, frontier};
use super::output::Output;
use super::port::{Plain, decoding};
use super::prior::Prior;
use crate::movement::batcher::describe;
use crate::movement::delta::EncodedDelta;
use crate::movement::fuel::{Emitted, Fuel, Produced};
use crate::state::arrangement::waker;
use crate::state::states;

/// A reduction that processes one key at a time.
pub(crate) trait Logic: 'static {
    /// Whether the output changes by `batch` as the input does, whatever both held before.
    fn passes(&self, _batch: &Batch<Epoch>) -> bool {
        false
    }

    /// Looks at the changes of several keys before they are processed one by one.
    fn prepare(&mut self, _changes: &Changes) {}

    /// Emits the changes of the output under key number `key`.
    fn reduce(&mut self, changes: &Changes, key: usize, prior: &mut Prior<'_>, output: &mut Output);
}

/// A reduction of one input.
pub(crate) trait Reduction: 'static {
    /// As [`Logic::passes`].
    fn passes(&self, _batch: &Batch<Epoch>) -> bool {
        false
    }

    /// Emits the changes of the output under these keys, from key number `first` on, in order, and finishes each key. Stops
    /// when the fuel is used up; returns the number of the next key.
    fn reduce_all(
        &mut self,
        changes: &Changes,
        first: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
        fuel: &mut Fuel,
    ) -> usize;
}

impl<L: Logic> Reduction for L {
    fn passes(&self, batch: &Batch<Epoch>) -> bool {
        Logic::passes(self, batch)
    }

    fn reduce_all(
        &mut self,
        changes: &Changes,
        first: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
        fuel: &mut Fuel,
    ) -> usize {
        if first == 0 {
            self.prepare(changes);
        }
        for key in first..changes.len() {
            self.reduce(changes, key, prior, output);
            output.finish_key(changes.key(key));
            fuel.consume(output.take_bytes());
            if !fuel.is_left() {
                return key + 1;
            }
        }
        changes.len()
    }
}

/// Reduces the rows under each key of `input`. `key` names the key columns in metrics.
///
/// If its dataflow [starts again](crate::state::states), it continues where its output ends, which is where a batch of the input
/// does.
pub(crate) fn reduce<'scope, Out, R>(
    input: impl Changing<'scope>,
    name: &str,
    key: String,
    context: &StateContext,
    reduction: R,
) -> Arranged<'scope, TraceAgent<Out>>
where
    Out: StateTrace<Time = Epoch, Batch = Batch<Epoch>> + 'static,
    R: Reduction,
{
    let context = context.for_operator(name, key);
    let scope = input.scope();
    let mut trace = None;
    let reducer =
        |info: OperatorInfo| single(reduction, waker(scope, &info), info, &mut trace, &context);
    let stream = input.drive(name, &context, reducer, Plain::open);
    Arranged { stream, trace: trace.expect("an operator is built when it is added") }
}

/// As [`reduce`]; returns the rows and the errors that `decode` makes of the output. It must take all rows of the delta it is given.
pub(crate) fn reduce_decoded<'scope, Out, R>(
    input: impl Changing<'scope>,
    name: &str,
    key: String,
    context: &StateContext,
    reduction: R,
    decode: impl FnMut(&mut EncodedDelta<Epoch>) -> Produced<Epoch> + 'static,
) -> Emitted<'scope, Epoch>
where
    Out: StateTrace<Time = Epoch, Batch = Batch<Epoch>> + 'static,
    R: Reduction,
{
    let context = context.for_operator(name, key);
    let scope = input.scope();
    let mut trace = None::<TraceAgent<Out>>;
    let reducer =
        |info: OperatorInfo| single(reduction, waker(scope, &info), info, &mut trace, &context);
    input.drive(name, &context, reducer, |builder| decoding(builder, decode, &context))
}

/// The reducer of an operator, and in `trace` its output.
fn single<Out, R>(
    reduction: R,
    waker: Waker,
    info: OperatorInfo,
    trace: &mut Option<TraceAgent<Out>>,
    context: &StateContext,
) -> Single<R, Out>
where
    Out: StateTrace<Time = Epoch, Batch = Batch<Epoch>> + 'static,
{
    let mut output = Out::in_context(context);
    output.wake_by(waker);
    let (mut reader, mut writer) = TraceAgent::new(output, info, None);
    let lower = states::add(context, &reader, &mut writer).first().copied();
    // Others may want to read it as of the epoch before its end.
    *trace = Some(reader.clone());
    compact(&mut reader, lower);
    Single {
        reduction,
        changes: Changes::new(context),
        output: Output::new(context),
        reader,
        writer,
        lower,
        running: None,
    }
}

/// Allows compaction of times before `upper`.
fn compact<Tr: TraceReader<Time = Epoch>>(trace: &mut Tr, upper: Option<Epoch>) {
    trace.set_logical_compaction(frontier(upper).borrow());
    trace.set_physical_compaction(frontier(upper).borrow());
}

struct Single<R, Out: Trace> {
    reduction: R,
    changes: Changes,
    output: Output,
    reader: TraceAgent<Out>,
    writer: TraceWriter<Out>,
    /// The end of the output.
    lower: Option<Epoch>,
    running: Option<Running>,
}

/// The interval that is being processed.
struct Running {
    interval: Interval,
    time: Epoch,
    /// The batches of the input that are those of the output as well; else there is one to be made.
    passed: Vec<Batch<Epoch>>,
    changes: Cursors<Epoch>,
    /// The number of the next key among those that are loaded.
    next: usize,
    prior_input: Cursors<Epoch>,
    prior_output: Cursors<Epoch>,
}

impl<Tr, Out, R> Reducer<Tr> for Single<R, Out>
where
    Tr: TraceReader<Time = Epoch, Batch = Batch<Epoch>>,
    Out: Trace<Time = Epoch, Batch = Batch<Epoch>> + 'static,
    R: Reduction,
{
    type Message = Vec<Batch<Epoch>>;

    fn lower(&self) -> Option<Epoch> {
        self.lower
    }

    fn start(&mut self, interval: Interval, inputs: &mut [Input<Tr>], time: Epoch) {
        let input = &mut inputs[0];
        let mut fresh = input.fresh();
        let mut passed = Vec::new();
        if fresh.iter().all(|batch| self.reduction.passes(batch)) {
            std::mem::swap(&mut passed, &mut fresh);
        }
        let mut prior_input = Cursors::new(input.before(interval.lower));
        let held = self
            .reader
            .batches_through(frontier(Some(interval.lower)).borrow())
            .expect("an interval starts where the output ends");
        let mut prior_output = Cursors::new(held);
        prior_input.prefetch_hint(Cursors::new(fresh.iter().cloned()));
        prior_output.prefetch_hint(Cursors::new(fresh.iter().cloned()));
        let changes = Cursors::scan(fresh);
        let next = self.changes.len();
        self.running =
            Some(Running { interval, time, passed, changes, next, prior_input, prior_output });
    }

    fn advance(&mut self, fuel: &mut Fuel, emit: &mut dyn FnMut(Vec<Batch<Epoch>>)) -> bool {
        let Some(running) = &mut self.running else { return true };
        let mut prior =
            Prior { input: &mut running.prior_input, output: &mut running.prior_output };
        loop {
            let Self { reduction, changes, output, .. } = self;
            if running.next == changes.len() {
                if !changes.load(&mut running.changes) {
                    break;
                }
                running.next = 0;
            }
            running.next = reduction.reduce_all(changes, running.next, &mut prior, output, fuel);
            let has_more = running.next < changes.len();
            if !has_more {
                fuel.consume(changes.bytes());
            }
            if (has_more || running.changes.key().is_some()) && !fuel.is_left() {
                return false;
            }
        }
        // A batch starts where its rows do, as those of an arrangement.
        let mut start = running.interval.lower.max(running.time);
        let mut time = running.time;
        self.writer.seal(frontier(Some(start)));
        let mut passed = std::mem::take(&mut running.passed).into_iter().peekable();
        loop {
            let batch = passed.next();
            let end = match (&batch, passed.peek()) {
                (Some(batch), Some(_)) => batch.upper().first().copied(),
                _ => running.interval.upper,
            };
            let description = describe(&frontier(Some(start)), &frontier(end));
            let batch = match batch {
                Some(batch) => batch.described(description),
                None => self.output.finish(description),
            };
            self.writer.insert(batch.clone(), Some(time));
            if !batch.is_empty() {
                emit(vec![batch]);
            }
            match end {
                Some(end) if passed.peek().is_some() => (start, time) = (end, end),
                _ => break,
            }
        }
        self.running = None;
        true
    }

    fn finish(&mut self, upper: Option<Epoch>) {
        self.changes.clear();
        self.writer.seal(frontier(upper));
        compact(&mut self.reader, upper);
    }

    fn maintain(&mut self) {
        self.writer.exert();
    }
}
