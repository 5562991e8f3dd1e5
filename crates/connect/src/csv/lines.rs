//! Texts that are one record each.

use std::path::Path;

use alluvium::{Portion, SourceRequest};
use arrow::error::ArrowError;

use super::columns::Columns;
use super::options::{Options, usual};
use super::record::{Reading, Record, Records};

/// Makes rows of texts that are one record each, with all columns in order and without a header.
pub struct LineReader<'a> {
    records: Records<&'a [u8]>,
    record: Record,
    rest: Record,
    columns: Columns,
    width: usize,
    padding: bool,
}

impl<'a> LineReader<'a> {
    /// The dialect is the usual one but for what is given.
    pub fn new(request: &SourceRequest, options: &Options) -> Result<Self, ArrowError> {
        let width = request.schema.fields().len();
        let fields: Vec<_> = (0..width).map(Some).collect();
        let dialect = options.given.or(usual(Path::new("")));
        Ok(Self {
            records: Records::new(&[][..], &dialect, 0)?,
            record: Record::default(),
            rest: Record::default(),
            columns: Columns::new(request, &fields, options),
            width,
            padding: options.padding,
        })
    }

    /// Takes in the record of a text as this row, the first of which is 0, or says why it is none.
    pub fn push(&mut self, text: &'a [u8], row: u64) -> Result<(), String> {
        self.records.go_on(text, (0, row));
        let read = |records: &mut Records<&'a [u8]>, record: &mut Record| {
            records.read(record).map_err(|error| error.to_string())
        };
        match read(&mut self.records, &mut self.record)? {
            Reading::Record => {}
            Reading::Malformed(problem) => return Err(problem.to_owned()),
            Reading::End => return Err("the message is empty".to_owned()),
        }
        if !matches!(read(&mut self.records, &mut self.rest)?, Reading::End) {
            return Err("the message has more than one record".to_owned());
        }
        let fields = self.record.len();
        if fields != self.width && !(self.padding && fields < self.width) {
            return Err(format!("there are {fields} fields instead of {}", self.width));
        }
        self.columns.push(&self.record);
        Ok(())
    }

    /// The rows taken in. The line of a refusal is the number of the row, and one.
    pub fn finish(&mut self, file: &Path) -> Result<Portion, ArrowError> {
        self.columns.finish(file)
    }
}
