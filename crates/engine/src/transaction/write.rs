//! A change to a table, staged.

use arrow::array::RecordBatch;

/// Rows that all enter or all leave a table, with the table's columns.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) rows: RecordBatch,
    pub(crate) direction: Direction,
}

/// Which way rows go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Into the table.
    Enter,
    /// Out of it.
    Leave,
}

impl Write {
    pub(crate) fn enter(rows: RecordBatch) -> Self {
        Self { rows, direction: Direction::Enter }
    }

    pub(crate) fn leave(rows: RecordBatch) -> Self {
        Self { rows, direction: Direction::Leave }
    }
}
