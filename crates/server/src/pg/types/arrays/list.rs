//! Lists: how they are written, as arrays of Postgres.
//!
//! In binary an array has its dimensions, each with its first index, and its elements, each with its length:
//!
//! ```text
//! i32 dimensions   i32 1 if there are NULLs   u32 type   [i32 length   i32 1] each dimension   [i32 length   bytes] each element
//! ```

use std::ops::Range;

use arrow::array::{Array, ListArray};
use bytes::{BufMut, BytesMut};

use super::super::column::{Column, Values};
use super::super::escape::expand;
use super::super::format::Format;
use super::super::pg_type::PgType;
use super::super::rejected::{Rejected, Result, code};
use super::super::time::zone::Zone;

/// The most dimensions of an array.
pub(in super::super) const MOST_DIMENSIONS: usize = 6;

/// A column of lists.
pub(in super::super) struct Lists<'a> {
    offsets: &'a [i32],
    items: Column<'a>,
    /// The OID of the innermost elements.
    element: u32,
}

/// The dimensions of an array, and where its elements are.
struct Shape<'b, 'a> {
    lengths: [i32; MOST_DIMENSIONS],
    dimensions: usize,
    elements: &'b Column<'a>,
    rows: Range<usize>,
}

impl<'a> Lists<'a> {
    /// The lists of an array.
    pub(in super::super) fn of(array: &'a ListArray, zone: Zone) -> Result<Self> {
        // Other numbers without a sign were cast to larger ones.
        let element = PgType::of_catalog(array.data_type()).scalar().oid();
        let items = Column::of(array.values(), zone)?;
        Ok(Self { offsets: array.value_offsets(), items, element })
    }

    /// The rows of the items of some lists.
    fn rows(&self, lists: Range<usize>) -> Range<usize> {
        // Offsets are not negative.
        self.offsets[lists.start] as usize..self.offsets[lists.end] as usize
    }

    /// Writes the text of a list.
    pub(in super::super) fn put_text(&self, row: usize, out: &mut BytesMut) -> Result<()> {
        let is_nested = matches!(self.items.values, Values::List(_));
        let rows = self.rows(row..row + 1);
        out.put_u8(b'{');
        for item in rows.clone() {
            if item > rows.start {
                out.put_u8(b',');
            }
            if self.items.is_null(item) {
                out.put_slice(b"NULL");
                continue;
            }
            let start = out.len();
            self.items.put_text(item, out)?;
            if !is_nested && !self.items.is_plain_text() && has_to_be_quoted(&out[start..]) {
                let escaped = |byte| matches!(byte, b'"' | b'\\').then_some(byte);
                expand(out, start, Some(b'"'), b'\\', escaped);
            }
        }
        out.put_u8(b'}');
        Ok(())
    }

    /// Writes the bytes of a list.
    pub(in super::super) fn put_binary(&self, row: usize, out: &mut BytesMut) -> Result<()> {
        let shape = self.shape(row)?;
        // An array without elements has no dimensions.
        let dimensions = if shape.rows.is_empty() { 0 } else { shape.dimensions };
        out.put_i32(dimensions as i32);
        out.put_i32(i32::from(shape.rows.clone().any(|row| shape.elements.is_null(row))));
        out.put_u32(self.element);
        for length in &shape.lengths[..dimensions] {
            out.put_i32(*length);
            out.put_i32(1);
        }
        for row in shape.rows {
            shape.elements.put_field(row, Format::Binary, out)?;
        }
        Ok(())
    }

    /// Writes the text of a vector, whose elements are numbers.
    pub(in super::super) fn put_vector_text(&self, row: usize, out: &mut BytesMut) -> Result<()> {
        let rows = self.rows(row..row + 1);
        for item in rows.clone() {
            if item > rows.start {
                out.put_u8(b' ');
            }
            self.items.put_text(item, out)?;
        }
        Ok(())
    }

    /// Writes the bytes of a vector: an array of one dimension, even of no elements, whose first index is zero.
    pub(in super::super) fn put_vector_binary(&self, row: usize, out: &mut BytesMut) -> Result<()> {
        let rows = self.rows(row..row + 1);
        out.put_i32(1);
        out.put_i32(0);
        out.put_u32(self.element);
        out.put_i32(rows.len() as i32);
        out.put_i32(0);
        for item in rows {
            self.items.put_field(item, Format::Binary, out)?;
        }
        Ok(())
    }

    /// The shape of a list whose inner lists are all as long.
    fn shape(&self, row: usize) -> Result<Shape<'_, 'a>> {
        let mut lists = self;
        let mut rows = row..row + 1;
        let mut lengths = [0; MOST_DIMENSIONS];
        let mut dimensions = 0;
        loop {
            let length = lists.rows(rows.start..rows.start + 1).len();
            if rows.clone().any(|row| lists.rows(row..row + 1).len() != length) {
                return Err(ragged());
            }
            let Some(place) = lengths.get_mut(dimensions) else { return Err(too_deep()) };
            *place = length as i32;
            dimensions += 1;
            let items = lists.rows(rows);
            match &lists.items.values {
                Values::List(inner) if !items.is_empty() => {
                    if items.clone().any(|item| lists.items.is_null(item)) {
                        return Err(ragged());
                    }
                    lists = inner;
                    rows = items;
                }
                _ => return Ok(Shape { lengths, dimensions, elements: &lists.items, rows: items }),
            }
        }
    }
}

/// Whether the text of an element would be read as something else.
fn has_to_be_quoted(text: &[u8]) -> bool {
    let is_special =
        |byte: &u8| matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',' | b' ' | b'\t'..=b'\r');
    text.is_empty() || text.iter().any(is_special) || text.eq_ignore_ascii_case(b"null")
}

fn ragged() -> Rejected {
    let message = "a list of lists that differ in length cannot be sent in binary, as Postgres has no such arrays: select it as text";
    Rejected::new(code::DIMENSIONS, message)
}

/// The error of an array with more dimensions than there may be.
pub(in super::super) fn too_deep() -> Rejected {
    let message = format!("arrays have at most {MOST_DIMENSIONS} dimensions");
    Rejected::new(code::TOO_LARGE, message)
}
