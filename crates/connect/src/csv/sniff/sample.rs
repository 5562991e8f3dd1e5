//! The first bytes of a file.

use std::io::{self, BufRead, Read};
use std::path::Path;

use crate::csv::options::Options;
use crate::input;

/// How many bytes are looked at.
const BYTES: u64 = 256 << 10;

/// The first bytes of a file, after its byte order mark and the lines to skip.
pub struct Sample {
    pub text: Vec<u8>,
    /// Whether they are all bytes of the file.
    pub is_whole: bool,
}

impl Sample {
    /// Reads it. A pipe, whose bytes can be read only once, has none.
    pub fn read(path: &Path, options: &Options) -> io::Result<Option<Self>> {
        let input = input::open(path, options.compression, None)?;
        if !input.lasts {
            return Ok(None);
        }
        let mut text = Vec::new();
        let mut bytes = input.bytes;
        // What cannot be read fails when rows are.
        let read = (&mut bytes).take(BYTES).read_to_end(&mut text);
        let is_whole = read.is_ok() && bytes.fill_buf().is_ok_and(<[u8]>::is_empty);
        Ok(Some(Self { text, is_whole }))
    }

    /// The delimiter that a first line `sep=;` names, as Excel has it.
    pub fn named_delimiter(&self) -> Option<u8> {
        let text = self.text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&self.text);
        let line = text.split(|byte| matches!(byte, b'\n' | b'\r')).next()?;
        separator(line)
    }

    /// Whether a byte occurs.
    pub fn has(&self, byte: u8) -> bool {
        self.text.contains(&byte)
    }

    /// Whether a line begins with a byte.
    pub fn has_line_of(&self, byte: u8) -> bool {
        self.text
            .split(|byte| matches!(byte, b'\n' | b'\r'))
            .any(|line| line.first() == Some(&byte))
    }

    /// Whether a CR stands alone.
    pub fn has_lone_return(&self) -> bool {
        let followed = self.text.windows(2).any(|pair| pair[0] == b'\r' && pair[1] != b'\n');
        followed || self.is_whole && self.text.last() == Some(&b'\r')
    }
}

/// The delimiter that a line `sep=;` names.
pub fn separator(line: &[u8]) -> Option<u8> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    match line {
        [s, e, p, b'=', byte] if [*s, *e, *p].eq_ignore_ascii_case(b"sep") => {
            (byte.is_ascii() && !byte.is_ascii_alphanumeric()).then_some(*byte)
        }
        _ => None,
    }
}
