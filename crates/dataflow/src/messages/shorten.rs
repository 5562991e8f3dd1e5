//! Long text, shortened for messages.

use std::fmt::{self, Write};

/// The most characters of a value that a message shows.
pub const LONGEST: usize = 200;

/// How much of the end of a long message is shown: the text after a long value.
const TAIL: usize = 60;

/// A message without the middle of long values: a value of megabytes that is not a number is shown by its first
/// [`LONGEST`] characters, and the reason after it stays.
///
/// All messages about values pass here, because they are kept, sent and printed.
pub fn shorten(message: impl Into<String>) -> String {
    without_middle(message.into(), LONGEST, TAIL)
}

/// A message about a statement without the middle of long parts: names and literals of megabytes. It has room for
/// several of them, and for advice.
pub fn abridge(message: impl Into<String>) -> String {
    without_middle(message.into(), 5 * LONGEST, 5 * TAIL)
}

/// The first `longest` and the last `tail` characters of a message.
fn without_middle(mut message: String, longest: usize, tail: usize) -> String {
    if message.len() <= longest + tail {
        return message;
    }
    let Some((cut, _)) = message.char_indices().nth(longest) else { return message };
    let Some((rest, _)) = message[cut..].char_indices().rev().nth(tail - 1) else { return message };
    if rest > 0 {
        message.replace_range(cut..cut + rest, "…");
        message.shrink_to_fit();
    }
    message
}

/// The first `most` characters of what `value` prints, and whether that is all. The rest is not printed.
pub fn print(value: impl fmt::Display, most: usize) -> (String, bool) {
    let mut start = Start { text: String::new(), left: most };
    let is_all = write!(start, "{value}").is_ok();
    (start.text, is_all)
}

/// Text that takes some characters and no more.
struct Start {
    text: String,
    left: usize,
}

impl Write for Start {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(character);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_its_start_and_its_end() {
        let message = format!("cannot cast '{}' to a number", "ä".repeat(1 << 20));
        let short = shorten(message);
        assert!(short.starts_with("cannot cast 'ää") && short.ends_with("ää' to a number"));
        assert_eq!(short.chars().count(), LONGEST + 1 + TAIL);
        for length in [0, LONGEST, LONGEST + TAIL] {
            assert_eq!(shorten("ä".repeat(length)), "ä".repeat(length));
        }
        assert_eq!(
            shorten("ä".repeat(LONGEST + TAIL + 1)).chars().filter(|c| *c == '…').count(),
            1
        );
    }

    #[test]
    fn a_message_about_a_statement_keeps_what_people_read() {
        let advice = format!("no column \"a\"; there are {}", "b, ".repeat(300));
        assert_eq!(abridge(advice.clone()), advice);
        assert!(abridge(format!("no column {}", "x".repeat(1 << 20))).len() < 1_500);
    }

    #[test]
    fn no_more_of_a_value_is_printed_than_is_shown() {
        assert_eq!(print("äöü", 3), ("äöü".to_owned(), true));
        assert_eq!(
            print(std::iter::repeat_n("äö", 1 << 20).collect::<String>(), 3),
            ("äöä".to_owned(), false)
        );
    }
}
