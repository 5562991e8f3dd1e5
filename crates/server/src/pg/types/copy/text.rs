//! The fields of text: apart by a delimiter, with escapes that begin with a backslash.

use super::super::rejected::Result;
use super::fields::{Fields, Notation, Raw};

/// The notation of text.
pub(super) struct Text {
    pub(super) null: Vec<u8>,
}

impl Notation for Text {
    fn field<'a>(&self, fields: &mut Fields<'a>, space: &mut Vec<u8>) -> Result<Raw<'a>> {
        let rest = fields.rest.unwrap_or_default();
        let mut end = 0;
        let mut has_escapes = false;
        while let Some(byte) = rest.get(end) {
            if *byte == fields.delimiter {
                break;
            }
            let is_escape = *byte == b'\\';
            has_escapes |= is_escape;
            end += if is_escape { 2 } else { 1 };
        }
        let field = fields.take(end.min(rest.len()));
        if field == self.null {
            return Ok(Raw::Null);
        }
        if !has_escapes {
            return Ok(Raw::Same(field));
        }
        space.clear();
        unescape(field, space);
        Ok(Raw::Unescaped)
    }
}

/// Writes the value of a field.
fn unescape(field: &[u8], out: &mut Vec<u8>) {
    let mut rest = field;
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        // A backslash before nothing is nothing.
        let [letter, after @ ..] = rest else { return };
        rest = after;
        let byte = match letter {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            b'0'..=b'7' => {
                let mut value = letter - b'0';
                for _ in 0..2 {
                    let [digit @ b'0'..=b'7', after @ ..] = rest else { break };
                    value = value << 3 | (digit - b'0');
                    rest = after;
                }
                value
            }
            b'x' => match hexadecimal(&mut rest) {
                Some(first) => hexadecimal(&mut rest).map_or(first, |second| first << 4 | second),
                None => b'x',
            },
            other => *other,
        };
        out.push(byte);
    }
}

fn hexadecimal(rest: &mut &[u8]) -> Option<u8> {
    let (first, after) = rest.split_first()?;
    let digit = char::from(*first).to_digit(16)?;
    *rest = after;
    Some(digit as u8)
}
