//! JSON as it is written: NULL is `null`, and so are NaN and the infinities, which JSON does not have.

use std::io::{self, Write};

use alluvium::{Error, Result, SinkRequest, SinkWriter};
use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::json::WriterBuilder;
use arrow::json::writer::{JsonFormat, Writer};

use super::options::Options;
use crate::input::failed;
use crate::options::Compression;
use crate::target::Target;

/// Writes rows to a file.
pub struct JsonWriter<F: JsonFormat> {
    writer: Writer<Target, F>,
}

impl<F: JsonFormat> JsonWriter<F> {
    pub fn create(request: &SinkRequest) -> Result<Self> {
        let (path, options) = (&request.path, Options::read(&request.options)?);
        let compression = options.compression.unwrap_or(Compression::of(path));
        let target = Target::create(path, compression, request.visibility, request.start)
            .map_err(|error| failed("write", path, &error))?;
        Ok(Self { writer: WriterBuilder::new().with_explicit_nulls(true).build(target) })
    }

    fn failed(&self, error: ArrowError) -> Error {
        let error = match error {
            ArrowError::IoError(_, error) => error,
            other => io::Error::other(other),
        };
        failed("write", self.writer.get_ref().path(), &error)
    }
}

impl<F: JsonFormat + Send> SinkWriter for JsonWriter<F> {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.writer.write(rows).map_err(|error| self.failed(error))
    }

    fn flush(&mut self) -> Result<()> {
        let flushed = self.writer.get_mut().flush();
        flushed.map_err(|error| failed("write", self.writer.get_ref().path(), &error))
    }

    fn sync(&mut self) -> Result<u64> {
        let synced = self.writer.get_mut().sync();
        synced.map_err(|error| failed("write", self.writer.get_ref().path(), &error))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.writer.finish().map_err(|error| self.failed(error))?;
        let path = self.writer.get_ref().path().to_owned();
        self.writer.into_inner().finish().map_err(|error| failed("write", &path, &error))
    }
}
