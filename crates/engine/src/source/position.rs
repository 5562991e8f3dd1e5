//! Places in sources.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// How many bytes of the position in a file come before its name.
const NUMBERS: usize = 16;

/// A place between two rows of a source, from where it can be read again.
///
/// The source writes its bytes, and it alone knows what they mean: an engine keeps them, and compares them. A source that
/// changes what it writes has to read what it wrote before, as state directories have positions of earlier versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePosition {
    bytes: Vec<u8>,
    text: String,
}

impl SourcePosition {
    /// A place that the source writes so, and for people as `text`.
    pub fn new(bytes: impl Into<Vec<u8>>, text: impl Into<String>) -> Self {
        Self { bytes: bytes.into(), text: text.into() }
    }

    /// A place in a file.
    pub fn in_file(file: &Path, offset: u64, lines: u64) -> Self {
        let mut bytes = Vec::with_capacity(NUMBERS + file.as_os_str().len());
        bytes.extend_from_slice(&offset.to_le_bytes());
        bytes.extend_from_slice(&lines.to_le_bytes());
        bytes.extend_from_slice(file.as_os_str().as_encoded_bytes());
        Self { bytes, text: format!("{}:{lines}", file.display()) }
    }

    /// What the source wrote.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The place for people.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.text)
    }
}

/// A place in one of the files that a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilePosition {
    /// The file.
    pub file: PathBuf,
    /// How much of it comes before the place: bytes of text, decompressed, or rows of any other format.
    pub offset: u64,
    /// How many lines of text that is, or how many rows.
    pub lines: u64,
}

impl FilePosition {
    /// Reads a place that is [in a file](SourcePosition::in_file).
    ///
    /// # Errors
    /// If the place is not in a file, or the file's name is not UTF-8.
    pub fn of(position: &SourcePosition) -> Result<Self> {
        let parts = position.bytes.split_at_checked(NUMBERS).and_then(|(numbers, file)| {
            let (offset, lines) = numbers.split_first_chunk()?;
            Some((offset, lines.try_into().ok()?, std::str::from_utf8(file).ok()?))
        });
        let (offset, lines, file): (&[u8; 8], [u8; 8], &str) = parts.ok_or_else(|| {
            Error::source(format!("the position \"{position}\" is not one in a file"))
        })?;
        Ok(Self {
            file: file.into(),
            offset: u64::from_le_bytes(*offset),
            lines: u64::from_le_bytes(lines),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_file_is_read_as_it_was_written_and_nothing_else_is() {
        let position = SourcePosition::in_file(Path::new("/a b/t.csv"), u64::MAX, 7);
        assert_eq!(position.to_string(), "/a b/t.csv:7");
        let file = FilePosition::of(&position).unwrap();
        assert_eq!((file.offset, file.lines), (u64::MAX, 7));
        assert_eq!(file.file, Path::new("/a b/t.csv"));
        for bytes in [&[][..], &[0; 15], &[0xFF; 17]] {
            let error = FilePosition::of(&SourcePosition::new(bytes, "partition 3")).unwrap_err();
            assert!(error.to_string().contains("\"partition 3\""), "{error}");
        }
    }
}
