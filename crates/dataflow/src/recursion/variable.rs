//! The way from one round to the next.

use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use arrow::array::BooleanArray;
use timely::dataflow::operators::feedback::Handle;
use timely::dataflow::operators::{Concat, ConnectLoop, Feedback};
use timely::order::Product;

use super::boundary::convert;
use super::{Round, Rounds, settle};
use crate::fault::{self, Fault};
use crate::map::ErrorRows;
use crate::movement::delta::{Delta, DeltaStream};
use crate::movement::fuel::{Produced, fueled};

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
    /// The name of the recursion, for messages.
    pub name: Arc<str>,
    /// The number of the last round.
    pub rounds: u64,
    /// How the rows settle, if rows can also go from one round to the next.
    pub taken_back: Option<settle::Spec>,
}

impl<'scope> Variable<'scope> {
    /// Says what the rows of each round are. Those that come or go in the last round are errors, which are returned, and go no
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
        let last = if fault::armed(Fault::TwoRounds) { 2 } else { limit.rounds };
        let advance = move |rows: &mut Option<Delta<Round>>| Some(divide(rows.take()?, last));
        let (rows, changing) = fueled(rows, "NextRound", context, open, advance);
        rows.connect_loop(self.handle);
        let changing = match &limit.taken_back {
            None => changing,
            Some(spec) => {
                let gone = convert(changing.clone(), "Negate", |rows| Some(rows.negated()));
                settle(spec, changing, context).0.concat(settle(spec, gone, context).0)
            }
        };
        convert(changing, "Endless", move |rows| limit.errors(&rows))
    }
}

impl Limit {
    /// The errors of rows that are not the same in the last round as before.
    fn errors(&self, rows: &Delta<Round>) -> Option<Delta<Round>> {
        if fault::armed(Fault::TwoRounds) {
            return None;
        }
        let mut errors = ErrorRows::default();
        let message = format!(
            "the recursion has not ended after {} rounds: see that its step stops making new rows, or raise \
             'recursion_limit'",
            self.rounds
        );
        for row in 0..rows.len() {
            errors.push(&self.name, &rows.rows, row, &message, *rows.time(row), rows.weight(row));
        }
        (!errors.is_empty()).then(|| errors.finish())
    }
}

/// The rows that enter the next round; and those that would if this were not the last one.
fn divide(rows: Delta<Round>, last: u64) -> Produced<Round> {
    let goes_on = |row| rows.time(row).inner < last;
    if (0..rows.len()).all(goes_on) {
        return next_round(rows).into();
    }
    let kept: BooleanArray = (0..rows.len()).map(|row| Some(goes_on(row))).collect();
    let ended: BooleanArray = (0..rows.len()).map(|row| Some(!goes_on(row))).collect();
    Produced { errors: Some(rows.filter(&ended)), rows: next_round(rows.filter(&kept)) }
}

fn next_round(rows: Delta<Round>) -> Delta<Round> {
    rows.at_times(|time| Product::new(time.outer, time.inner + 1))
}
