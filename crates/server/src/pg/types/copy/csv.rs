//! The fields of CSV: apart by a delimiter, in quotes or not, with escapes within quotes.

use super::super::rejected::Result;
use super::fields::{Fields, Notation, Raw};
use super::options::malformed;

/// The notation of CSV.
pub(super) struct Csv {
    pub(super) null: Vec<u8>,
    pub(super) quote: u8,
    pub(super) escape: u8,
}

impl Notation for Csv {
    fn field<'a>(&self, fields: &mut Fields<'a>, space: &mut Vec<u8>) -> Result<Raw<'a>> {
        let rest = fields.rest.unwrap_or_default();
        let is_end = |byte: &u8| *byte == fields.delimiter || *byte == self.quote;
        let end = rest.iter().position(is_end).unwrap_or(rest.len());
        if rest.get(end) != Some(&self.quote) {
            let field = fields.take(end);
            return Ok(if field == self.null { Raw::Null } else { Raw::Same(field) });
        }
        space.clear();
        space.extend_from_slice(&rest[..end]);
        let mut place = end;
        let mut is_quoted = false;
        while let Some(byte) = rest.get(place) {
            place += 1;
            if !is_quoted {
                if *byte == fields.delimiter {
                    place -= 1;
                    break;
                }
                if *byte == self.quote {
                    is_quoted = true;
                    continue;
                }
            } else {
                let next =
                    rest.get(place).filter(|next| **next == self.quote || **next == self.escape);
                if let Some(next) = next.filter(|_| *byte == self.escape) {
                    space.push(*next);
                    place += 1;
                    continue;
                }
                if *byte == self.quote {
                    is_quoted = false;
                    continue;
                }
            }
            space.push(*byte);
        }
        if is_quoted {
            return Err(malformed("unterminated CSV quoted field"));
        }
        fields.take(place);
        Ok(Raw::Unescaped)
    }
}
