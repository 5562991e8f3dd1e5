//! Valid names of blobs: they are file names everywhere, and differ from those of our own files.

use crate::error::{Error, Result};

/// The most bytes a name can have.
const LONGEST: usize = 200;

pub(crate) fn is_valid(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=LONGEST).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(letter)
}

pub(crate) fn check(name: &str) -> Result<()> {
    if is_valid(name) { Ok(()) } else { Err(Error::InvalidName { name: name.to_owned() }) }
}
