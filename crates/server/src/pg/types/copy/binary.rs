//! Rows in binary.
//!
//! ```text
//! "PGCOPY\n\xff\r\n\0"   i32 flags   i32 length of an extension   the extension
//! i16 fields   [i32 length, −1 of NULL   bytes] each field                        each row
//! i16 −1
//! ```

use super::super::field::Field;
use super::super::rejected::Result;
use super::batch::BatchBuilder;
use super::options::{malformed, too_long};

/// The first bytes of data in binary.
pub(super) const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// How far the data have been read.
pub(super) struct Binary {
    stage: Stage,
    /// How many fields of the row, and bytes of it, are known to be there.
    fields: usize,
    scanned: usize,
    /// The most bytes of a row.
    most: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Signature,
    /// So many bytes of an extension come before the rows.
    Extension(usize),
    Rows,
    /// The end was read.
    Over,
}

impl Binary {
    /// Data that have not begun, with rows of at most so many bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { stage: Stage::Signature, fields: 0, scanned: 0, most }
    }

    /// Whether data may end here.
    ///
    /// # Errors
    ///
    /// If they do not begin as they have to.
    pub(super) fn end(&self, rest: &[u8]) -> Result<()> {
        match self.stage {
            Stage::Signature => Err(malformed("COPY file signature not recognized")),
            Stage::Rows | Stage::Over if rest.is_empty() => Ok(()),
            _ => Err(malformed("unexpected EOF in COPY data")),
        }
    }

    /// Reads a row, or a part of the head or the end, and returns its bytes; `None` if it is incomplete.
    pub(super) fn next(
        &mut self,
        data: &[u8],
        row: u64,
        batch: &mut BatchBuilder,
    ) -> Result<Option<usize>> {
        match self.stage {
            Stage::Signature => self.signature(data),
            Stage::Extension(left) => {
                let skipped = left.min(data.len());
                let left = left - skipped;
                self.stage = if left == 0 { Stage::Rows } else { Stage::Extension(left) };
                Ok(Some(skipped).filter(|skipped| *skipped > 0 || left == 0))
            }
            Stage::Rows => self.row(data, row, batch),
            Stage::Over if data.is_empty() => Ok(None),
            Stage::Over => Err(malformed("received copy data after EOF marker")),
        }
    }

    fn signature(&mut self, data: &[u8]) -> Result<Option<usize>> {
        let known = SIGNATURE.len().min(data.len());
        if data[..known] != SIGNATURE[..known] {
            return Err(malformed("COPY file signature not recognized"));
        }
        let whole = SIGNATURE.len() + 8;
        let (Some(flags), Some(extension)) =
            (long(data, SIGNATURE.len()), long(data, SIGNATURE.len() + 4))
        else {
            return Ok(None);
        };
        if flags & (1 << 16) != 0 {
            return Err(malformed("invalid COPY file header (WITH OIDS)"));
        }
        if flags >> 16 != 0 {
            return Err(malformed("unrecognized critical flags in COPY file header"));
        }
        let Ok(extension) = usize::try_from(extension) else {
            return Err(malformed("invalid COPY file header (missing length)"));
        };
        self.stage = Stage::Extension(extension);
        Ok(Some(whole))
    }

    fn row(&mut self, data: &[u8], row: u64, batch: &mut BatchBuilder) -> Result<Option<usize>> {
        let Some(count) = data.first_chunk().map(|bytes| i16::from_be_bytes(*bytes)) else {
            return Ok(None);
        };
        if count == -1 {
            self.stage = Stage::Over;
            return Ok(Some(2));
        }
        let columns = batch.names().len();
        if usize::try_from(count) != Ok(columns) {
            let message = format!("row field count is {count}, expected {columns}");
            return Err(malformed(message).at(row, None));
        }
        self.scanned = self.scanned.max(2);
        while self.fields < columns {
            let Some(length) = long(data, self.scanned) else { return Ok(None) };
            if length < -1 {
                return Err(malformed("invalid field size").at(row, None));
            }
            let end = self.scanned + 4 + usize::try_from(length).unwrap_or(0);
            if end > self.most {
                return Err(too_long(self.most, row));
            }
            if end > data.len() {
                return Ok(None);
            }
            self.fields += 1;
            self.scanned = end;
        }
        let mut place = 2;
        for _ in 0..columns {
            let length = long(data, place).and_then(|length| usize::try_from(length).ok());
            let begin = place + 4;
            place = begin + length.unwrap_or(0);
            batch.append(row, length.map(|_| Field::binary(&data[begin..place])))?;
        }
        batch.end_row(row)?;
        (self.fields, self.scanned) = (0, 0);
        Ok(Some(place))
    }
}

/// The integer at a place.
fn long(data: &[u8], place: usize) -> Option<i32> {
    let bytes = data.get(place..)?.first_chunk()?;
    Some(i32::from_be_bytes(*bytes))
}
