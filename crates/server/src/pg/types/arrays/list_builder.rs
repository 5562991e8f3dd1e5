//! Lists that are made of fields: arrays of Postgres.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{Field as ArrowField, FieldRef};

use super::super::builder::ColumnBuilder;
use super::super::field::Field;
use super::super::format::Format;
use super::super::pg_type::Scalar;
use super::super::rejected::{Rejected, Result, code};
use super::array_text::ArrayText;
use super::list::{MOST_DIMENSIONS, too_deep};

/// A column of lists.
pub(in super::super) struct ListBuilder {
    items: ColumnBuilder,
    /// The field of the items in the list's type; `None` derives it from the items.
    item: Option<FieldRef>,
    /// How many items there are.
    count: usize,
    /// The items before the end of each list.
    ends: Vec<usize>,
    validity: Vec<bool>,
}

impl ListBuilder {
    /// A column of lists of these items.
    pub(in super::super) fn new(items: ColumnBuilder, item: Option<FieldRef>) -> Self {
        Self { items, item, count: 0, ends: Vec::new(), validity: Vec::new() }
    }

    /// The type of the innermost items.
    pub(in super::super) fn scalar(&self) -> Scalar {
        self.items.scalar()
    }

    /// Adds an array of Postgres, whose inner arrays become lists.
    pub(in super::super) fn append(&mut self, field: Field<'_>) -> Result<()> {
        match field.format {
            Format::Text => {
                let mut text = ArrayText::new(field.bytes)?;
                self.append_text(&mut text)?;
                text.end()
            }
            Format::Binary => self.append_binary(field.bytes),
        }
    }

    /// Adds NULL.
    pub(in super::super) fn append_null(&mut self) {
        self.end_list(false);
    }

    /// Takes the lists.
    pub(in super::super) fn finish(&mut self) -> Result<ArrayRef> {
        let items = self.items.finish()?;
        let ends = std::mem::take(&mut self.ends);
        let offsets: std::result::Result<Vec<i32>, _> =
            std::iter::once(0).chain(ends).map(i32::try_from).collect();
        let offsets = offsets.map_err(|_| Rejected::too_large())?;
        let nulls = NullBuffer::from(std::mem::take(&mut self.validity));
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        self.count = 0;
        let item = match &self.item {
            Some(item) => Arc::clone(item),
            None => Arc::new(ArrowField::new_list_field(items.data_type().clone(), true)),
        };
        Ok(Arc::new(ListArray::try_new(item, OffsetBuffer::new(offsets.into()), items, nulls)?))
    }

    fn end_list(&mut self, is_valid: bool) {
        self.ends.push(self.count);
        self.validity.push(is_valid);
    }

    fn append_text(&mut self, text: &mut ArrayText<'_>) -> Result<()> {
        text.open()?;
        let mut is_open = !text.closes();
        while is_open {
            match &mut self.items {
                ColumnBuilder::List(_) if text.opens_null() => self.items.append_null(),
                ColumnBuilder::List(lists) => lists.append_text(text)?,
                items => match text.element()? {
                    Some(bytes) => items.append(Field::text(bytes))?,
                    None => items.append_null(),
                },
            }
            self.count += 1;
            is_open = text.continues()?;
        }
        self.end_list(true);
        Ok(())
    }

    fn append_binary(&mut self, bytes: &[u8]) -> Result<()> {
        let (head, mut rest) = Head::read(bytes)?;
        let scalar = self.scalar();
        let is_same = Scalar::of_oid(head.element)
            .is_some_and(|element| element == scalar || element.is_text() && scalar.is_text());
        if !is_same {
            let message = format!(
                "an array of type {} was sent where the elements are {}",
                head.element,
                scalar.name()
            );
            return Err(Rejected::new(code::MISMATCH, message));
        }
        let lengths = &head.lengths[..head.dimensions];
        if lengths.contains(&0) || lengths.is_empty() {
            self.end_list(true);
        } else if head.dimensions != self.depth() {
            let message = format!(
                "an array of {} dimensions was sent where there are {}",
                head.dimensions,
                self.depth()
            );
            return Err(Rejected::new(code::DIMENSIONS, message));
        } else {
            self.append_level(lengths, &mut rest)?;
        }
        if rest.is_empty() { Ok(()) } else { Err(malformed()) }
    }

    /// Adds a list with items of these dimensions, of which there is at least one.
    fn append_level(&mut self, lengths: &[usize], rest: &mut &[u8]) -> Result<()> {
        let (length, inner) = lengths.split_first().ok_or_else(malformed)?;
        for _ in 0..*length {
            match &mut self.items {
                ColumnBuilder::List(lists) => lists.append_level(inner, rest)?,
                items => match u32::try_from(integer(rest)?) {
                    Ok(bytes) => {
                        let (value, after) =
                            rest.split_at_checked(bytes as usize).ok_or_else(malformed)?;
                        *rest = after;
                        items.append(Field::binary(value))?;
                    }
                    Err(_) => items.append_null(),
                },
            }
            self.count += 1;
        }
        self.end_list(true);
        Ok(())
    }

    /// How many lists are inside each other.
    fn depth(&self) -> usize {
        match &self.items {
            ColumnBuilder::List(lists) => 1 + lists.depth(),
            _ => 1,
        }
    }
}

/// The head of an array: its type and its dimensions.
pub(in super::super) struct Head {
    element: u32,
    pub(in super::super) dimensions: usize,
    lengths: [usize; MOST_DIMENSIONS],
}

impl Head {
    /// The head of an array, and the bytes of its elements.
    pub(in super::super) fn read(bytes: &[u8]) -> Result<(Self, &[u8])> {
        let mut rest = bytes;
        let (dimensions, flags) = (integer(&mut rest)?, integer(&mut rest)?);
        let element = integer(&mut rest)?.cast_unsigned();
        let dimensions = usize::try_from(dimensions).map_err(|_| malformed())?;
        if dimensions > MOST_DIMENSIONS {
            return Err(too_deep());
        }
        let mut lengths = [0; MOST_DIMENSIONS];
        // Each element has at least a length of its own.
        let mut least = 4_usize;
        for length in &mut lengths[..dimensions] {
            *length = usize::try_from(integer(&mut rest)?).map_err(|_| malformed())?;
            // Where it begins to count has no meaning for a list.
            integer(&mut rest)?;
            least = least.checked_mul(*length).ok_or_else(malformed)?;
        }
        let is_whole = dimensions == 0 || least <= rest.len();
        if !matches!(flags, 0 | 1) || !is_whole {
            return Err(malformed());
        }
        Ok((Self { element, dimensions, lengths }, rest))
    }
}

/// Takes an integer.
fn integer(rest: &mut &[u8]) -> Result<i32> {
    let (bytes, after) = rest.split_first_chunk().ok_or_else(malformed)?;
    *rest = after;
    Ok(i32::from_be_bytes(*bytes))
}

fn malformed() -> Rejected {
    Rejected::binary("array")
}
