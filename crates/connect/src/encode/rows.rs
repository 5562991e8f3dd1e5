//! Rows, each as it is written.

use alluvium::Result;
use arrow::array::RecordBatch;
use arrow::json::WriterBuilder;
use arrow::json::writer::LineDelimited;

/// The bytes of each row.
pub struct Lines {
    text: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    /// How many bytes are between two.
    gap: usize,
}

impl Lines {
    /// An object of JSON for each row. NULL is `null`, and so are NaN and the infinities, as in files.
    pub fn of(rows: &RecordBatch) -> Result<Self> {
        let mut writer =
            WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
        writer.write(rows)?;
        writer.finish()?;
        let text = writer.into_inner();
        // Within an object there is no end of a line: JSON has it escaped.
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(end, _)| end);
        let ends = ends.collect();
        Ok(Self { text, ends, gap: 1 })
    }

    /// These parts, each after `head`.
    #[cfg(feature = "avro")]
    pub fn of_parts(head: &[u8], parts: impl Iterator<Item = impl AsRef<[u8]>>) -> Self {
        let (mut text, mut ends) = (Vec::new(), Vec::new());
        for part in parts {
            text.extend_from_slice(head);
            text.extend_from_slice(part.as_ref());
            ends.push(text.len());
        }
        Self { text, ends, gap: 0 }
    }

    /// The bytes of a row.
    pub fn line(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before] + self.gap);
        &self.text[start..self.ends[row]]
    }
}
