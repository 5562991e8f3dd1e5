//! Parquet as it is read.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium::unstable::nearest;
use alluvium::{Error, Inferred, Portion, Result, SourcePosition, SourceReader, SourceRequest};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};

use super::options;
use crate::fit::{Fit, becomes, type_name};
use crate::input::{check_length, failed};

type Builder = ParquetRecordBatchReaderBuilder<File>;

/// Reads rows of one file.
pub struct ParquetReader {
    path: PathBuf,
    rows: ParquetRecordBatchReader,
    /// The columns of the table that the file has, and the column of the batches that holds each.
    columns: Vec<(FieldRef, usize)>,
    /// How many rows were read.
    at: u64,
    /// How large the file is, and how many rows it has.
    size: u64,
    count: u64,
    /// How many of the file's bytes were reported.
    reported: u64,
}

/// How a file is read: opened once, and then as a whole or by its row groups.
#[derive(Clone)]
pub struct Plan {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    columns: Vec<(FieldRef, usize)>,
    mask: ProjectionMask,
    batch_rows: usize,
    size: u64,
    count: u64,
}

impl Plan {
    pub fn new(path: &Path, request: &SourceRequest) -> Result<Self> {
        let (metadata, size) = metadata(path)?;
        let count = u64::try_from(metadata.metadata().file_metadata().num_rows()).unwrap_or(0);
        let found = metadata.schema();
        let place = |name: &str| {
            found.index_of(name).ok().or_else(|| {
                found.fields().iter().position(|field| field.name().eq_ignore_ascii_case(name))
            })
        };
        let wanted = request.schema.fields().iter();
        let places: Vec<Option<usize>> = wanted.clone().map(|field| place(field.name())).collect();
        for (number, (field, place)) in wanted.clone().zip(&places).enumerate() {
            let name = field.name();
            let wrong = |problem: String| {
                Error::source(format!("\"{}\": column \"{name}\" {problem}", path.display()))
            };
            match place {
                None if !request.may_leave_out(number) => {
                    return Err(wrong("is NOT NULL and the file does not have it".to_owned()));
                }
                Some(place) => {
                    let (from, to) = (found.field(*place).data_type(), field.data_type());
                    if from != to && !becomes(from, to) {
                        let kind = type_name(to);
                        return Err(wrong(format!(
                            "is {from} in the file, which cannot become {kind}{}",
                            way_out(from)
                        )));
                    }
                }
                None => {}
            }
        }
        let mut roots: Vec<usize> = places.iter().flatten().copied().collect();
        roots.sort_unstable();
        roots.dedup();
        let columns = wanted.zip(&places).filter_map(|(field, place)| {
            Some((field.clone(), roots.binary_search(&(*place)?).ok()?))
        });
        let columns = columns.collect();
        let mask = ProjectionMask::roots(metadata.parquet_schema(), roots);
        let batch_rows = batch_rows(metadata.metadata(), &mask, request);
        let path = path.to_owned();
        Ok(Self { path, metadata, columns, mask, batch_rows, size, count })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many row groups the file has.
    pub fn groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// Reads the rows after the first ones.
    pub fn behind(&self, at: u64) -> Result<ParquetReader> {
        check_length(self.count, at).map_err(|error| failed("open", &self.path, &error))?;
        let offset = usize::try_from(at).unwrap_or(usize::MAX);
        self.read(at, |builder| if at > 0 { builder.with_offset(offset) } else { builder })
    }

    /// Reads the rows of one row group.
    pub fn group(&self, group: usize) -> Result<ParquetReader> {
        let groups = self.metadata.metadata().row_groups().iter();
        let rows = groups.take(group).map(|group| u64::try_from(group.num_rows()).unwrap_or(0));
        self.read(rows.sum(), |builder| builder.with_row_groups(vec![group]))
    }

    fn read(&self, at: u64, which: impl FnOnce(Builder) -> Builder) -> Result<ParquetReader> {
        let Self { path, columns, size, count, .. } = self.clone();
        let file = File::open(&path).map_err(|error| failed("open", &path, &error))?;
        let builder = Builder::new_with_metadata(file, self.metadata.clone());
        let builder = builder.with_projection(self.mask.clone()).with_batch_size(self.batch_rows);
        let rows = guarded(&path, || which(builder).build().map_err(io::Error::other))?;
        let mut reader = ParquetReader { path, rows, columns, at, size, count, reported: 0 };
        reader.bytes();
        Ok(reader)
    }
}

impl ParquetReader {
    /// The bytes of the file that belong to the rows read since this was last asked.
    fn bytes(&mut self) -> u64 {
        let all = u128::from(self.size) * u128::from(self.at) / u128::from(self.count.max(1));
        let all = u64::try_from(all).unwrap_or(self.size);
        std::mem::replace(&mut self.reported, all).abs_diff(all)
    }
}

impl SourceReader for ParquetReader {
    fn next(&mut self) -> Result<Option<Portion>> {
        let rows = &mut self.rows;
        let next = || rows.next().transpose().map_err(io::Error::other);
        let Some(batch) = guarded(&self.path, next)? else { return Ok(None) };
        let line = |row: usize| self.at + row as u64 + 1;
        let mut fit = Fit::new(&self.path, batch.num_rows(), &line);
        let mut columns = self.columns.iter();
        let fitted = columns
            .try_for_each(|(field, column)| fit.column(field, batch.column(*column), None))
            .and_then(|()| fit.finish());
        let mut portion =
            fitted.map_err(|error| failed("read", &self.path, &io::Error::other(error)))?;
        self.at += batch.num_rows() as u64;
        portion.bytes = self.bytes();
        Ok(Some(portion))
    }

    /// The end of a file was read first, so that it is no pipe.
    fn position(&self) -> Option<SourcePosition> {
        Some(SourcePosition::in_file(&self.path, self.at, self.at))
    }
}

/// The columns of a file.
pub fn infer(path: &Path, options: &[(String, String)]) -> Result<Inferred> {
    options.iter().try_for_each(|(name, value)| options::check_read(name, value))?;
    let (metadata, _) = metadata(path)?;
    let known = |field: &FieldRef| field.as_ref().clone().with_data_type(known(field.data_type()));
    let fields: Vec<Field> = metadata.schema().fields().iter().map(known).collect();
    let found = metadata.schema().fields().iter();
    let remarks = found.zip(&fields).map(|(found, field)| remark(found, field)).collect();
    let mut inferred = Inferred::new(Arc::new(Schema::new(fields)), options.to_vec());
    inferred.remarks = remarks;
    Ok(inferred)
}

/// Why a column is of texts, or has some inside, if its values are not.
fn remark(found: &Field, field: &Field) -> Option<String> {
    let (found, kind) = (found.data_type(), field.data_type());
    (found != kind).then(|| match kind {
        DataType::Utf8 => {
            format!("it is {found} in the file, which tables do not have{}", way_out(found))
        }
        _ => format!("it is {found} in the file: texts stand for what tables do not have"),
    })
}

/// A type, with texts in place of types that tables do not have.
fn known(kind: &DataType) -> DataType {
    let of_field = |field: &FieldRef| {
        let kind = known(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(kind))
    };
    match kind {
        kind if nearest(kind).is_some() => kind.clone(),
        DataType::List(element) => DataType::List(of_field(element)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(of_field).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(of_field(entries), *is_sorted),
        _ => DataType::Utf8,
    }
}

/// What a file says of itself, and how large it is.
fn metadata(path: &Path) -> Result<(ArrowReaderMetadata, u64)> {
    let open = || {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Ok((file, size))
    };
    let (file, size) = open().map_err(|error| failed("open", path, &error))?;
    let options = ArrowReaderOptions::default();
    let load = || ArrowReaderMetadata::load(&file, options).map_err(io::Error::other);
    Ok((guarded(path, load)?, size))
}

/// Runs `read` and turns a panic into an error: the library trusts what a damaged file says of itself in many places.
fn guarded<R>(path: &Path, read: impl FnOnce() -> io::Result<R>) -> Result<R> {
    let read = catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::InvalidData, "the file is damaged")));
    read.map_err(|error| failed("read", path, &error))
}

/// How many rows make a portion. The rows of a row group have the average length that the file says of it; the longest
/// average counts.
fn batch_rows(file: &ParquetMetaData, mask: &ProjectionMask, request: &SourceRequest) -> usize {
    let fits = |group: &RowGroupMetaData| {
        let columns = group.columns().iter().enumerate();
        let columns = columns.filter(|(leaf, _)| mask.leaf_included(*leaf));
        let bytes: u128 = columns.map(|(_, column)| decoded_bytes(column)).sum();
        let count = u128::try_from(group.num_rows()).unwrap_or(0);
        usize::try_from(request.batch_bytes as u128 * count / bytes.max(1)).unwrap_or(usize::MAX)
    };
    let shortest = file.row_groups().iter().map(fits).min().unwrap_or(usize::MAX);
    shortest.min(request.batch_rows).max(1)
}

/// The bytes of a column's values. Dictionaries make the pages smaller; newer files say how long the text is without.
fn decoded_bytes(column: &ColumnChunkMetaData) -> u128 {
    let text = column.unencoded_byte_array_data_bytes().unwrap_or(0);
    u128::try_from(column.uncompressed_size().max(text)).unwrap_or(0)
}

/// What to do about a column that is not read.
fn way_out(kind: &DataType) -> &'static str {
    match kind {
        DataType::Interval(_) => {
            "; name the columns to read, as in SELECT a, b FROM the file, or CREATE TABLE t (a …, b …) and COPY t FROM it"
        }
        _ => "",
    }
}
