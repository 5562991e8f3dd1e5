//! Reductions of two inputs.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Cursors, Epoch};

use super::driver::{Reducer, drive};
use super::history::Rows;
use super::input::Input;
use super::interval::Interval;
use super::port::Plain;
use crate::movement::delta::{Delta, DeltaStream};
use crate::movement::fuel::Fuel;
use crate::state::arrangement::Kept;
use crate::state::reader::Reader;
use crate::state::states;

/// A reduction of two inputs.
pub(crate) trait PairLogic: 'static {
    /// Where the changes of the output go.
    type Output: PairOutput;

    /// Emits changes of the output under `key`, of which at least one side has updates, until there are no more or the
    /// output is full. Returns whether there are no more; if there are, it is called again to continue.
    fn reduce(
        &mut self,
        key: &[u8],
        left: &mut Rows,
        right: &mut Rows,
        output: &mut Self::Output,
    ) -> bool;
}

/// Collects changes of the output into deltas.
pub(crate) trait PairOutput: 'static {
    /// The deltas that are full.
    fn drain(&mut self) -> impl Iterator<Item = Delta<Epoch>> + '_;

    /// Makes the last changes a delta, too.
    fn flush(&mut self);
}

/// Reduces the rows of `left` and `right` under each of their keys.
///
/// Both are keyed by columns of the same types, and equal keys are on the same worker. Keeps no state of its own.
pub(crate) fn cogroup<'scope, L: PairLogic>(
    left: Kept<'scope>,
    right: Kept<'scope>,
    name: &str,
    context: &StateContext,
    logic: L,
    output: L::Output,
) -> DeltaStream<'scope, Epoch> {
    let inputs = vec![left.arranged, right.arranged];
    let lower = states::start().unwrap_or(0);
    let reducer = |_info| Pair { lower, logic, output, running: None };
    drive(inputs, name, context, reducer, Plain::open)
}

struct Pair<L: PairLogic> {
    /// Where it starts.
    lower: Epoch,
    logic: L,
    output: L::Output,
    running: Option<Running>,
}

/// The interval that is being processed.
struct Running {
    left: Rows,
    right: Rows,
    key: Vec<u8>,
}

impl Running {
    /// Moves to the next key with fresh updates on either side.
    fn next_key(&mut self) -> bool {
        let next = match (self.left.fresh_key(), self.right.fresh_key()) {
            (Some(left), Some(right)) => left.min(right),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return false,
        };
        self.key.clear();
        self.key.extend_from_slice(next);
        true
    }
}

/// The fuel that a key costs besides its bytes.
const KEY_FUEL: usize = 16;

impl<L: PairLogic> Reducer<Reader> for Pair<L> {
    type Message = Delta<Epoch>;

    fn lower(&self) -> Option<Epoch> {
        Some(self.lower)
    }

    fn start(&mut self, interval: Interval, inputs: &mut [Input<Reader>], _time: Epoch) {
        let fresh: Vec<_> = inputs.iter().flat_map(Input::fresh).collect();
        let [left, right] = [0, 1].map(|side: usize| {
            let mut all = Cursors::new(inputs[side].all());
            all.prefetch_hint(Cursors::new(fresh.iter().cloned()));
            Rows::new(Cursors::new(inputs[side].fresh()), all, interval)
        });
        self.running = Some(Running { left, right, key: Vec::new() });
    }

    fn advance(&mut self, fuel: &mut Fuel, emit: &mut dyn FnMut(Delta<Epoch>)) -> bool {
        let Some(running) = &mut self.running else { return true };
        let mut emit = |delta: Delta<Epoch>| {
            let bytes = delta.bytes();
            emit(delta);
            bytes
        };
        while running.next_key() {
            if !fuel.is_left() {
                return false;
            }
            let Running { left, right, key } = running;
            if self.logic.reduce(key, left, right, &mut self.output) {
                left.leave(key);
                right.leave(key);
            }
            fuel.consume(KEY_FUEL + key.len() + self.output.drain().map(&mut emit).sum::<usize>());
        }
        self.output.flush();
        fuel.consume(self.output.drain().map(emit).sum());
        self.running = None;
        true
    }

    fn finish(&mut self, _upper: Option<Epoch>) {}

    fn maintain(&mut self) {}
}
