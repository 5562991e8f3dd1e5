//! What a field looks like.

use super::hypotheses::COMMON;

/// What a field looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    Empty,
    /// A number, a date, a time, or anything else that people do not write as they like.
    Typed,
    Text,
    /// A text that a writer would have put into quotes, or that more than one field may be in.
    Odd,
}

/// What an unquoted field looks like.
pub fn look(text: &str) -> Look {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Look::Empty;
    }
    if is_number(trimmed) || is_time(trimmed) {
        return Look::Typed;
    }
    match is_text(trimmed) {
        true => Look::Text,
        false => Look::Odd,
    }
}

/// Digits with signs, a point or a comma before a fraction, groups of three, an exponent, a currency or a percent sign.
fn is_number(text: &str) -> bool {
    let text = text.trim_matches(|char| matches!(char, '€' | '$' | '£' | '¥' | '%' | ' '));
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let grouped = |text: &str, separator: char| {
        let mut groups = text.split(separator);
        let first = groups.next().is_some_and(|first| digits(first) && first.len() <= 3);
        first && groups.all(|group| digits(group) && group.len() == 3)
    };
    let plain = |point: char, group: char| {
        let (whole, fraction) = mantissa.split_once(point).unwrap_or((mantissa, "0"));
        let whole_is = digits(whole) || whole.is_empty() || grouped(whole, group);
        whole_is && (digits(fraction) || fraction.is_empty()) && whole.len() + fraction.len() > 0
    };
    digits(exponent)
        && mantissa.bytes().any(|byte| byte.is_ascii_digit())
        && (plain('.', ',') || plain(',', '.'))
}

/// A date, a time of day, or both with a zone; an address of the internet; a UUID.
fn is_time(text: &str) -> bool {
    let part = |text: &str, separators: &[char], count: usize, most: usize| {
        let parts: Vec<&str> = text.split(|char| separators.contains(&char)).collect();
        let is_part = |part: &&str| {
            !part.is_empty() && part.len() <= most && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        parts.len() == count && parts.iter().all(is_part)
    };
    let is_date = |text: &str| {
        let separators: Vec<char> = text.chars().filter(|char| !char.is_ascii_digit()).collect();
        matches!(separators[..], [one, other] if one == other && matches!(one, '-' | '/' | '.'))
            && part(text, &separators, 3, 4)
    };
    let is_clock = |text: &str| {
        let text = text.strip_suffix('Z').unwrap_or(text);
        let text = text.rsplit_once(['+', '-']).map_or(text, |(text, _)| text);
        let text = text.split_once('.').map_or(text, |(text, _)| text);
        part(text, &[':'], 2, 2) || part(text, &[':'], 3, 2)
    };
    let is_uuid = || {
        let lengths = text.split('-').map(str::len);
        lengths.eq([8, 4, 4, 4, 12])
            && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    let both = || {
        let (date, clock) = text.split_once(['T', ' ']).unwrap_or_default();
        is_date(date) && is_clock(clock)
    };
    is_date(text) || is_clock(text) || both() || part(text, &['.'], 4, 3) || is_uuid()
}

/// A text of letters, that has no delimiter of other files, but a comma as sentences have it, and no quotes around it or at
/// one end.
fn is_text(text: &str) -> bool {
    let quoted = |quote: char| text.starts_with(quote) || text.ends_with(quote);
    let mut delimiters = text.bytes().enumerate().filter(|(_, byte)| COMMON.contains(byte));
    let in_sentence = |(at, byte): (usize, u8)| {
        byte == b',' && text.as_bytes().get(at + 1).is_some_and(|next| *next == b' ')
    };
    text.chars().any(char::is_alphabetic)
        && !text.contains('"')
        && !quoted('\'')
        && !text.contains(['\r', '\n'])
        && delimiters.all(in_sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_looked_at_as_people_do() {
        for text in
            ["1", "-2.5", "1,5", "1.234,5", "1,234,567", ".5", "1e-7", "12 %", "$5", "2024-01-02"]
        {
            assert_eq!(look(text), Look::Typed, "{text}");
        }
        for text in
            ["10:30", "2024-01-02 10:30:00.5Z", "2024-01-02T10:30+02:00", "10.0.0.1", "1/2/2024"]
        {
            assert_eq!(look(text), Look::Typed, "{text}");
        }
        for text in ["a", "Ada Lovelace", "Lovelace, Ada", "it's", "a_b", "N/A", "#tag"] {
            assert_eq!(look(text), Look::Text, "{text}");
        }
        for text in ["a;b", "a,b", "1;2", "5-2", "2;5,3", "\"a\"", "'a'", "10:30,5", "a|b", "--"] {
            assert_eq!(look(text), Look::Odd, "{text}");
        }
        assert_eq!(look("  "), Look::Empty);
    }
}
