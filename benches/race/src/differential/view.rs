//! The view of a program.

use differential_dataflow::Data;
use timely::dataflow::operators::probe::Handle;

use super::{Collection, Shared};
use crate::answer::Row;

/// The changes of a view, which are dropped unless the answer is wanted.
pub(super) struct View<'scope>(Box<dyn FnOnce(Option<Shared>) -> Handle<u64> + 'scope>);

impl<'scope> View<'scope> {
    /// The view of these rows, of which `write` gives the columns.
    pub(super) fn new<D: Data>(rows: Collection<'scope, D>, write: fn(&mut Row, &D)) -> Self {
        Self(Box::new(move |answer| {
            let Some(answer) = answer else { return rows.probe().0 };
            let mut row = Row::default();
            let read = rows.inspect(move |(values, _, weight)| {
                row.clear();
                write(&mut row, values);
                if let Ok(mut answer) = answer.lock() {
                    answer.add(&row, *weight as i64);
                }
            });
            read.probe().0
        }))
    }

    /// Knows up to which epoch the view is complete; its rows go to the answer.
    pub(super) fn probe(self, answer: Option<Shared>) -> Handle<u64> {
        self.0(answer)
    }
}
