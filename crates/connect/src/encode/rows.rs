//! Rows as objects of JSON.

use alluvium::Result;
use arrow::array::RecordBatch;
use arrow::json::WriterBuilder;
use arrow::json::writer::LineDelimited;

/// An object for each row. NULL is `null`, and so are NaN and the infinities, as in files.
pub struct Lines {
    text: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Lines {
    pub fn of(rows: &RecordBatch) -> Result<Self> {
        let mut writer =
            WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
        writer.write(rows)?;
        writer.finish()?;
        let text = writer.into_inner();
        // Within an object there is no end of a line: JSON has it escaped.
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(end, _)| end);
        let ends = ends.collect();
        Ok(Self { text, ends })
    }

    /// The object of a row.
    pub fn line(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before] + 1);
        &self.text[start..self.ends[row]]
    }
}
