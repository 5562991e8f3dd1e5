//! Statements that take their parameters and give their rows as Arrow, for clients that have Arrow themselves.
//!
//! Such a statement is parsed with one parameter of the type [`PARAMETERS`], whatever parameters its text has. Its values are a stream of Arrow's
//! IPC format: a column for each parameter of the text, `$1` first, and a row for each time that the statement runs. Its rows have one column
//! of type `bytea`. Each value of that is a stream with some of the rows; the first has the columns and no rows.
//!
//! Parameters have the types of their values, and rows those of the engine: nothing is another type on the way.

use std::panic::catch_unwind;

use alluvium::{Outcome, Session, Value};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use arrow::ipc::{Message, root_as_message};
use bytes::{BufMut, Bytes, BytesMut};

use super::failure::{Failure, code};
use super::results::STEP;

/// The OID by which a client says that a statement is one of these. No type of the catalog has it.
pub(super) const PARAMETERS: u32 = 0xa110_0001;

/// The kind of a message that is a row.
const DATA_ROW: u8 = b'D';
/// How many rows, and about how many bytes of them, a message has.
const MOST_ROWS: usize = 8_192;
const MOST_BYTES: usize = 1 << 20;
/// What each message of a stream begins with, before its length.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// The column that clients are told of.
pub(super) fn described() -> Schema {
    Schema::new(vec![Field::new("arrow", DataType::Binary, false)])
}

/// Writes rows as messages `DataRow` with one field, which is a stream.
pub(super) struct ArrowEncoder {
    schema: SchemaRef,
    /// Whether the message with the columns was written.
    has_begun: bool,
}

impl ArrowEncoder {
    /// An encoder of rows with these columns.
    pub(super) fn new(schema: SchemaRef) -> Self {
        Self { schema, has_begun: false }
    }

    /// Writes the message with the columns, before others.
    pub(super) fn begin(&mut self, out: &mut BytesMut) -> Result<(), Failure> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        self.put(None, out)
    }

    /// Writes rows.
    pub(super) fn encode(&mut self, rows: &RecordBatch, out: &mut BytesMut) -> Result<(), Failure> {
        self.begin(out)?;
        self.put(Some(rows), out)
    }

    fn put(&self, rows: Option<&RecordBatch>, out: &mut BytesMut) -> Result<(), Failure> {
        let stream = self.stream(rows).map_err(|error| alluvium::Error::from(error).into());
        let stream = stream.map_err(|error: Failure| error.about("the rows cannot be sent"))?;
        let length = i32::try_from(stream.len()).ok().filter(|length| *length < i32::MAX - 16);
        let length = length.ok_or_else(|| {
            Failure::new(code::TOO_MUCH, "a row is larger than a message, which has 2 GiB at most")
        })?;
        out.put_u8(DATA_ROW);
        out.put_i32(4 + 2 + 4 + length);
        out.put_i16(1);
        out.put_i32(length);
        out.put_slice(&stream);
        Ok(())
    }

    fn stream(&self, rows: Option<&RecordBatch>) -> Result<Vec<u8>, ArrowError> {
        let mut writer = StreamWriter::try_new(Vec::new(), &self.schema)?;
        if let Some(rows) = rows {
            writer.write(rows)?;
        }
        writer.finish()?;
        writer.into_inner()
    }
}

/// How many rows of a batch become a message.
pub(super) fn rows_of_message(batch: &RecordBatch) -> usize {
    let bytes: usize = batch.columns().iter().map(|column| column.get_array_memory_size()).sum();
    let of_bytes = batch.num_rows().saturating_mul(MOST_BYTES) / bytes.max(1);
    of_bytes.clamp(STEP, MOST_ROWS)
}

/// Runs a statement for each row of its parameters, of which there is one without any. Of several rows each is a transaction of its own, unless one is open.
pub(super) fn run(
    session: &mut Session,
    sql: &str,
    parameters: Option<&Bytes>,
) -> Result<Outcome, Failure> {
    session.set_typed_parameters(true);
    let ran = run_typed(session, sql, parameters);
    session.set_typed_parameters(false);
    ran
}

fn run_typed(
    session: &mut Session,
    sql: &str,
    parameters: Option<&Bytes>,
) -> Result<Outcome, Failure> {
    let Some(parameters) = parameters else {
        return session.execute_with(sql, &[]).map_err(|error| Failure::of(&error, sql));
    };
    let batches = read(parameters)?;
    let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)));
    let (mut changed, mut last) = (0, None);
    for (number, (batch, row)) in rows.enumerate() {
        let ran = run_row(session, sql, batch, row);
        let ran =
            ran.map_err(|failure| if count == 1 { failure } else { failure.of_row(number) })?;
        match &ran {
            Outcome::Changed { rows, .. } => changed += rows,
            Outcome::Rows(_) if count > 1 => {
                let message = "a statement that returns rows runs for one row of parameters: send them one by one";
                return Err(Failure::new("0A000", message));
            }
            _ => {}
        }
        last = Some(ran);
    }
    let mut last = last.ok_or_else(|| malformed("they have no row"))?;
    if let Outcome::Changed { rows, .. } = &mut last {
        *rows = changed;
    }
    Ok(last)
}

fn run_row(
    session: &mut Session,
    sql: &str,
    batch: &RecordBatch,
    row: usize,
) -> Result<Outcome, Failure> {
    let values = batch.columns().iter().map(|column| Value::from_array(column, row));
    let values: alluvium::Result<Vec<Value>> = values.collect();
    values
        .and_then(|values| session.execute_with(sql, &values))
        .map_err(|error| Failure::of(&error, sql))
}

/// The rows of a stream. Of a schema that is none the reader of the library panics.
fn read(stream: &[u8]) -> Result<Vec<RecordBatch>, Failure> {
    check(stream)?;
    let read = || StreamReader::try_new(stream, None)?.collect::<Result<Vec<_>, ArrowError>>();
    let read = catch_unwind(read).map_err(|_| malformed("its schema is none"))?;
    read.map_err(malformed)
}

/// Fails unless the messages of a stream, and the columns in them, are as long as they say. The reader of the library takes lengths as they come.
fn check(mut stream: &[u8]) -> Result<(), Failure> {
    while !stream.is_empty() {
        let mut length = take(&mut stream, 4)?;
        if length == CONTINUATION {
            length = take(&mut stream, 4)?;
        }
        let length = u32::from_le_bytes(length.try_into().map_err(malformed)?);
        if length == 0 {
            return Ok(());
        }
        let message = take(&mut stream, length.into())?;
        let message = root_as_message(message).map_err(malformed)?;
        let body = take(&mut stream, u64::try_from(message.bodyLength()).map_err(malformed)?)?;
        check_columns(&message, body)?;
    }
    Ok(())
}

/// Takes bytes from the beginning.
fn take<'a>(stream: &mut &'a [u8], count: u64) -> Result<&'a [u8], Failure> {
    let split = usize::try_from(count).ok().and_then(|count| stream.split_at_checked(count));
    let (taken, rest) =
        split.ok_or_else(|| malformed("a message says that it is longer than it is"))?;
    *stream = rest;
    Ok(taken)
}

fn check_columns(message: &Message<'_>, body: &[u8]) -> Result<(), Failure> {
    let dictionary = message.header_as_dictionary_batch().and_then(|of| of.data());
    let Some(rows) = message.header_as_record_batch().or(dictionary) else { return Ok(()) };
    if rows.compression().is_some() {
        return Err(malformed("they are compressed"));
    }
    // Columns of NULL have rows without a byte.
    let is_length = |length: i64| (0..=i64::from(i32::MAX)).contains(&length);
    let nodes = rows.nodes().into_iter().flatten();
    let are_lengths = nodes
        .map(|node| (node.length(), node.null_count()))
        .all(|(rows, nulls)| is_length(rows) && (0..=rows).contains(&nulls));
    let within = |first: i64, length: i64| {
        let first = usize::try_from(first).ok()?;
        body.get(first..first.checked_add(usize::try_from(length).ok()?)?)
    };
    let mut buffers = rows.buffers().into_iter().flatten();
    match is_length(rows.length())
        && are_lengths
        && buffers.all(|buffer| within(buffer.offset(), buffer.length()).is_some())
    {
        true => Ok(()),
        false => Err(malformed("a column is longer than its message")),
    }
}

fn malformed(error: impl std::fmt::Display) -> Failure {
    Failure::new(
        code::PROTOCOL,
        format!("the parameters are no stream of Arrow with values: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn stream() -> Vec<u8> {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..100).map(|_| "text")));
        let rows = RecordBatch::try_from_iter([("1", numbers), ("2", texts)]).expect("rows");
        ArrowEncoder::new(rows.schema()).stream(Some(&rows)).expect("a stream")
    }

    #[test]
    fn whatever_is_changed_in_a_stream_is_an_error_or_other_values() {
        let stream = stream();
        assert_eq!(read(&stream).expect("rows")[0].num_rows(), 100);
        for end in 0..stream.len() {
            let _ = read(&stream[..end]);
        }
        let mut refused = 0;
        for at in 0..stream.len() {
            for value in [0_u8, 1, 0x40, 0x7f, 0x80, 0xff] {
                let mut changed = stream.clone();
                changed[at] = value;
                refused += usize::from(read(&changed).is_err());
            }
        }
        assert!(refused > 100);
    }

    #[test]
    fn columns_beyond_the_end_are_refused() {
        let stream = stream();
        for at in 0..stream.len() - 8 {
            let mut changed = stream.clone();
            changed[at..at + 8].copy_from_slice(&(1_i64 << 46).to_le_bytes());
            let _ = read(&changed);
        }
        assert!(read(&stream[..stream.len() / 2]).is_err());
        assert!(read(b"").is_err());
    }

    #[test]
    fn a_message_has_fewer_rows_the_larger_they_are() {
        let wide: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..10_000).map(|_| "x".repeat(1_000))));
        let narrow: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10_000));
        let of =
            |column| rows_of_message(&RecordBatch::try_from_iter([("a", column)]).expect("rows"));
        assert_eq!(of(narrow), MOST_ROWS);
        assert!((STEP..2 * MOST_BYTES / 1_000).contains(&of(wide)));
    }
}
