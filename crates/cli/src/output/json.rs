//! Results as JSON: NULL is `null`, and so are NaN and the infinities, which JSON cannot represent.

use std::io::Write;

use arrow::json::writer::{JsonArray, JsonFormat, LineDelimited};
use arrow::json::{Writer, WriterBuilder};

/// Writes one array with one object per row.
pub(super) fn array<W: Write>(to: W) -> Writer<W, JsonArray> {
    writer(to)
}

/// Writes one object per line.
pub(super) fn lines<W: Write>(to: W) -> Writer<W, LineDelimited> {
    writer(to)
}

fn writer<W: Write, F: JsonFormat>(to: W) -> Writer<W, F> {
    WriterBuilder::new().with_explicit_nulls(true).build::<_, F>(to)
}
