//! Bytes as text: hexadecimal digits, or Postgres's older escapes.

use bytes::BytesMut;

use super::rejected::{Rejected, Result, code};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Writes bytes as `\x` and two digits each.
pub(super) fn put(bytes: &[u8], out: &mut BytesMut) -> Result<()> {
    if bytes.len() >= (i32::MAX as usize) / 2 {
        return Err(Rejected::too_large());
    }
    out.extend_from_slice(b"\\x");
    let start = out.len();
    out.resize(start + bytes.len() * 2, 0);
    for (pair, byte) in out[start..].chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    Ok(())
}

/// Reads bytes from their text.
pub(super) fn read(text: &[u8]) -> Result<Vec<u8>> {
    match text {
        [b'\\', b'x', digits @ ..] => hexadecimal(digits),
        escaped => unescape(escaped).ok_or_else(|| Rejected::text("bytea", text)),
    }
}

/// Pairs of digits, with blanks between them.
fn hexadecimal(digits: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    let mut rest = digits.iter();
    while let Some(first) = rest.next() {
        if matches!(first, b' ' | b'\n' | b'\t' | b'\r') {
            continue;
        }
        let Some(second) = rest.next() else {
            let message = "invalid hexadecimal data: odd number of digits";
            return Err(Rejected::new(code::PARAMETER, message));
        };
        bytes.push(digit(*first)? << 4 | digit(*second)?);
    }
    Ok(bytes)
}

fn digit(byte: u8) -> Result<u8> {
    match char::from(byte).to_digit(16) {
        Some(digit) => Ok(digit as u8),
        None => {
            let shown = char::from(byte).escape_default();
            Err(Rejected::new(code::PARAMETER, format!("invalid hexadecimal digit: \"{shown}\"")))
        }
    }
}

/// Bytes with `\\` for a backslash and `\ooo` for any byte.
fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return Some(bytes),
            [b'\\', b'\\', rest @ ..] => {
                bytes.push(b'\\');
                rest
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', rest @ ..] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest
            }
            [b'\\', ..] => return None,
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
        };
    }
}
