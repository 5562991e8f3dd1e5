//! Rows that sources refused, as they are recorded.

use arrow::array::RecordBatch;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use rkyv::{Archive, Deserialize, Serialize};

use super::record::text_of;
use crate::catalog::ERRORS_SCHEMA;
use crate::error::Result;
use crate::source::{KeptRefusals, LeftOut, Refusal, Refusing};

/// The rows for a table that a source refused in a transaction.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedRows {
    pub(crate) table: String,
    pub(crate) source: String,
    /// The first rows: file, line and message.
    rows: Vec<(String, u64, String)>,
    /// How many others there are.
    left_out: u64,
}

impl RefusedRows {
    /// As they are recorded.
    pub(crate) fn new(table: &str, source: &str, refusing: &Refusing) -> Result<Self> {
        let row = |Refusal { file, line, message }: &Refusal| {
            Ok((text_of(file)?, *line, message.clone()))
        };
        let rows: Vec<_> = refusing.kept().iter().map(row).collect::<Result<_>>()?;
        let left_out = refusing.len() - rows.len() as u64;
        Ok(Self { table: table.to_owned(), source: source.to_owned(), rows, left_out })
    }

    /// The rows, to be refused again.
    pub(crate) fn refusing(self) -> Refusing {
        let rows = self.rows.into_iter();
        let rows = rows.map(|(file, line, message)| Refusal { file: file.into(), line, message });
        Refusing::of(rows.collect(), self.left_out)
    }
}

/// The refused rows of a table that are kept.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedRefusals {
    pub(crate) table: String,
    /// The rows of `alluvium.errors`, as an Arrow stream with a batch for each epoch.
    pub(crate) rows: Vec<u8>,
    /// How many are not kept, the source of the first of these, and its epoch.
    pub(crate) left_out: Option<(u64, String, u64)>,
}

impl SavedRefusals {
    /// As they are saved.
    pub(crate) fn new(kept: &KeptRefusals) -> Result<Self> {
        let mut stream = StreamWriter::try_new(Vec::new(), &ERRORS_SCHEMA)?;
        kept.batches.iter().try_for_each(|(_, rows)| stream.write(rows))?;
        let left_out = kept.left_out.as_ref();
        let left_out =
            left_out.map(|LeftOut { count, source, epoch }| (*count, source.clone(), *epoch));
        Ok(Self { table: kept.table.clone(), rows: stream.into_inner()?, left_out })
    }

    /// As they are kept.
    pub(crate) fn kept(self) -> Result<KeptRefusals> {
        let batches: Vec<RecordBatch> =
            StreamReader::try_new(&self.rows[..], None)?.collect::<std::result::Result<_, _>>()?;
        let left_out = self.left_out.map(|(count, source, epoch)| LeftOut { count, source, epoch });
        KeptRefusals::new(self.table, batches, left_out)
    }
}
