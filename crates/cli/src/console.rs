//! Text for people: messages on standard error, and text without control characters.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};

/// The characters that stay as they are in messages of several lines.
pub(crate) const LINES: &[char] = &['\n', '\t'];

/// The most characters of an error's message that are shown.
const LONGEST: usize = 4_000;

/// Writes a message and a newline to standard error.
///
/// If that cannot be written, there is no way to inform the user: the program continues.
pub(crate) fn report(message: impl Display) {
    let message = message.to_string();
    let text = format!("{}\n", escaped(message.trim_end_matches('\n'), LINES));
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// The message of an error, cut if it is very long.
pub(crate) fn shortened(message: &dyn Display) -> String {
    let mut message = message.to_string();
    if let Some((end, _)) = message.char_indices().nth(LONGEST) {
        message.truncate(end);
        message.push('…');
    }
    message
}

/// `text` with escapes such as `\x1B` for control characters, but for those that are `kept`.
///
/// Text from data could otherwise make a terminal do something else than show it. This includes characters that
/// change the direction in which text is shown.
pub(crate) fn escaped<'a>(text: &'a str, kept: &[char]) -> Cow<'a, str> {
    let is_special = |character: char| {
        let directs = matches!(
            character, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
        );
        (character.is_control() || directs) && !kept.contains(&character)
    };
    if !text.contains(is_special) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match (is_special(character), character) {
            (false, _) => escaped.push(character),
            (true, '\n') => escaped.push_str("\\n"),
            (true, '\r') => escaped.push_str("\\r"),
            (true, '\t') => escaped.push_str("\\t"),
            (true, '\0'..='\x7F') => escaped.push_str(&format!("\\x{:02X}", u32::from(character))),
            (true, _) => escaped.push_str(&format!("\\u{:04X}", u32::from(character))),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_all_others_stay() {
        let text = "a\x1B[31mb\x07\u{9B}2J\u{202E}\r\n\tü√😀\\x\x7F";
        let all = "a\\x1B[31mb\\x07\\u009B2J\\u202E\\r\\n\\tü√😀\\x\\x7F";
        assert_eq!(escaped(text, &[]), all);
        assert_eq!(escaped(text, LINES), all.replace("\\n", "\n").replace("\\t", "\t"));
        assert!(matches!(escaped("plain ü\n", LINES), Cow::Borrowed(_)));
    }
}
