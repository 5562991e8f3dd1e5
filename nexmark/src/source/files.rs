//! Events as Parquet files: one per stream, one row group per epoch.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::generator::Generator;
use super::{Events, Extent};
use crate::error::{Error, Result};
use crate::stream::Stream;

/// The files of all streams.
pub struct Files {
    streams: [StreamFile; 3],
    epochs: usize,
}

/// The file of one stream.
struct StreamFile {
    stream: Stream,
    path: PathBuf,
    file: File,
    metadata: ArrowReaderMetadata,
    /// The row group of each epoch and its rows; `None` where the stream has none in the epoch.
    groups: Vec<Option<(usize, u64)>>,
}

impl Files {
    /// Finds the files of these events in a folder, or writes them. The names contain the parameters of the events.
    pub fn ensure(folder: &Path, extent: Extent) -> Result<Self> {
        let Extent { events, epoch_rows, rate } = extent;
        let path = |stream: Stream| {
            folder.join(format!("{}-{events}-{epoch_rows}-{rate}.parquet", stream.name()))
        };
        let paths = Stream::ALL.map(path);
        if !paths.iter().all(|path| path.exists()) {
            fs::create_dir_all(folder).map_err(|error| failed(folder, error.into()))?;
            write(&paths, extent)?;
        }
        let [person, auction, bid] = Stream::ALL;
        let [of_person, of_auction, of_bid] = paths;
        let streams = [
            StreamFile::open(person, of_person, extent)?,
            StreamFile::open(auction, of_auction, extent)?,
            StreamFile::open(bid, of_bid, extent)?,
        ];
        Ok(Self { streams, epochs: extent.epochs().count() })
    }

    /// The events, in the epochs in which they were written.
    pub fn epochs(&self) -> impl Iterator<Item = Result<Events>> + '_ {
        let read = |epoch: usize| {
            let [person, auction, bid] = &self.streams;
            let batches = [person.read(epoch)?, auction.read(epoch)?, bid.read(epoch)?];
            Ok(Events { batches, revision: None })
        };
        (0..self.epochs).map(read)
    }
}

impl StreamFile {
    fn open(stream: Stream, path: PathBuf, extent: Extent) -> Result<Self> {
        let open = || {
            let file = File::open(&path)?;
            let metadata = ArrowReaderMetadata::load(&file, Default::default())?;
            Ok((file, metadata))
        };
        let (file, metadata) = open().map_err(|error| failed(&path, error))?;
        let mut next = 0;
        let group = |events: std::ops::Range<u64>| {
            let rows = stream.rows(events.end) - stream.rows(events.start);
            let group = (rows > 0).then_some((next, rows));
            next += usize::from(rows > 0);
            group
        };
        let groups = extent.epochs().map(group).collect();
        Ok(Self { stream, path, file, metadata, groups })
    }

    /// The rows of one epoch.
    fn read(&self, epoch: usize) -> Result<RecordBatch> {
        let Some((group, rows)) = self.groups[epoch] else {
            return Ok(RecordBatch::new_empty(self.stream.schema()));
        };
        let read = || {
            let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(
                self.file.try_clone()?,
                self.metadata.clone(),
            );
            let reader = reader.with_row_groups(vec![group]).with_batch_size(rows as usize);
            let Some(read) = reader.build()?.next().transpose()? else {
                return Err(ParquetError::EOF(format!("there is no row group {group}")));
            };
            // With the schema of the stream, without the metadata of the file.
            Ok(RecordBatch::try_new(self.stream.schema(), read.columns().to_vec())?)
        };
        read().map_err(|error| failed(&self.path, error))
    }
}

fn write(paths: &[PathBuf; 3], extent: Extent) -> Result<()> {
    // Under temporary names until they are complete.
    let partial = paths.clone().map(|path| path.with_extension("partial"));
    let mut writers = Vec::with_capacity(partial.len());
    for (stream, path) in Stream::ALL.into_iter().zip(&partial) {
        let open = || {
            let properties = WriterProperties::builder()
                .set_compression(Compression::SNAPPY)
                .set_max_row_group_row_count(None)
                .build();
            ArrowWriter::try_new(File::create(path)?, stream.schema(), Some(properties))
        };
        writers.push(open().map_err(|error| failed(path, error))?);
    }
    for events in Generator::new(extent) {
        let events = events?;
        for ((writer, path), rows) in writers.iter_mut().zip(&partial).zip(&events.batches) {
            let written = writer.write(rows).and_then(|()| writer.flush());
            written.map_err(|error| failed(path, error))?;
        }
    }
    for ((writer, partial), path) in writers.into_iter().zip(&partial).zip(paths) {
        writer.close().map_err(|error| failed(partial, error))?;
        fs::rename(partial, path).map_err(|error| failed(path, error.into()))?;
    }
    Ok(())
}

fn failed(path: &Path, error: ParquetError) -> Error {
    Error::File { path: path.to_owned(), error }
}
