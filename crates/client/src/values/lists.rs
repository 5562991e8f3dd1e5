//! Columns of lists: arrays of Postgres.
//!
//! ```text
//! i32 dimensions   i32 1 if there are NULLs   u32 type   [i32 length   i32 first] each dimension   [i32 length   bytes] each element
//! ```

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, NullBufferBuilder};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::Field;

use super::column::Column;
use super::kind::Scalar;
use super::malformed::malformed;
use crate::error::{Error, Result};

/// The most dimensions of an array.
pub(super) const MOST_DIMENSIONS: usize = 6;

/// Lists that were read. How many dimensions they have, the first that is not empty says; those of a column all have as many.
pub(super) struct Lists {
    items: Column,
    /// The ends of the lists of each dimension, the outermost first. There is one at least.
    ends: Vec<Vec<i32>>,
    nulls: NullBufferBuilder,
    /// Whether the dimensions are known.
    is_fixed: bool,
}

impl Lists {
    /// Lists of values of a type.
    pub(super) fn new(scalar: Scalar) -> Self {
        Self {
            items: Column::of(scalar),
            ends: vec![vec![0]],
            nulls: NullBufferBuilder::new(0),
            is_fixed: false,
        }
    }

    /// Adds NULL.
    pub(super) fn append_null(&mut self) {
        self.repeat_end();
        self.nulls.append_null();
    }

    /// Adds an array in its binary form.
    ///
    /// # Errors
    ///
    /// If it is none, or has not the dimensions of those before it.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        let dimensions = usize::try_from(number(&mut rest)?).map_err(|_| malformed())?;
        if dimensions > MOST_DIMENSIONS {
            return Err(malformed());
        }
        let (_has_nulls, _type) = (number(&mut rest)?, number(&mut rest)?);
        let mut lengths = [0_usize; MOST_DIMENSIONS];
        for length in &mut lengths[..dimensions] {
            *length = usize::try_from(number(&mut rest)?).map_err(|_| malformed())?;
            let _first = number(&mut rest)?;
        }
        if dimensions == 0 {
            self.nulls.append_non_null();
            self.repeat_end();
            return if rest.is_empty() { Ok(()) } else { Err(malformed()) };
        }
        let lengths = &lengths[..dimensions];
        let count = lengths.iter().try_fold(1_usize, |all, length| all.checked_mul(*length));
        // Each element has four bytes at least.
        let count = count.filter(|count| *count <= rest.len() / 4).ok_or_else(malformed)?;
        self.nulls.append_non_null();
        if count == 0 {
            self.repeat_end();
            return Ok(());
        }
        self.fix(dimensions)?;
        let mut lists = 1;
        for (ends, length) in self.ends.iter_mut().zip(lengths) {
            for _ in 0..lists {
                let last = ends.last().copied().unwrap_or(0);
                let end = i32::try_from(*length).ok().and_then(|length| last.checked_add(length));
                ends.push(end.ok_or_else(too_many)?);
            }
            lists *= length;
        }
        for _ in 0..count {
            match number(&mut rest)? {
                -1 => self.items.append_null(),
                length => {
                    let length = usize::try_from(length).map_err(|_| malformed())?;
                    let (value, after) = rest.split_at_checked(length).ok_or_else(malformed)?;
                    self.items.append(value)?;
                    rest = after;
                }
            }
        }
        if rest.is_empty() { Ok(()) } else { Err(malformed()) }
    }

    /// A list without items, or none.
    fn repeat_end(&mut self) {
        let ends = &mut self.ends[0];
        ends.push(ends.last().copied().unwrap_or(0));
    }

    /// The dimensions are so many.
    fn fix(&mut self, dimensions: usize) -> Result<()> {
        if !self.is_fixed {
            self.is_fixed = true;
            self.ends.resize_with(dimensions, || vec![0]);
        }
        match self.ends.len() == dimensions {
            true => Ok(()),
            false => Err(Error::value(format!(
                "an array of {dimensions} dimensions comes after arrays of {}: CAST the column to TEXT",
                self.ends.len()
            ))),
        }
    }

    /// Takes the lists. Those that come later have as many dimensions.
    pub(super) fn finish(&mut self) -> Result<ArrayRef> {
        self.is_fixed = true;
        let mut array = self.items.finish()?;
        let nulls = self.nulls.finish();
        for (dimension, ends) in self.ends.iter_mut().enumerate().rev() {
            let offsets = OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(ends, vec![0])));
            let field = Arc::new(Field::new_list_field(array.data_type().clone(), true));
            let nulls = if dimension == 0 { nulls.clone() } else { None };
            array = Arc::new(ListArray::try_new(field, offsets, array, nulls)?);
        }
        Ok(array)
    }
}

/// The next number.
fn number(bytes: &mut &[u8]) -> Result<i32> {
    let (number, rest) = bytes.split_first_chunk::<4>().ok_or_else(malformed)?;
    *bytes = rest;
    Ok(i32::from_be_bytes(*number))
}

fn too_many() -> Error {
    Error::value(
        "the arrays of a column have more elements in all than a batch can: CAST the column to TEXT",
    )
}
