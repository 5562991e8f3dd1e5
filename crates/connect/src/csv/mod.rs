//! CSV files, compressed with gzip or not: `COPY t FROM 'f.csv.gz' (HEADERS true, NULL_VALUE 'NA')`.
//!
//! [`record`] splits a file into records, [`header`] finds the table's columns in them, and
//! [`columns`] makes typed arrays of their text.
//!
//! - With `HEADERS true` the first line names the columns, in any order. A name the table does not
//!   have is an error; a column of the table that the file does not have gets its DEFAULT. Without
//!   headers the fields are the table's columns, in order.
//! - NULL is an unquoted field that is the `NULL_VALUE`, or empty if none is given. An empty field of
//!   a column that is not of text is NULL in any case. A quoted field of text is never NULL.
//! - Values are written as in SQL text; a timestamp may also be written as ISO 8601 has it.
//! - A row is refused, and reading goes on, if it has too many or too few fields, a text that is not
//!   a value of its column's type, no value where there has to be one, bytes that are not UTF-8, or
//!   quotes that do not match.

mod columns;
mod header;
mod options;
mod record;

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use alluvium::{Error, Portion, Refusal, Result, Source, SourceReader, SourceRequest};

use crate::file;
use columns::Columns;
use options::Options;
use record::{Reading, Record, Records};

/// The number of records in a portion.
const PORTION: usize = 16 << 10;

/// Reads files whose names end with `.csv` or `.csv.gz`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Csv;

impl Source for Csv {
    fn name(&self) -> &str {
        "csv"
    }

    fn handles(&self, path: &Path) -> bool {
        let name = path.to_string_lossy().to_ascii_lowercase();
        name.ends_with(".csv") || name.ends_with(".csv.gz")
    }

    fn open(&self, request: &SourceRequest) -> Result<Box<dyn SourceReader>> {
        let options = Options::read(&request.options)?;
        let path = request.path.clone();
        let failed = |error| failed("open", &path, error);
        let input = file::open(&path).map_err(failed)?;
        let mut records = Records::new(input).map_err(failed)?;
        let mut record = Record::default();
        let width = request.schema.fields().len();
        let fields = if options.headers {
            match records.read(&mut record).map_err(failed)? {
                Reading::Record => header::find(request, &record)?,
                Reading::Malformed(problem) => {
                    return Err(Error::source(format!("{}:1: {problem}", path.display())));
                }
                Reading::End => {
                    let path = path.display();
                    return Err(Error::source(format!(
                        "\"{path}\" is empty: it has no header line"
                    )));
                }
            }
        } else {
            (0..width).map(Some).collect()
        };
        Ok(Box::new(CsvReader {
            width: if options.headers { record.len() } else { width },
            columns: Columns::new(request, &fields, options.null_value.as_deref()),
            records,
            record,
            path,
        }))
    }
}

/// Reads the rows of one file.
struct CsvReader {
    path: PathBuf,
    records: Records<Box<dyn BufRead + Send>>,
    record: Record,
    /// The number of fields a record must have.
    width: usize,
    columns: Columns,
}

impl SourceReader for CsvReader {
    fn next(&mut self) -> Result<Option<Portion>> {
        let mut refused = Vec::new();
        let mut count = 0;
        while count < PORTION {
            let reading = self.records.read(&mut self.record);
            let message = match reading.map_err(|error| failed("read", &self.path, error))? {
                Reading::End if count == 0 => return Ok(None),
                Reading::End => break,
                Reading::Malformed(problem) => problem.to_string(),
                Reading::Record if self.record.is_blank() && self.width != 1 => continue,
                Reading::Record if self.record.len() == self.width => {
                    self.columns.push(&self.record);
                    count += 1;
                    continue;
                }
                Reading::Record => {
                    format!("there are {} fields instead of {}", self.record.len(), self.width)
                }
            };
            refused.push(Refusal { file: self.path.clone(), line: self.record.line(), message });
            count += 1;
        }
        let rows = self
            .columns
            .finish(&self.path, &mut refused)
            .map_err(|error| failed("read", &self.path, io::Error::other(error)))?;
        refused.sort_by_key(|refusal| refusal.line);
        let refused_count = refused.len() as u64;
        Ok(Some(Portion { rows, refused, refused_count }))
    }
}

/// What went wrong with a file, and what to look at.
fn failed(verb: &str, path: &Path, error: io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::NotFound if path.is_absolute() => "; check the path",
        io::ErrorKind::NotFound => {
            "; a relative path counts from the SQL file's folder, or from where the program runs"
        }
        _ => "",
    };
    Error::source(format!("cannot {verb} \"{}\": {error}{hint}", path.display()))
}
