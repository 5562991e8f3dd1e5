//! Portions of inputs, which are recorded by where they end.

use rkyv::{Archive, Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::source::{Portion, SourcePosition};

/// An input of a table: the table's name, and how many of its inputs come before.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rkyv(derive(PartialEq, Eq, PartialOrd, Ord))]
pub(crate) struct InputName {
    pub(crate) table: String,
    pub(crate) number: u32,
}

/// A position in an input.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedPosition {
    bytes: Vec<u8>,
    text: String,
}

impl SavedPosition {
    /// As it is recorded.
    pub(crate) fn new(position: &SourcePosition) -> Self {
        Self { bytes: position.bytes().to_vec(), text: position.text().to_owned() }
    }

    /// As sources know it.
    pub(crate) fn position(&self) -> SourcePosition {
        SourcePosition::new(self.bytes.clone(), self.text.clone())
    }
}

/// A portion of an input that a transaction brings in.
#[derive(Clone, Debug)]
pub(crate) enum EnteredPortion {
    /// It is recorded by its position alone, from which it can be read again.
    ReadAgain(ReadPortion),
    /// It is recorded with its rows, and ends here.
    Recorded(InputName, SavedPosition),
}

impl EnteredPortion {
    /// Its input, and where it ends.
    pub(crate) fn end(&self) -> (&InputName, &SavedPosition) {
        match self {
            Self::ReadAgain(portion) => (&portion.input, &portion.end),
            Self::Recorded(input, end) => (input, end),
        }
    }
}

/// A portion of an input that can be read again.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadPortion {
    pub(crate) input: InputName,
    /// How many rows it has.
    pub(crate) rows: u64,
    /// How many rows of it were refused.
    pub(crate) refused: u64,
    /// How many bytes were read for it.
    pub(crate) bytes: u64,
    /// Where it ends.
    pub(crate) end: SavedPosition,
}

impl ReadPortion {
    /// A portion that ends at a position.
    pub(crate) fn new(input: InputName, portion: &Portion, end: &SourcePosition) -> Self {
        Self {
            input,
            rows: portion.rows.num_rows() as u64,
            refused: portion.refused.len() as u64,
            bytes: portion.bytes,
            end: SavedPosition::new(end),
        }
    }

    /// How many rows there are, with those that were refused.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.rows + self.refused).unwrap_or(usize::MAX)
    }

    /// Fails if a portion that was read again is not this one.
    pub(crate) fn check(&self, again: &Self) -> Result<()> {
        let Self { rows, refused, end, .. } = self;
        if (rows, refused, end) == (&again.rows, &again.refused, &again.end) {
            return Ok(());
        }
        let what = |portion: &Self| {
            let Self { rows, refused, end, .. } = portion;
            format!("{rows} rows and {refused} refused ones up to {}", end.position())
        };
        Err(Error::source(format!(
            "what was read is not there as it was: {} were read before, and now {}; files may only grow, and topics \
             keep messages, until a checkpoint was taken behind what was read of them",
            what(self),
            what(again)
        )))
    }
}
