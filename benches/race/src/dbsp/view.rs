//! The view of a program.

use dbsp::{DBData, IndexedZSetReader};

use super::tables::Rows;
use crate::answer::{Answer, Row};

/// Adds the changes of the last epoch to an answer.
pub type Reader = Box<dyn FnMut(&mut Answer) + Send>;

/// The changes of a view, which are dropped unless they are read.
pub struct View(Box<dyn FnOnce() -> Reader>);

impl View {
    /// The view of these rows, of which `write` gives the columns.
    pub fn new<T: DBData>(rows: Rows<T>, write: fn(&mut Row, &T)) -> Self {
        Self(Box::new(move || {
            let output = rows.accumulate_output();
            let mut row = Row::default();
            Box::new(move |answer| {
                for (values, (), weight) in output.concat().iter() {
                    row.clear();
                    write(&mut row, &values);
                    answer.add(&row, weight);
                }
            })
        }))
    }

    /// Reads it from now on.
    pub fn read(self) -> Reader {
        self.0()
    }
}
