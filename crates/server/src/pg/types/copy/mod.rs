//! COPY: rows as text, as CSV and in binary, both ways.
//!
//! [`CopyEncoder`] writes a message for each row. [`CopyDecoder`] takes the data of messages, which may end anywhere in a row: `lines`
//! finds the ends of rows, [`text`] and [`csv`] their fields, and [`binary`] both. `batch` collects their values.

mod batch;
mod binary;
mod csv;
mod decoder;
mod encoder;
mod fields;
mod lines;
mod options;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use self::decoder::CopyDecoder;
pub(crate) use self::encoder::CopyEncoder;
pub(crate) use self::options::{CopyFormat, CopyOptions, Header};
