//! Short texts, which are put together before they are written.

use bytes::BytesMut;

/// The most bytes of a text: an interval needs 65.
const MOST: usize = 96;

/// A text of digits, letters and signs. Bytes without room are left out.
pub(super) struct Line {
    bytes: [u8; MOST],
    length: usize,
}

impl Line {
    /// An empty text.
    pub(super) fn new() -> Self {
        Self { bytes: [b'0'; MOST], length: 0 }
    }

    /// Adds a byte.
    pub(super) fn byte(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    /// Adds bytes.
    pub(super) fn text(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.length..self.length + bytes.len()) {
            place.copy_from_slice(bytes);
            self.length += bytes.len();
        }
    }

    /// Adds a number with at least so many digits.
    pub(super) fn number(&mut self, value: u64, least: usize) {
        let digits = value.checked_ilog10().map_or(1, |last| last as usize + 1).max(least);
        let Some(places) = self.bytes.get_mut(self.length..self.length + digits) else { return };
        let mut rest = value;
        for place in places.iter_mut().rev() {
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.length += digits;
    }

    /// Adds a number with its sign.
    pub(super) fn signed(&mut self, value: i64) {
        if value < 0 {
            self.byte(b'-');
        }
        self.number(value.unsigned_abs(), 1);
    }

    /// Writes it.
    pub(super) fn put(&self, out: &mut BytesMut) {
        out.extend_from_slice(&self.bytes[..self.length]);
    }
}
