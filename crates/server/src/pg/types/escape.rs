//! Escapes in text that has just been written.

use bytes::BytesMut;

/// Puts `escape` and another byte in the place of each byte from `start` on for which `escaped` has one, and `quote` around all. It works
/// in place, from the end.
pub(super) fn expand(
    out: &mut BytesMut,
    start: usize,
    quote: Option<u8>,
    escape: u8,
    escaped: impl Fn(u8) -> Option<u8>,
) {
    let written = start..out.len();
    let escapes = out[start..].iter().filter(|byte| escaped(**byte).is_some()).count();
    let mut to = out.len() + escapes + if quote.is_some() { 2 } else { 0 };
    if to == out.len() {
        return;
    }
    out.resize(to, 0);
    let mut put = |out: &mut BytesMut, byte: u8| {
        to -= 1;
        out[to] = byte;
    };
    if let Some(quote) = quote {
        put(out, quote);
    }
    for from in written.rev() {
        let byte = out[from];
        match escaped(byte) {
            Some(letter) => {
                put(out, letter);
                put(out, escape);
            }
            None => put(out, byte),
        }
    }
    if let Some(quote) = quote {
        put(out, quote);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_before_stays() {
        let expanded = |text: &str, quote| {
            let mut out = BytesMut::from(&b"x"[..]);
            out.extend_from_slice(text.as_bytes());
            expand(&mut out, 1, quote, b'\\', |byte| match byte {
                b'\n' => Some(b'n'),
                b'"' | b'\\' => Some(byte),
                _ => None,
            });
            String::from_utf8(out.to_vec()).unwrap()
        };
        assert_eq!(expanded("a\"b\\\n", Some(b'"')), r#"x"a\"b\\\n""#);
        assert_eq!(expanded("\n\n", None), r"x\n\n");
        assert_eq!(expanded("abc", None), "xabc");
        assert_eq!(expanded("", Some(b'"')), "x\"\"");
    }
}
