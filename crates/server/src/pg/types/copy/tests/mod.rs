//! Data of COPY against those of Postgres, and in random pieces.

mod golden;
mod malformed;
mod random;

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use bytes::BytesMut;

use super::super::rejected::Rejected;
use super::{CopyDecoder, CopyEncoder, CopyFormat, CopyOptions, Header};

/// The rows of data that come in these pieces.
fn decoded<'a>(
    schema: &SchemaRef,
    options: &CopyOptions,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<RecordBatch, Rejected> {
    let mut decoder = CopyDecoder::new(schema.clone(), options)?;
    let mut batches = Vec::new();
    for piece in pieces {
        decoder.push(piece)?;
        batches.extend(std::iter::from_fn(|| decoder.take()));
    }
    decoder.finish()?;
    batches.extend(std::iter::from_fn(|| decoder.take()));
    Ok(concat_batches(schema, &batches).unwrap())
}

/// The data of a batch, without the heads of its messages.
fn encoded(batch: &RecordBatch, options: &CopyOptions) -> Vec<u8> {
    let mut encoder = CopyEncoder::new(&batch.schema(), options.clone()).unwrap();
    let mut out = BytesMut::new();
    for row in 0..batch.num_rows() {
        encoder.encode(batch, row..row + 1, &mut out).unwrap();
    }
    encoder.finish(&mut out).unwrap();
    let mut data = Vec::new();
    let mut rest = &out[..];
    while !rest.is_empty() {
        assert_eq!(rest[0], b'd');
        let end = 1 + u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize;
        data.extend_from_slice(&rest[5..end]);
        rest = &rest[end..];
    }
    data
}

/// The columns of `tests/it/values/copy.sql`.
fn odd() -> SchemaRef {
    let text = DataType::new_list(DataType::Utf8, true);
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    schema([
        ("id", DataType::Int32),
        ("word", DataType::Utf8),
        ("bytes", DataType::Binary),
        ("number", DataType::Decimal128(12, 3)),
        ("a,\"b", text),
        ("day", DataType::Date32),
        ("moment", instant),
        ("ok", DataType::Boolean),
        ("double", DataType::Float64),
    ])
}

fn schema<const N: usize>(columns: [(&str, DataType); N]) -> SchemaRef {
    let field = |(name, kind): (&str, DataType)| Field::new(name, kind, true);
    Arc::new(Schema::new(columns.map(field).to_vec()))
}

fn options(format: CopyFormat) -> CopyOptions {
    CopyOptions::new(format)
}

fn with_header() -> CopyOptions {
    CopyOptions { header: Header::Checked, ..options(CopyFormat::Csv) }
}
