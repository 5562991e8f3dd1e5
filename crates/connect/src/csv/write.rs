//! CSV files as they are written.

use std::io::Write;

use alluvium::{Result, SinkRequest, SinkWriter};
use arrow::array::RecordBatch;

use super::dialect::Dialect;
use super::options::{Options, usual};
use super::text::CsvText;
use crate::input::failed;
use crate::options::Compression;
use crate::target::Target;

/// Writes rows to a file.
pub struct CsvWriter {
    target: Target,
    text: CsvText,
}

impl CsvWriter {
    pub fn create(request: &SinkRequest, options: &Options) -> Result<Self> {
        let path = &request.path;
        let compression = options.compression.unwrap_or(Compression::of(path));
        let failed = |error| failed("write", path, &error);
        let mut target =
            Target::create(path, compression, request.visibility, request.start).map_err(failed)?;
        let null_value = options.null_values().remove(0);
        let Dialect { delimiter, quote, escape, .. } = options.given.or(usual(path));
        let text = CsvText { delimiter, quote, escape, null_value };
        if options.headers.unwrap_or(true) && request.start.is_none() {
            text.write_header(&request.schema, &mut target).map_err(failed)?;
        }
        Ok(Self { target, text })
    }
}

impl SinkWriter for CsvWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let written = self.text.write_rows(rows, &mut self.target);
        written.map_err(|error| failed("write", self.target.path(), &error))
    }

    fn flush(&mut self) -> Result<()> {
        self.target.flush().map_err(|error| failed("write", self.target.path(), &error))
    }

    fn sync(&mut self) -> Result<u64> {
        self.target.sync().map_err(|error| failed("write", self.target.path(), &error))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let path = self.target.path().to_owned();
        self.target.finish().map_err(|error| failed("write", &path, &error))
    }
}
