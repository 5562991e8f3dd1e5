//! Columns into rows, one column after the other.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    BinaryType, BinaryViewType, ByteArrayType, ByteViewType, DataType, LargeBinaryType,
    LargeUtf8Type, StringViewType, Utf8Type,
};
use arrow_row::Rows;

use super::super::{CodecError, Encoded};
use super::layout::{END, Kind, Layout, NestedCodec};

pub(super) fn encode(
    layout: &Layout,
    gap: usize,
    columns: &[ArrayRef],
    rows: usize,
    out: &mut Encoded,
) -> Result<(), CodecError> {
    if rows == 0 {
        return Ok(());
    }
    let first = out.len();
    let variables = columns
        .iter()
        .zip(layout.kinds.iter())
        .filter_map(|(column, kind)| match kind {
            Kind::Bytes { .. } => Some(Ok(Variable::Bytes(column))),
            Kind::Nested { codec, .. } => Some(Variable::nested(column, codec)),
            _ => None,
        })
        .collect::<Result<Vec<_>, CodecError>>()?;

    out.ends.resize(first + rows, gap + layout.bytes_at);
    for variable in &variables {
        let lengths = &mut out.ends[first..];
        variable.for_each(|row, bytes| lengths[row] += bytes.len());
    }
    if out.ends[first..].iter().any(|&length| length > u32::MAX as usize) {
        out.ends.truncate(first);
        return Err(CodecError::TooLong("a row", u32::MAX.into()));
    }
    let mut end = out.bytes.len();
    for length in &mut out.ends[first..] {
        end += *length;
        *length = end;
    }
    out.bytes.resize(end, 0);

    for (number, (column, kind)) in columns.iter().zip(layout.kinds.iter()).enumerate() {
        encode_nulls(column, gap, number, first, out);
        match *kind {
            Kind::Boolean { at } => encode_booleans(column, gap + at, first, out),
            Kind::Fixed { at, width } => encode_fixed(column, gap + at, width, first, out),
            Kind::Null | Kind::Bytes { .. } | Kind::Nested { .. } => {}
        }
    }
    encode_variables(layout, gap, &variables, first, rows, out);
    Ok(())
}

fn encode_nulls(column: &ArrayRef, gap: usize, number: usize, first: usize, out: &mut Encoded) {
    let mark = |out: &mut Encoded, row: usize| {
        let start = out.range(first + row).start;
        out.bytes[start + gap + number / 8] |= 1 << (number % 8);
    };
    if *column.data_type() == DataType::Null {
        (0..column.len()).for_each(|row| mark(out, row));
    } else if let Some(nulls) = column.nulls().filter(|nulls| nulls.null_count() > 0) {
        (!nulls.inner()).set_indices().for_each(|row| mark(out, row));
    }
}

fn encode_booleans(column: &ArrayRef, at: usize, first: usize, out: &mut Encoded) {
    let column = column.as_boolean();
    let values = match column.nulls() {
        Some(nulls) => column.values() & nulls.inner(),
        None => column.values().clone(),
    };
    for row in values.set_indices() {
        let start = out.range(first + row).start;
        out.bytes[start + at] = 1;
    }
}

fn encode_fixed(column: &ArrayRef, at: usize, width: usize, first: usize, out: &mut Encoded) {
    match width {
        1 => encode_width::<1>(column, at, first, out),
        2 => encode_width::<2>(column, at, first, out),
        4 => encode_width::<4>(column, at, first, out),
        8 => encode_width::<8>(column, at, first, out),
        16 => encode_width::<16>(column, at, first, out),
        _ => encode_width::<32>(column, at, first, out),
    }
}

fn encode_width<const WIDTH: usize>(column: &ArrayRef, at: usize, first: usize, out: &mut Encoded) {
    let data = column.to_data();
    let (values, _) = data.buffers()[0].as_slice()[data.offset() * WIDTH..].as_chunks::<WIDTH>();
    let mut start = out.range(first).start;
    let Encoded { bytes, ends, .. } = out;
    let rows = values.iter().zip(&ends[first..]);
    match column.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => {
            for (value, &end) in rows {
                bytes[start + at..start + at + WIDTH].copy_from_slice(value);
                start = end;
            }
        }
        Some(nulls) => {
            // The bytes under a NULL are arbitrary, and must not tell equal rows apart.
            for ((value, &end), is_valid) in rows.zip(nulls) {
                if is_valid {
                    bytes[start + at..start + at + WIDTH].copy_from_slice(value);
                }
                start = end;
            }
        }
    }
}

fn encode_variables(
    layout: &Layout,
    gap: usize,
    variables: &[Variable<'_>],
    first: usize,
    rows: usize,
    out: &mut Encoded,
) {
    // How many bytes of variable columns each row has so far.
    let mut written = vec![0_u32; rows];
    let base = out.range(first).start;
    let Encoded { bytes, ends, .. } = out;
    for (number, variable) in variables.iter().enumerate() {
        let is_last = number + 1 == layout.variables;
        let mut start = base;
        let mut next = 0;
        let write_end = |bytes: &mut [u8], start: usize, written: u32| {
            if !is_last {
                let at = start + gap + layout.ends_at + END * number;
                bytes[at..at + END].copy_from_slice(&written.to_le_bytes());
            }
        };
        variable.for_each(|row, value| {
            // Rows that are NULL here are left out: they end where they began.
            while next < row {
                write_end(bytes, start, written[next]);
                start = ends[first + next];
                next += 1;
            }
            let at = start + gap + layout.bytes_at + written[row] as usize;
            bytes[at..at + value.len()].copy_from_slice(value);
            written[row] += value.len() as u32;
            write_end(bytes, start, written[row]);
            start = ends[first + row];
            next = row + 1;
        });
        while next < rows {
            write_end(bytes, start, written[next]);
            start = ends[first + next];
            next += 1;
        }
    }
}

/// A column of variable width.
enum Variable<'a> {
    /// Strings, as Arrow has them.
    Bytes(&'a ArrayRef),
    /// Nested values, as arrow-row has encoded them.
    Nested(&'a ArrayRef, Rows),
}

impl<'a> Variable<'a> {
    fn nested(column: &'a ArrayRef, codec: &NestedCodec) -> Result<Self, CodecError> {
        let rows = codec.converter.convert_columns(std::slice::from_ref(column))?;
        Ok(Self::Nested(column, rows))
    }

    /// Calls `visit` with the number and the bytes of each row that is not NULL, in order.
    fn for_each(&self, visit: impl FnMut(usize, &[u8])) {
        match self {
            Self::Bytes(column) => match column.data_type() {
                DataType::Utf8 => each_bytes::<Utf8Type>(column, visit),
                DataType::LargeUtf8 => each_bytes::<LargeUtf8Type>(column, visit),
                DataType::Binary => each_bytes::<BinaryType>(column, visit),
                DataType::LargeBinary => each_bytes::<LargeBinaryType>(column, visit),
                DataType::Utf8View => each_view::<StringViewType>(column, visit),
                _ => each_view::<BinaryViewType>(column, visit),
            },
            Self::Nested(column, rows) => {
                each_valid(column, visit, |row| rows.row(row).data());
            }
        }
    }
}

fn each_bytes<B: ByteArrayType>(column: &ArrayRef, visit: impl FnMut(usize, &[u8])) {
    let column = column.as_bytes::<B>();
    each_valid(column, visit, |row| column.value(row).as_ref());
}

fn each_view<V: ByteViewType>(column: &ArrayRef, visit: impl FnMut(usize, &[u8])) {
    let column = column.as_byte_view::<V>();
    each_valid(column, visit, |row| column.value(row).as_ref());
}

#[inline]
fn each_valid<'a>(
    column: &dyn Array,
    mut visit: impl FnMut(usize, &[u8]),
    value: impl Fn(usize) -> &'a [u8],
) {
    match column.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => (0..column.len()).for_each(|row| visit(row, value(row))),
        Some(nulls) => nulls.valid_indices().for_each(|row| visit(row, value(row))),
    }
}
