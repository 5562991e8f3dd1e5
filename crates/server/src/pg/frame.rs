//! Frames: messages as bytes, checked before they are decoded.
//!
//! The decoder of the library reads counts and lengths as they come, beyond the end of a message and its buffer, and replaces what is not
//! UTF-8. So a frame is split off the input first, and decoded if it is well formed.

use std::fmt;

/// The most bytes of a message before a client has logged in.
pub(super) const MOST_BEFORE_LOGIN: usize = 10_000;

/// A frame that no client may send.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    /// Its length cannot be.
    Length(i32),
    /// It is longer than messages may be.
    TooLong {
        /// Its bytes.
        length: usize,
        /// How many there may be.
        most: usize,
    },
    /// Its kind is none of the protocol.
    Kind(u8),
    /// Its parts do not fill it.
    Parts(u8),
    /// A text in it is not UTF-8.
    Encoding,
}

impl fmt::Display for Malformed {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => {
                write!(to, "a message has the length {length}, which none can have")
            }
            Self::TooLong { length, most } => {
                write!(to, "a message has {length} bytes, and may have {most}: send less at once")
            }
            Self::Kind(kind) => {
                write!(
                    to,
                    "a message is of the kind \"{}\", which clients do not send",
                    kind.escape_ascii()
                )
            }
            Self::Parts(kind) => {
                write!(
                    to,
                    "a message of the kind \"{}\" does not have the parts that it should",
                    kind.escape_ascii()
                )
            }
            Self::Encoding => write!(to, "a text is not in UTF-8, the only encoding there is"),
        }
    }
}

/// The bytes of the frame that `input` begins with, if its length is known: it may not be there whole yet. Before the login frames have no
/// kind.
pub(super) fn length(
    input: &[u8],
    has_kind: bool,
    most: usize,
) -> Result<Option<usize>, Malformed> {
    let offset = usize::from(has_kind);
    let Some(bytes) = input.get(offset..offset + 4) else { return Ok(None) };
    let length = i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let known = usize::try_from(length).ok().filter(|length| *length >= 4);
    let length = known.ok_or(Malformed::Length(length))?;
    if length > most {
        return Err(Malformed::TooLong { length, most });
    }
    Ok(Some(offset + length))
}

/// Fails unless a frame that has a kind is well formed.
pub(super) fn check(frame: &[u8]) -> Result<(), Malformed> {
    let (Some(&kind), Some(body)) = (frame.first(), frame.get(5..)) else {
        return Err(Malformed::Length(0));
    };
    let mut parts = Parts { kind, rest: body };
    match kind {
        b'Q' | b'f' => parts.text()?,
        b'P' => {
            parts.text()?;
            parts.text()?;
            let types = parts.count()?;
            parts.bytes(types * 4)?;
        }
        b'B' => {
            parts.text()?;
            parts.text()?;
            let formats = parts.count()?;
            parts.bytes(formats * 2)?;
            for _ in 0..parts.count()? {
                parts.value()?;
            }
            let formats = parts.count()?;
            parts.bytes(formats * 2)?;
        }
        b'C' | b'D' => {
            if !matches!(parts.bytes(1)?, b"S" | b"P") {
                return Err(Malformed::Parts(kind));
            }
            parts.text()?;
        }
        b'E' => {
            parts.text()?;
            parts.bytes(4)?;
        }
        b'S' | b'H' | b'X' | b'c' => (),
        b'd' | b'p' => return Ok(()),
        _ => return Err(Malformed::Kind(kind)),
    }
    match parts.rest {
        [] => Ok(()),
        _ => Err(Malformed::Parts(kind)),
    }
}

/// The parts of a frame that are left.
struct Parts<'a> {
    kind: u8,
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) =
            self.rest.split_at_checked(length).ok_or(Malformed::Parts(self.kind))?;
        self.rest = rest;
        Ok(bytes)
    }

    fn count(&mut self) -> Result<usize, Malformed> {
        let bytes = self.bytes(2)?;
        Ok(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    }

    /// A value, or NULL, whose length is −1.
    fn value(&mut self) -> Result<(), Malformed> {
        let bytes = self.bytes(4)?;
        let length = i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        if length == -1 {
            return Ok(());
        }
        let length = usize::try_from(length).map_err(|_| Malformed::Parts(self.kind))?;
        self.bytes(length).map(drop)
    }

    /// A text that ends with a zero.
    fn text(&mut self) -> Result<(), Malformed> {
        let end = self.rest.iter().position(|byte| *byte == 0);
        let text = self.bytes(end.ok_or(Malformed::Parts(self.kind))?)?;
        self.bytes(1)?;
        match std::str::from_utf8(text) {
            Ok(_) => Ok(()),
            Err(_) => Err(Malformed::Encoding),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut frame = vec![kind];
        frame.extend((body.len() as i32 + 4).to_be_bytes());
        frame.extend(body);
        frame
    }

    #[test]
    fn lengths_are_known_from_the_first_bytes() {
        assert_eq!(length(b"Q\0\0", true, 100), Ok(None));
        assert_eq!(length(b"Q\0\0\0\x08", true, 100), Ok(Some(9)));
        assert_eq!(length(b"\0\0\0\x08", false, 100), Ok(Some(8)));
        assert_eq!(length(b"Q\0\0\0\x03", true, 100), Err(Malformed::Length(3)));
        assert_eq!(length(b"Q\xff\xff\xff\xff", true, 100), Err(Malformed::Length(-1)));
        let long = Malformed::TooLong { length: 0x7fff_ffff, most: 100 };
        assert_eq!(length(b"Q\x7f\xff\xff\xff", true, 100), Err(long));
    }

    #[test]
    fn parts_fill_their_frame() {
        assert_eq!(check(&frame(b'Q', b"SELECT 1\0")), Ok(()));
        assert_eq!(check(&frame(b'Q', b"SELECT 1")), Err(Malformed::Parts(b'Q')));
        assert_eq!(check(&frame(b'Q', b"SELECT 1\0more")), Err(Malformed::Parts(b'Q')));
        assert_eq!(check(&frame(b'Q', b"SELECT '\xff'\0")), Err(Malformed::Encoding));
        assert_eq!(check(&frame(b'P', b"\0SELECT $1\0\0\x01\0\0\0\x17")), Ok(()));
        assert_eq!(
            check(&frame(b'P', b"\0SELECT $1\0\xff\xff\0\0\0\x17")),
            Err(Malformed::Parts(b'P'))
        );
        assert_eq!(check(&frame(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xff\0\0")), Ok(()));
        assert_eq!(
            check(&frame(b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0")),
            Err(Malformed::Parts(b'B'))
        );
        assert_eq!(
            check(&frame(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0")),
            Err(Malformed::Parts(b'B'))
        );
        assert_eq!(check(&frame(b'D', b"X\0")), Err(Malformed::Parts(b'D')));
        assert_eq!(check(&frame(b'S', b"")), Ok(()));
        assert_eq!(check(&frame(b'~', b"")), Err(Malformed::Kind(b'~')));
    }
}
