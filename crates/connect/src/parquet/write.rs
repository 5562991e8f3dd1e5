//! Parquet as it is written.

use std::io;

use alluvium::{Error, Result, SinkRequest, SinkWriter};
use arrow::array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::options::Options;
use crate::input::failed;
use crate::options::Compression;
use crate::target::Target;

/// Writes rows to a file, which can be read once it is finished.
pub struct ParquetWriter {
    writer: ArrowWriter<Target>,
}

impl ParquetWriter {
    pub fn create(request: &SinkRequest, options: &Options) -> Result<Self> {
        let path = &request.path;
        let failed = |error| failed("write", path, &error);
        let target =
            Target::create(path, Compression::None, request.visibility, None).map_err(failed)?;
        let properties = WriterProperties::builder().set_compression(options.compression).build();
        let writer = ArrowWriter::try_new(target, request.schema.clone(), Some(properties))
            .map_err(|error| failed(io::Error::other(error)))?;
        Ok(Self { writer })
    }

    fn failed(&self, error: ParquetError) -> Error {
        failed("write", self.writer.inner().path(), &io::Error::other(error))
    }
}

impl SinkWriter for ParquetWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.writer.write(rows).map_err(|error| self.failed(error))
    }

    /// Rows are collected to groups, which a reader finds from the file's end: nothing to do before it.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let path = self.writer.inner().path().to_owned();
        let failed = |error| failed("write", &path, &error);
        let target = self.writer.into_inner().map_err(|error| failed(io::Error::other(error)))?;
        target.finish().map_err(failed)
    }
}
