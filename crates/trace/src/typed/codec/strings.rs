//! Strings and byte vectors.
//!
//! Before another part they are escaped: 0x00 becomes 0x00 0xFF, and 0x00 0x00 is the end. So the end sorts below every
//! byte that could follow instead.

use super::Codec;

/// The byte after a zero byte that belongs to the string.
const ESCAPED: u8 = 0xFF;

/// The byte after the zero byte that ends the string.
const END: u8 = 0;

impl Codec for Vec<u8> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        escape(self, bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Self {
        unescape(bytes)
    }

    #[inline]
    fn encode_last(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    #[inline]
    fn decode_last(bytes: &[u8]) -> Self {
        bytes.to_vec()
    }
}

impl Codec for String {
    fn encode(&self, bytes: &mut Vec<u8>) {
        escape(self.as_bytes(), bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Self {
        text(unescape(bytes))
    }

    #[inline]
    fn encode_last(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }

    #[inline]
    fn decode_last(bytes: &[u8]) -> Self {
        text(bytes.to_vec())
    }
}

/// Appends a string, escaped and with its end.
fn escape(string: &[u8], bytes: &mut Vec<u8>) {
    let mut pieces = string.split(|byte| *byte == 0);
    bytes.extend_from_slice(pieces.next().unwrap_or_default());
    for piece in pieces {
        bytes.extend_from_slice(&[0, ESCAPED]);
        bytes.extend_from_slice(piece);
    }
    bytes.extend_from_slice(&[0, END]);
}

/// Takes an escaped string from the front.
fn unescape(bytes: &mut &[u8]) -> Vec<u8> {
    let mut string = Vec::new();
    loop {
        let zero = bytes.iter().position(|byte| *byte == 0).expect("an encoded string has an end");
        let mark = bytes.get(zero + 1);
        string.extend_from_slice(&bytes[..zero]);
        *bytes = bytes.get(zero + 2..).expect("a zero byte in an encoded string is marked");
        if mark == Some(&END) {
            return string;
        }
        string.push(0);
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("an encoded string is UTF-8")
}
