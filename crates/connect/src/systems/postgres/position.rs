//! Positions in the log of a database.

use std::fmt;

use alluvium::{Error, Result};

/// The version of the bytes.
const VERSION: u8 = 1;

/// How many bytes there are.
const LENGTH: usize = 10;

/// A place in the write-ahead log: the bytes before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Reads it as Postgres writes it.
    pub fn read(text: &str) -> Option<Self> {
        let (high, low) = text.split_once('/')?;
        let part = |text| u32::from_str_radix(text, 16).ok().map(u64::from);
        Some(Self(part(high)? << 32 | part(low)?))
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

/// How far a table was read.
///
/// Its bytes are a version, 0 or 1 for the two cases, and the place as an integer of 8 bytes, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The slot is ours, and the snapshot is not complete.
    Begun,
    /// All that was committed before a place in the log.
    At(Lsn),
}

impl Position {
    /// The bytes that say it.
    pub fn bytes(&self) -> Vec<u8> {
        let (phase, Lsn(lsn)) = match self {
            Self::Begun => (0, Lsn(0)),
            Self::At(lsn) => (1, *lsn),
        };
        let mut bytes = vec![VERSION, phase];
        bytes.extend_from_slice(&lsn.to_le_bytes());
        bytes
    }

    /// The position that bytes say.
    ///
    /// # Errors
    /// If they are none that a position has.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let wrong = |what: &str| {
            Error::source(format!("a position in a database's log is damaged: {what}"))
        };
        let bytes: &[u8; LENGTH] =
            bytes.try_into().map_err(|_| wrong(&format!("it has {} bytes", bytes.len())))?;
        let [version, phase, lsn @ ..] = *bytes;
        match (version, phase) {
            (VERSION, 0) => Ok(Self::Begun),
            (VERSION, 1) => Ok(Self::At(Lsn(u64::from_le_bytes(lsn)))),
            (VERSION, _) => Err(wrong("there is no such phase")),
            _ => Err(wrong(&format!("it is of version {version}, and {VERSION} is known"))),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begun => to.write_str("snapshot"),
            Self::At(lsn) => lsn.fmt(to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        for position in [Position::Begun, Position::At(Lsn(0)), Position::At(Lsn(u64::MAX))] {
            assert_eq!(Position::read(&position.bytes()).unwrap(), position);
        }
        let position = Position::At(Lsn(0x16_0B37_4848));
        assert_eq!(position.bytes(), [1, 1, 0x48, 0x48, 0x37, 0x0B, 0x16, 0, 0, 0]);
        assert_eq!(position.to_string(), "16/B374848");
        assert_eq!(Lsn::read("16/B374848"), Some(Lsn(0x16_0B37_4848)));
        assert_eq!(Lsn::read("16"), None);
    }

    #[test]
    fn other_bytes_are_refused_and_told() {
        let good = Position::Begun.bytes();
        let (mut version, mut phase) = (good.clone(), good.clone());
        (version[0], phase[1]) = (9, 7);
        let cases: [(&[u8], &str); 4] = [
            (&[], "it has 0 bytes"),
            (&good[1..], "it has 9 bytes"),
            (&version, "version 9"),
            (&phase, "no such phase"),
        ];
        for (bytes, expected) in cases {
            let error = Position::read(bytes).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
