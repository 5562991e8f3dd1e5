//! Rows into columns, only those asked for.

use std::sync::Arc;

use arrow::array::{
    ArrayData, ArrayRef, BinaryViewBuilder, BooleanArray, GenericByteArray, NullArray,
    OffsetSizeTrait, make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    ArrowNativeType, BinaryType, ByteArrayType, DataType, LargeBinaryType, LargeUtf8Type, Utf8Type,
};

use super::super::CodecError;
use super::layout::{Kind, Layout, NestedCodec, is_null};

pub(super) fn decode(
    layout: &Layout,
    rows: &[&[u8]],
    columns: &[usize],
) -> Result<Vec<ArrayRef>, CodecError> {
    if rows.iter().any(|row| row.len() < layout.bytes_at) {
        return Err(CodecError::Corrupt("a row is too short for its columns"));
    }
    columns
        .iter()
        .map(|&column| {
            let data_type = &layout.types[column];
            Ok(match &layout.kinds[column] {
                Kind::Null => Arc::new(NullArray::new(rows.len())) as ArrayRef,
                Kind::Boolean { at } => {
                    let values = BooleanBuffer::collect_bool(rows.len(), |row| rows[row][*at] != 0);
                    Arc::new(BooleanArray::new(values, nulls(rows, column)))
                }
                Kind::Fixed { at, width } => fixed(rows, column, data_type, *at, *width)?,
                Kind::Bytes { variable } => bytes(layout, rows, column, data_type, *variable)?,
                Kind::Nested { variable, codec } => nested(layout, rows, column, *variable, codec)?,
            })
        })
        .collect()
}

fn nulls(rows: &[&[u8]], column: usize) -> Option<NullBuffer> {
    if !rows.iter().any(|row| is_null(row, column)) {
        return None;
    }
    Some(BooleanBuffer::collect_bool(rows.len(), |row| !is_null(rows[row], column)).into())
}

fn fixed(
    rows: &[&[u8]],
    column: usize,
    data_type: &DataType,
    at: usize,
    width: usize,
) -> Result<ArrayRef, CodecError> {
    let values = match width {
        1 => gather::<1>(rows, at),
        2 => gather::<2>(rows, at),
        4 => gather::<4>(rows, at),
        8 => gather::<8>(rows, at),
        16 => gather::<16>(rows, at),
        _ => gather::<32>(rows, at),
    };
    let data = ArrayData::builder(data_type.clone())
        .len(rows.len())
        .add_buffer(values)
        .nulls(nulls(rows, column))
        .build()?;
    Ok(make_array(data))
}

fn gather<const WIDTH: usize>(rows: &[&[u8]], at: usize) -> Buffer {
    let mut values = MutableBuffer::from_len_zeroed(rows.len() * WIDTH);
    let (slots, _) = values.as_slice_mut().as_chunks_mut::<WIDTH>();
    for (slot, row) in slots.iter_mut().zip(rows) {
        slot.copy_from_slice(&row[at..at + WIDTH]);
    }
    values.into()
}

fn bytes(
    layout: &Layout,
    rows: &[&[u8]],
    column: usize,
    data_type: &DataType,
    variable: usize,
) -> Result<ArrayRef, CodecError> {
    let nulls = nulls(rows, column);
    Ok(match data_type {
        DataType::Utf8 => contiguous::<Utf8Type>(layout, rows, nulls, variable)?,
        DataType::LargeUtf8 => contiguous::<LargeUtf8Type>(layout, rows, nulls, variable)?,
        DataType::Binary => contiguous::<BinaryType>(layout, rows, nulls, variable)?,
        DataType::LargeBinary => contiguous::<LargeBinaryType>(layout, rows, nulls, variable)?,
        _ => {
            let mut views = BinaryViewBuilder::with_capacity(rows.len());
            for (number, row) in rows.iter().enumerate() {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(number)) {
                    views.append_null();
                } else {
                    views.append_value(&row[layout.variable(row, variable)?]);
                }
            }
            let views = views.finish();
            match data_type {
                DataType::Utf8View => Arc::new(views.to_string_view()?),
                _ => Arc::new(views),
            }
        }
    })
}

fn contiguous<B: ByteArrayType>(
    layout: &Layout,
    rows: &[&[u8]],
    nulls: Option<NullBuffer>,
    variable: usize,
) -> Result<ArrayRef, CodecError> {
    let mut ends = Vec::with_capacity(rows.len() + 1);
    ends.push(B::Offset::usize_as(0));
    let mut length = 0_usize;
    for row in rows {
        length += layout.variable(row, variable)?.len();
        ends.push(B::Offset::usize_as(length));
    }
    let limit = B::Offset::MAX_OFFSET;
    if length > limit {
        return Err(CodecError::TooLong("a column of one batch", limit as u64));
    }
    let mut values = Vec::with_capacity(length);
    for row in rows {
        values.extend_from_slice(&row[layout.variable(row, variable)?]);
    }
    let ends = OffsetBuffer::new(ends.into());
    Ok(Arc::new(GenericByteArray::<B>::try_new(ends, values.into(), nulls)?))
}

fn nested(
    layout: &Layout,
    rows: &[&[u8]],
    column: usize,
    variable: usize,
    codec: &NestedCodec,
) -> Result<ArrayRef, CodecError> {
    let mut parsed = Vec::with_capacity(rows.len());
    for row in rows {
        let bytes = if is_null(row, column) {
            &codec.null
        } else {
            &row[layout.variable(row, variable)?]
        };
        parsed.push(codec.parser.parse(bytes));
    }
    let mut columns = codec.converter.convert_rows(parsed)?;
    columns.pop().ok_or(CodecError::Corrupt("a nested column is missing"))
}
