//! CSV files, compressed with gzip or not.
//!
//! [`sniff`] detects the [`dialect`] of a file, [`record`] splits it into records, [`header`] finds the table's columns in
//! them, [`columns`] makes typed arrays of their text, as [`spelling`] has it, [`infer`] guesses types, [`text`] formats
//! rows, and [`write`](mod@write) writes files. [`boundaries`] finds blocks of records for several threads.
//!
//! - With `HEADERS true` the first line names the columns, in any order. A name the table does not
//!   have is an error; a column of the table that the file does not have gets its DEFAULT. Without
//!   headers the fields are the table's columns, in order. If nothing is said, a first line of nothing but
//!   names of columns is a header.
//! - NULL is an unquoted field that is the `NULL_VALUE`, or empty if none is given. An empty field of
//!   a column that is not of text is NULL in any case. A quoted field of text is never NULL.
//! - Values are written as in SQL text, a timestamp as `2013-01-01 10:00:00`; bytes are `\x` and hexadecimal digits,
//!   lists, structs and maps JSON. A timestamp is also read as ISO 8601 has it.
//! - A row is refused, and reading continues, if it has too many or too few fields, a text that is not
//!   a value of its column's type, no value where there has to be one, bytes that are not UTF-8, or
//!   quotes that do not match.

mod boundaries;
mod columns;
mod dialect;
mod header;
mod infer;
#[cfg(feature = "kafka")]
mod lines;
mod options;
mod record;
mod sniff;
mod spelling;
mod text;
mod write;

use std::io;
use std::path::{Path, PathBuf};

use alluvium::{
    Error, Inferred, Portion, Refusal, Result, Sink, SinkRequest, SinkWriter, Source, SourceFiles,
    SourcePosition, SourceReader, SourceRequest,
};

use crate::blocks::{self, Block, BlockReader, Blocks, Decode};
use crate::files::{self, File, Files};
use crate::input::{self, Counter, Text, failed};
use crate::options::Compression;
use crate::target::Target;
use boundaries::RecordEnds;
use columns::Columns;
use dialect::Dialect;
use header::{Layout, Names};
use record::{Reading, Record, Records};

#[cfg(feature = "kafka")]
pub(crate) use lines::LineReader;
pub(crate) use options::Options;
pub use text::CsvText;
#[cfg(feature = "postgres")]
pub(crate) use text::texts;

/// Files whose names end with `.csv`, `.tsv`, `.tab`, `.psv` or `.txt`, or are said to be CSV.
#[derive(Clone, Copy, Debug, Default)]
pub struct Csv;

impl Csv {
    const NAME: &str = "csv";
    const EXTENSIONS: &[&str] = &[".csv", ".tsv", ".tab", ".psv", ".txt"];
}

impl Source for Csv {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn handles(&self, path: &Path) -> bool {
        input::ends_with(path, Self::EXTENSIONS)
    }

    fn check(&self, option: &str, value: &str) -> Result<()> {
        files::check(option, value, || Options::default().set(option, value))
    }

    fn follows(&self) -> bool {
        true
    }

    fn infer(&self, path: &Path, options: &[(String, String)]) -> Result<Inferred> {
        self.infer_all(&[path.to_owned()], Path::new(""), options)
    }

    fn infer_all(
        &self,
        paths: &[PathBuf],
        base: &Path,
        options: &[(String, String)],
    ) -> Result<Inferred> {
        files::infer(paths, base, options, &infer::infer)
    }

    fn files(&self, paths: &[PathBuf], request: &SourceRequest) -> Result<Option<SourceFiles>> {
        files::list(paths, request)
    }

    fn open(&self, request: &SourceRequest) -> Result<Box<dyn SourceReader>> {
        let open = |file: File<'_>| -> Result<Box<dyn SourceReader>> {
            let File { path, request, passed } = file;
            let options = Options { passed, ..Options::read(&request.options)? };
            CsvReader::open(path, request, &options)?.in_blocks(request, options)
        };
        Ok(Box::new(Files::open(request, open)?))
    }
}

impl Sink for Csv {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn handles(&self, path: &Path) -> bool {
        input::ends_with(path, Self::EXTENSIONS)
    }

    fn check(&self, option: &str, value: &str) -> Result<()> {
        Options::default().set(option, value)
    }

    fn resumes(&self, request: &SinkRequest) -> bool {
        let compression = Options::read(&request.options).ok().and_then(|read| read.compression);
        let path = &request.path;
        Target::resumes(path, compression.unwrap_or(Compression::of(path)))
    }

    fn create(&self, request: &SinkRequest) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(write::CsvWriter::create(request, &Options::read(&request.options)?)?))
    }
}

/// Reads the rows of one file.
struct CsvReader {
    path: PathBuf,
    records: Records<Text>,
    counter: Counter,
    lasts: bool,
    record: Record,
    /// The first record, if it was read as a possible header and is none.
    first: Option<Reading>,
    /// The number of fields a record must have.
    width: usize,
    /// Whether it may have fewer.
    padding: bool,
    /// The field that holds each column of the table.
    fields: Names,
    columns: Columns,
    /// The number of records in a portion, and the bytes of their text.
    batch_rows: usize,
    batch_bytes: usize,
}

impl CsvReader {
    fn open(path: &Path, request: &SourceRequest, options: &Options) -> Result<Self> {
        let failed = |error| failed("open", path, &error);
        let live = request.live.as_ref();
        let mut input = input::open(path, options.compression, live).map_err(failed)?;
        let follows = input.lasts && live.is_some_and(|live| live.follow);
        let given = options.schema();
        let known = sniff::Columns::Known(given.as_ref().unwrap_or(&request.schema));
        let dialect = match input.lasts && !follows {
            true => dialect(path, options, known)?,
            false => options.given.or(options::usual(path)),
        };
        let mut records = Records::new(input.bytes, &dialect, options.skip).map_err(failed)?;
        let mut behind_header = records.place();
        let mut record = Record::default();
        let first = match options.headers {
            Some(false) => None,
            _ => Some(records.read(&mut record).map_err(failed)?),
        };
        let names = first.as_ref().map(|first| match first {
            Reading::Record => Ok(header::written(&record)),
            Reading::Malformed(problem) => Err((*problem).to_owned()),
            Reading::End => Err("the file is empty: it has no header line".to_owned()),
        });
        let Layout { fields, width, has_header } = Layout::new(&request.schema, options, names)
            .map_err(|problem| Error::source(format!("{}:1: {problem}", path.display())))?;
        let fields = header::check(request, path, fields)?;
        let mut first_record = first.filter(|_| !has_header);
        if has_header {
            behind_header = records.place();
        }
        let start = request.file_start()?.map(|start| (start.offset, start.lines));
        if let Some(start) = start.or(follows.then_some(behind_header)) {
            input = input::open_at(path, options.compression, start.0, live).map_err(failed)?;
            records.go_on(input.bytes, start);
            first_record = None;
        }
        Ok(Self {
            path: path.to_owned(),
            records,
            counter: input.counter,
            lasts: input.lasts,
            record,
            first: first_record,
            width,
            padding: options.padding,
            columns: Columns::new(request, &fields, options),
            fields,
            batch_rows: request.batch_rows,
            batch_bytes: request.batch_bytes,
        })
    }
}

impl CsvReader {
    /// The same rows, of which several threads decode parts at once if so many are asked for.
    fn in_blocks(
        mut self,
        request: &SourceRequest,
        options: Options,
    ) -> Result<Box<dyn SourceReader>> {
        if request.threads <= 1 || request.live.is_some() {
            return Ok(Box::new(self));
        }
        // A first record that is no header has been read.
        let batch_rows = std::mem::replace(&mut self.batch_rows, 1);
        let ready = if self.first.is_some() { self.next()? } else { None };
        let Self { path, records, counter, width, fields, .. } = self;
        let (dialect, lines) = (records.dialect(), records.place().1);
        let bytes = blocks::bytes(request);
        let blocks = Blocks::new(records.into_input(), RecordEnds::new(dialect), bytes, lines);
        let (request, file, threads) = (request.clone(), path.clone(), request.threads);
        let make = move || {
            let path = path.clone();
            let failed = |error| failed("read", &path, &error);
            let records = Records::new(Text::of(Vec::new()), &dialect, 0).map_err(failed)?;
            Ok(Self {
                records,
                counter: Counter::default(),
                lasts: false,
                record: Record::default(),
                first: None,
                width,
                padding: options.padding,
                columns: Columns::new(&request, &fields, &options),
                fields: Vec::new(),
                batch_rows,
                batch_bytes: request.batch_bytes,
                path,
            })
        };
        Ok(Box::new(BlockReader::new(file, blocks, counter, threads, ready, make)?))
    }
}

impl Decode for CsvReader {
    fn decode(&mut self, block: Block, give: &mut dyn FnMut(Portion) -> bool) -> Result<()> {
        self.records.go_on(Text::of(block.text), (0, block.lines));
        while let Some(portion) = self.next()? {
            if !give(portion) {
                break;
            }
        }
        Ok(())
    }
}

/// The dialect of a file that can be read again, as far as it is not given.
fn dialect(path: &Path, options: &Options, columns: sniff::Columns<'_>) -> Result<Dialect> {
    let usual = options::usual(path);
    // As where it was detected already.
    if options.given.is_whole() {
        return Ok(options.given.or(usual));
    }
    let sample =
        sniff::Sample::read(path, options).map_err(|error| failed("open", path, &error))?;
    let Some(sample) = sample else { return Ok(options.given.or(usual)) };
    sniff::dialect(&sample, options, usual, columns).map_err(|problem| {
        Error::source(format!("cannot tell how \"{}\" is written: {problem}", path.display()))
    })
}

impl SourceReader for CsvReader {
    fn next(&mut self) -> Result<Option<Portion>> {
        let mut refused = Vec::new();
        let (mut count, mut bytes) = (0, 0);
        self.records.input().begin_portion();
        while count == 0 || count < self.batch_rows && bytes < self.batch_bytes {
            let failed = |error| failed("read", &self.path, &error);
            if count > 0 && !self.records.input().goes_on().map_err(failed)? {
                break;
            }
            let reading = match self.first.take() {
                Some(reading) => reading,
                None => self.records.read(&mut self.record).map_err(failed)?,
            };
            let message = match reading {
                Reading::End if count == 0 => return Ok(None),
                Reading::End => break,
                Reading::Malformed(problem) => problem.to_string(),
                Reading::Record if self.record.is_blank() && self.width != 1 => continue,
                Reading::Record
                    if self.record.len() == self.width
                        || self.padding && self.record.len() < self.width =>
                {
                    self.columns.push(&self.record);
                    bytes += self.record.bytes();
                    count += 1;
                    continue;
                }
                Reading::Record => {
                    format!("there are {} fields instead of {}", self.record.len(), self.width)
                }
            };
            refused.push(Refusal::new(&self.path, self.record.line(), message));
            count += 1;
        }
        let mut portion = self
            .columns
            .finish(&self.path)
            .map_err(|error| failed("read", &self.path, &io::Error::other(error)))?;
        portion.refused.extend(refused);
        portion.refused.sort_by_key(|refusal| refusal.line);
        portion.bytes = self.counter.take();
        Ok(Some(portion))
    }

    fn position(&self) -> Option<SourcePosition> {
        let (offset, lines) = self.records.place();
        self.lasts.then(|| SourcePosition::in_file(&self.path, offset, lines))
    }
}
