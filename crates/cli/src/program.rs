//! Text to be run: its name in messages, and where its relative paths count from.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A text of statements.
pub struct Program {
    /// What it is called in messages.
    pub name: String,
    pub text: String,
    /// The folder that its relative paths count from.
    pub base: PathBuf,
}

impl Program {
    /// What a file holds; its paths count from the file's folder.
    pub fn from_file(path: &Path) -> io::Result<Self> {
        let base = path.parent().unwrap_or(Path::new("")).to_path_buf();
        Ok(Self { name: path.display().to_string(), text: text(fs::read(path)?)?, base })
    }

    /// An argument; its paths count from where the program runs, as those of standard input do.
    pub fn from_argument(text: String) -> Self {
        Self { name: "<command>".into(), text, base: PathBuf::new() }
    }

    /// All of standard input.
    pub fn from_stdin() -> io::Result<Self> {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        Ok(Self::from_line(text(bytes)?))
    }

    /// Some lines of standard input.
    pub fn from_line(text: String) -> Self {
        Self { name: "<stdin>".into(), text, base: PathBuf::new() }
    }
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let start = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + start.iter().filter(|&&byte| byte == b'\n').count();
        io::Error::new(io::ErrorKind::InvalidData, format!("line {line} is not UTF-8"))
    })
}
