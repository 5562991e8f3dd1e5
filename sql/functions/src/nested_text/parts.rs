//! The parts that a text consists of.
//!
//! Quotes of both kinds keep special characters, and a backslash in them keeps the character after it; outside of them
//! it keeps a quote. Brackets keep commas, and the text in them stays as it is. `NULL` without quotes is NULL. Blanks
//! around a part do not belong to it.

use std::borrow::Cow;

/// The elements between two brackets, or `None` for a text of another form. One comma more than elements is an empty element.
pub(super) fn elements<'a>(
    text: &'a str,
    [open, close]: [u8; 2],
    parts: &mut Vec<&'a str>,
) -> Option<()> {
    parts.clear();
    let Inside::Parts(mut rest) = inside(text, [open, close])? else { return Some(()) };
    loop {
        let (part, end, after) = until(rest, &[b',', close], true)?;
        parts.push(part);
        if end == close {
            return trimmed(after).is_empty().then_some(());
        }
        rest = after;
    }
}

/// The keys and values between braces, with a sign between the two of each pair, or `None` for a text of another form.
pub(super) fn pairs<'a>(
    text: &'a str,
    sign: u8,
    pairs: &mut Vec<(&'a str, &'a str)>,
) -> Option<()> {
    pairs.clear();
    let Inside::Parts(mut rest) = inside(text, [b'{', b'}'])? else { return Some(()) };
    loop {
        // The keys of maps are values, and may have brackets.
        let (key, _, after) = until(rest, &[sign], sign == b'=')?;
        let (value, end, after) = until(after, b",}", true)?;
        pairs.push((key, value));
        if end == b'}' {
            return trimmed(after).is_empty().then_some(());
        }
        rest = after;
    }
}

/// The text after an opening bracket.
enum Inside<'a> {
    Nothing,
    /// One part at least, and the closing bracket.
    Parts(&'a str),
}

fn inside(text: &str, [open, close]: [u8; 2]) -> Option<Inside<'_>> {
    let rest = trimmed(text).strip_prefix(char::from(open))?;
    match trimmed(rest).strip_prefix(char::from(close)) {
        None => Some(Inside::Parts(rest)),
        Some(after) => after.is_empty().then_some(Inside::Nothing),
    }
}

/// The text before the first of these bytes that quotes do not enclose, nor, if it `has_brackets`, brackets; the byte, and
/// the text after it. `None` where there is none.
fn until<'a>(text: &'a str, wanted: &[u8], has_brackets: bool) -> Option<(&'a str, u8, &'a str)> {
    let (mut open, mut quote, mut escapes) = (Vec::new(), None, false);
    for (at, &byte) in text.as_bytes().iter().enumerate() {
        let is_escaped = escapes;
        escapes = byte == b'\\' && !is_escaped;
        match (quote, byte) {
            (Some(quoted), byte) if quoted == byte && !is_escaped => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') if !is_escaped => quote = Some(byte),
            (None, byte) if open.is_empty() && wanted.contains(&byte) => {
                return Some((trimmed(&text[..at]), byte, &text[at + 1..]));
            }
            (None, b'[' | b'{' | b'(') if has_brackets => open.push(closing(byte.into())),
            (None, byte) if open.last() == Some(&byte.into()) => drop(open.pop()),
            _ => {}
        }
    }
    None
}

fn closing(bracket: char) -> char {
    match bracket {
        '[' => ']',
        '{' => '}',
        _ => ')',
    }
}

/// Whether a part is NULL.
pub(super) fn is_null(part: &str) -> bool {
    part.eq_ignore_ascii_case("null")
}

/// The value that a part stands for, without its quotes; `None` for NULL.
pub(super) fn value(part: &str) -> Option<Cow<'_, str>> {
    if is_null(part) {
        return None;
    }
    if !part.contains(['\'', '"']) {
        return Some(Cow::Borrowed(part));
    }
    let (mut plain, mut open) = (String::with_capacity(part.len()), Vec::new());
    let (mut quote, mut escapes) = (None, false);
    for character in part.chars() {
        let is_escaped = escapes;
        escapes = character == '\\' && !is_escaped;
        let is_kept = !open.is_empty();
        match (quote, character) {
            (Some(quoted), character) if quoted == character && !is_escaped => {
                quote = None;
                if !is_kept {
                    continue;
                }
            }
            (Some(_), '\\') if !is_escaped && !is_kept => continue,
            (Some(_), _) => {}
            (None, '\'' | '"') if !is_escaped => {
                quote = Some(character);
                if !is_kept {
                    continue;
                }
            }
            (None, '\'' | '"') if !is_kept => drop(plain.pop()),
            (None, '[' | '{' | '(') => open.push(closing(character)),
            (None, character) if open.last() == Some(&character) => drop(open.pop()),
            _ => {}
        }
        plain.push(character);
    }
    Some(Cow::Owned(plain))
}

/// Without the blanks around it.
fn trimmed(text: &str) -> &str {
    text.trim_matches(is_blank)
}

/// Whether a character is a blank, which only quotes keep at the ends of a value.
pub(super) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Option<Vec<Option<Cow<'_, str>>>> {
        let mut parts = Vec::new();
        elements(text, [b'[', b']'], &mut parts)?;
        Some(parts.into_iter().map(value).collect())
    }

    fn map(text: &str, sign: u8) -> Option<Vec<(&str, &str)>> {
        let mut parts = Vec::new();
        pairs(text, sign, &mut parts)?;
        Some(parts)
    }

    fn texts(texts: &[&'static str]) -> Option<Vec<Option<Cow<'static, str>>>> {
        Some(texts.iter().map(|text| Some(Cow::Borrowed(*text))).collect())
    }

    #[test]
    fn quotes_and_brackets_keep_commas() {
        assert_eq!(list(" [ a b ,'c, d', \"e\" ] "), texts(&["a b", "c, d", "e"]));
        assert_eq!(list("[a (b, c), {x, y}, [z]]"), texts(&["a (b, c)", "{x, y}", "[z]"]));
        assert_eq!(list("['a' b, c'd', 'e''f']"), texts(&["a b", "cd", "ef"]));
        assert_eq!(list("[a), b}, (c], d)]"), texts(&["a)", "b}", "(c], d)"]));
        assert_eq!(list("[, a, ]"), texts(&["", "a", ""]));
        assert_eq!(list("[]"), texts(&[]));
        assert_eq!(list("[null, 'NULL']"), Some(vec![None, Some(Cow::Borrowed("NULL"))]));
        let wrong = [
            "", "a", "[a", "a]", "[", "[it's]", "[a (b]", "[a], b]", "{a}", "[a] b", "[[a]", "[] ]",
        ];
        for text in wrong {
            assert_eq!(list(text), None, "{text}");
        }
    }

    #[test]
    fn backslashes_keep_quotes_and_what_is_in_quotes() {
        assert_eq!(
            list(r"[a\n, 'it\'s', '\\', 'a\n', '  ']"),
            texts(&[r"a\n", "it's", r"\", "an", "  "])
        );
        assert_eq!(list(r"[it\'s, a\, b\\]"), texts(&["it's", r"a\", r"b\\"]));
        assert_eq!(list(r"[a\]b]"), None);
    }

    #[test]
    fn what_is_in_brackets_stays_as_it_is() {
        let text = r"[{'a': 'x, y', b: [']', \'']}, ('a' \n) 'b', x['a']]";
        let text = text.replace(r"\''", r"\'");
        assert_eq!(
            list(&text),
            Some(
                [r"{'a': 'x, y', b: [']', \']}", r"('a' \n) b", "x['a']"]
                    .map(|text| Some(Cow::Borrowed(text)))
                    .to_vec()
            )
        );
    }

    #[test]
    fn pairs_end_at_commas_and_keys_at_signs() {
        assert_eq!(map("{a: 1, 'b:c' : x:y }", b':'), Some(vec![("a", "1"), ("'b:c'", "x:y")]));
        assert_eq!(map("{[a: 1}", b':'), Some(vec![("[a", "1")]));
        assert_eq!(
            map("{[a=b]=c, d=, e=f=g}", b'='),
            Some(vec![("[a=b]", "c"), ("d", ""), ("e", "f=g")])
        );
        assert_eq!(map(" { } ", b'='), Some(vec![]));
        for text in ["{a}", "{a=1,}", "{a=1", "{a=1} b", "{[a=1}", "[a=1]", "{it's=1}"] {
            assert_eq!(map(text, b'='), None, "{text}");
        }
    }

    #[test]
    fn open_brackets_are_counted_and_not_followed() {
        let deep = "[".repeat(1_000_000);
        assert_eq!(list(&deep), None);
        let closed = format!("{deep}{}", "]".repeat(1_000_000));
        assert_eq!(list(&closed).map(|parts| parts.len()), Some(1));
    }
}
