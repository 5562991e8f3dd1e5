//! The way from one round to the next.

use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use arrow::array::BooleanArray;
use timely::dataflow::operators::feedback::Handle;
use timely::dataflow::operators::{ConnectLoop, Feedback};
use timely::order::Product;

use super::{Round, Rounds};
use crate::delta::{Delta, DeltaStream};
use crate::fault::{self, Fault};
use crate::fuel::{Produced, fueled};
use crate::map::ErrorRows;

/// The rows of the round before, which are not known yet.
pub struct Variable<'scope> {
    handle: Handle<'scope, Round, Delta<Round>>,
}

/// A variable, and its rows: none in round 0.
pub fn variable(rounds: Rounds<'_>) -> (Variable<'_>, DeltaStream<'_, Round>) {
    let (handle, rows) = rounds.feedback(Product::new(0, 1));
    (Variable { handle }, rows)
}

/// Where a recursion ends that does not end by itself.
#[derive(Clone, Debug)]
pub struct Limit {
    /// What recurs, for messages.
    pub name: Arc<str>,
    /// The number of the last round.
    pub rounds: u64,
}

impl<'scope> Variable<'scope> {
    /// Says what the rows of each round are. Those that are new in the last round are errors, which are returned, and go no
    /// further.
    pub fn set(
        self,
        rows: DeltaStream<'scope, Round>,
        limit: Limit,
        context: &StateContext,
    ) -> DeltaStream<'scope, Round> {
        let open = |delta: &mut Delta<Round>, push: &mut dyn FnMut(_)| {
            push(Some(std::mem::take(delta)));
        };
        let advance = move |rows: &mut Option<Delta<Round>>| Some(limit.apply(rows.take()?));
        let (rows, errors) = fueled(rows, "NextRound", context, open, advance);
        rows.connect_loop(self.handle);
        errors
    }
}

impl Limit {
    /// What goes into the next round.
    fn apply(&self, rows: Delta<Round>) -> Produced<Round> {
        let last = if fault::armed(Fault::TwoRounds) { 2 } else { self.rounds };
        let goes_on = |row| rows.time(row).inner < last;
        if (0..rows.len()).all(goes_on) {
            return next_round(rows).into();
        }
        let mut errors = ErrorRows::default();
        let message = format!(
            "the recursion has not ended after {} rounds: see that its step stops making new rows, or raise \
             'recursion_limit'",
            self.rounds
        );
        for row in (0..rows.len()).filter(|row| !goes_on(*row)) {
            let (time, weight) = (*rows.time(row), rows.weight(row));
            errors.push(&self.name, &rows.rows, row, &message, time, weight);
        }
        let kept: BooleanArray = (0..rows.len()).map(|row| Some(goes_on(row))).collect();
        let is_reported = !fault::armed(Fault::TwoRounds);
        let errors = is_reported.then(|| errors.finish());
        Produced { rows: next_round(rows.filter(&kept)), errors }
    }
}

fn next_round(rows: Delta<Round>) -> Delta<Round> {
    rows.at_times(|time| Product::new(time.outer, time.inner + 1))
}
