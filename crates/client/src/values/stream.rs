//! Statements that take their parameters and give their rows as streams of Arrow's IPC format.

use std::error::Error as StdError;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use bytes::BytesMut;
use tokio_postgres::types::{IsNull, Kind, ToSql, Type, to_sql_checked};

use super::parameter::Parameter;
use crate::error::Result;

/// The OID of the type below.
const OID: u32 = 0xa110_0001;

/// The type of the one parameter by which a server knows such a statement.
pub(crate) fn parameters_type() -> Type {
    Type::new("arrow".to_owned(), OID, Kind::Simple, "alluvium".to_owned())
}

/// A stream that is the value of that parameter, NULL of a statement without parameters.
#[derive(Debug)]
pub(crate) struct Encoded(Option<Vec<u8>>);

impl Encoded {
    /// No values.
    pub(crate) const NONE: Self = Self(None);
}

/// The values of a statement that runs once.
pub(crate) fn write_values(values: &[Parameter]) -> Result<Encoded> {
    if values.is_empty() {
        return Ok(Encoded::NONE);
    }
    let (row, _) = Parameter::take_batch(&[values.to_vec()], 1)?;
    write_stream(&row)
}

/// Rows as a stream.
pub(crate) fn write_stream(rows: &RecordBatch) -> Result<Encoded> {
    let mut writer = StreamWriter::try_new(Vec::new(), rows.schema_ref())?;
    writer.write(rows)?;
    writer.finish()?;
    Ok(Encoded(Some(writer.into_inner()?)))
}

impl ToSql for Encoded {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let Some(bytes) = &self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        // The server describes it as bytes.
        true
    }

    to_sql_checked!();
}

/// The rows of a stream.
pub(crate) fn read_stream(stream: &[u8]) -> Result<RecordBatch> {
    let reader = StreamReader::try_new(stream, None)?;
    let schema = reader.schema();
    let mut batches = reader.collect::<Result<Vec<_>, _>>()?;
    match batches.len() {
        1 => Ok(batches.remove(0)),
        _ => Ok(concat_batches(&schema, &batches)?),
    }
}
