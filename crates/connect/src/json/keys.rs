//! The names of an object's members.

use std::iter;

/// The names in one object, in order, each as often as it occurs; of malformed text, those before the problem.
///
/// The brackets of the object are in balance.
pub fn keys(object: &[u8]) -> impl Iterator<Item = String> {
    let mut depth = 0;
    let mut at = 0;
    // The string that came last, if nothing came after it.
    let mut string: Option<&[u8]> = None;
    iter::from_fn(move || {
        while let Some(&byte) = object.get(at) {
            at += 1;
            let before = string;
            match byte {
                b'"' => {
                    let end = at + string_length(&object[at..]);
                    string = object.get(at - 1..end);
                    at = end;
                    continue;
                }
                byte if byte.is_ascii_whitespace() => continue,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            string = None;
            if byte == b':'
                && depth == 1
                && let Some(key) = before.and_then(|key| serde_json::from_slice(key).ok())
            {
                return Some(key);
            }
        }
        None
    })
}

/// How long a string is after its opening quote, with the closing one.
fn string_length(text: &[u8]) -> usize {
    let mut escaped = false;
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_members_of_the_object_itself_count() {
        let object = br#" {"a": {"x": "y:"}, "b\u00e9" : ["p", {"q": 1}], "c":"d", "c":1} "#;
        assert_eq!(keys(object).collect::<Vec<_>>(), ["a", "b\u{e9}", "c", "c"]);
        assert_eq!(keys(b"{}").next(), None);
        assert_eq!(keys(b"{1: 2, \"a\" 3, \"\\x\": 4}").next(), None);
    }
}
