//! Texts in columns of other types.

use std::sync::Arc;

use alluvium::arrow::array::{Array, ArrayRef, LargeStringBuilder};
use alluvium::arrow::compute::cast;
use alluvium::arrow::datatypes::DataType;
use alluvium::unstable::texts;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::texts::text;
use crate::convert::fault::{Fault, Unfit};

/// Texts that are parsed as `CAST` parses them, all of a column at once.
pub(super) struct Texts {
    rows: Vec<usize>,
    texts: LargeStringBuilder,
}

impl Texts {
    pub(super) fn new() -> Self {
        Self { rows: Vec::new(), texts: LargeStringBuilder::with_capacity(0, 0) }
    }

    /// Adds that of a row.
    pub(super) fn push(&mut self, row: usize, value: &Bound<'_, PyString>) -> Result<(), Unfit> {
        self.texts.append_value(text(value)?.trim());
        self.rows.push(row);
        Ok(())
    }

    /// The row of the first.
    pub(super) fn first(&self) -> Option<usize> {
        self.rows.first().copied()
    }

    /// Their rows, and a value of the type for each; none if there is no text.
    pub(super) fn parsed(
        &mut self,
        values: &[Bound<'_, PyAny>],
        to: &DataType,
    ) -> Result<Option<(Vec<usize>, ArrayRef)>, Fault> {
        if self.rows.is_empty() {
            return Ok(None);
        }
        // A text that is none of the type becomes NULL, so that its row can be named.
        let texts: ArrayRef = Arc::new(self.texts.finish());
        let parsed = match texts::are_read(texts.data_type(), to) {
            true => cast(&texts::read(&texts, to, true)?, to)?,
            false => cast(&texts, to)?,
        };
        if let Some(place) = (0..parsed.len()).find(|&place| parsed.is_null(place)) {
            let row = self.rows[place];
            return Err(Unfit::Unknown.of(row, &values[row], to));
        }
        Ok(Some((std::mem::take(&mut self.rows), parsed)))
    }
}
