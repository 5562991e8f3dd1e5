//! Arithmetic series.

use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, Origin};
use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use timely::container::NoopBuilder;
use timely::dataflow::Scope;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::source;

use crate::movement::delta::{Delta, DeltaStream};
use crate::movement::fuel::Fuel;
use crate::state::states;

/// The rows that one delta has at most.
const ROWS: u64 = 8192;

/// An arithmetic series. No value of it leaves the range of i64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Series {
    /// Its first value.
    pub first: i64,
    /// From each value to the next.
    pub step: i64,
    /// How many values it has.
    pub length: u64,
}

impl Series {
    /// The values from `start` on in steps of `step` that do not lie beyond `end`; `end` itself only if the series is
    /// `closed`. `None` if the step is zero, or the values cannot be counted.
    pub fn between(start: i64, end: i64, step: i64, closed: bool) -> Option<Series> {
        let distance = match step.signum() {
            0 => return None,
            1 => i128::from(end) - i128::from(start),
            _ => i128::from(start) - i128::from(end),
        };
        let distance = if closed { distance } else { distance - 1 };
        let length = match distance {
            ..0 => 0,
            distance => distance / i128::from(step.unsigned_abs()) + 1,
        };
        Some(Series { first: start, step, length: length.try_into().ok()? })
    }

    /// Its last value, if it has one.
    pub fn last(self) -> Option<i64> {
        self.values(self.length.checked_sub(1)?, 1).next()
    }

    /// The values from the one numbered `from` on, at most `count`.
    fn values(self, from: u64, count: u64) -> impl Iterator<Item = i64> {
        let end = self.length.min(from.saturating_add(count));
        // The result is in range, whatever the product is.
        (from..end).map(move |number| {
            self.first.wrapping_add(self.step.wrapping_mul(number.cast_signed()))
        })
    }
}

/// The values of `series` from `as_of` on, as the one column of `schema`. The workers share them. There are none if the
/// dataflow [starts again](crate::state::states).
pub fn series<'scope>(
    scope: Scope<'scope, Epoch>,
    series: Series,
    schema: SchemaRef,
    as_of: Epoch,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    source(scope, "Series", move |mut capability, info| {
        let origin = Origin::here();
        capability.downgrade(&as_of);
        let activator = scope.activator_for(info.address);
        let mut fuel = Fuel::new(context);
        // Worker i of n has the i-th of each n pieces.
        let stride = ROWS * scope.peers() as u64;
        let mut next = Some(ROWS * scope.index() as u64);
        let mut capability = states::start().is_none().then_some(capability);
        move |output: &mut OutputBuilderSession<'_, Epoch, NoopBuilder<Delta<Epoch>>>| {
            origin.run(|| {
                let Some(held) = &capability else { return };
                fuel.refill();
                while fuel.is_left() {
                    let Some(from) = next.filter(|from| *from < series.length) else {
                        capability = None;
                        return;
                    };
                    let values = Int64Array::from_iter_values(series.values(from, ROWS));
                    let rows = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(values)])
                        .expect("one column of BIGINT");
                    let mut delta = Delta::insertions(rows, as_of);
                    fuel.consume(delta.bytes());
                    origin.produce(delta.len(), || delta.bytes());
                    output.session_with_builder(held).give_container(&mut delta);
                    next = from.checked_add(stride);
                }
                fuel.reschedule(&activator);
            })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(start: i64, end: i64, step: i64, closed: bool) -> Vec<i64> {
        let series = Series::between(start, end, step, closed).unwrap();
        let values: Vec<i64> = series.values(0, u64::MAX).collect();
        assert_eq!(values.len() as u64, series.length);
        values
    }

    #[test]
    fn a_series_ends_at_or_before_its_end() {
        assert_eq!(all(1, 3, 1, true), [1, 2, 3]);
        assert_eq!(all(1, 3, 1, false), [1, 2]);
        assert_eq!(all(1, 6, 2, true), [1, 3, 5]);
        assert_eq!(all(1, 5, 2, false), [1, 3]);
        assert_eq!(all(3, 1, -1, true), [3, 2, 1]);
        assert_eq!(all(3, 1, -1, false), [3, 2]);
        assert_eq!(all(3, 1, 1, true), [0_i64; 0]);
        assert_eq!(all(1, 1, 1, false), [0_i64; 0]);
        assert_eq!(Series::between(1, 2, 0, true), None);
    }

    #[test]
    fn values_at_the_ends_of_the_type_are_exact() {
        assert_eq!(all(i64::MIN, i64::MAX, i64::MAX, true), [i64::MIN, -1, i64::MAX - 1]);
        assert_eq!(all(i64::MAX, i64::MIN, i64::MIN, true), [i64::MAX, -1]);
        assert_eq!(all(i64::MAX - 1, i64::MAX, 1, true), [i64::MAX - 1, i64::MAX]);
        assert_eq!(Series::between(i64::MIN, i64::MAX, 1, true), None);
        let series = Series::between(i64::MIN, i64::MAX, 1, false).unwrap();
        assert_eq!(
            series.values(u64::MAX - 2, 9).collect::<Vec<_>>(),
            [i64::MAX - 2, i64::MAX - 1]
        );
    }
}
