//! The names of an object's members.

/// The names in one object, in order, each as often as it occurs; of malformed text, those before the problem.
///
/// The brackets of the object are in balance.
pub fn keys(object: &[u8]) -> Vec<String> {
    let mut keys = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    // The string that came last, if nothing came behind it.
    let mut string: Option<&[u8]> = None;
    while let Some(&byte) = object.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let end = at + string_length(&object[at..]);
                string = object.get(at - 1..end);
                at = end;
                continue;
            }
            b':' if depth == 1 => {
                keys.extend(string.and_then(|key| serde_json::from_slice::<String>(key).ok()));
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            byte if byte.is_ascii_whitespace() => continue,
            _ => {}
        }
        string = None;
    }
    keys
}

/// How long a string is behind its opening quote, with the closing one.
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
        assert_eq!(keys(object), ["a", "b\u{e9}", "c", "c"]);
        assert!(keys(b"{}").is_empty());
        assert!(keys(b"{1: 2, \"a\" 3, \"\\x\": 4}").is_empty());
    }
}
