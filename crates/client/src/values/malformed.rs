//! Bytes that are no value of their type.

use crate::error::{Error, Result};

/// The bytes of a value of a fixed size.
pub(super) fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| malformed())
}

/// A value of the server that is none of its type.
pub(super) fn malformed() -> Error {
    Error::value("the server has sent a value that is none of its type")
}
