//! Columns that are in the key of a message.

use serde::de::IgnoredAny;

use crate::json::{Scanner, name};

/// Columns of a key, as members of an object.
pub(super) struct Key {
    columns: Vec<String>,
    scanner: Scanner,
}

impl Key {
    pub(super) fn new(columns: Vec<String>) -> Self {
        Self { columns, scanner: Scanner::default() }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Puts the columns of a key, with commas between them. It is an object with them, also with its schema, or the value
    /// of a single one.
    pub(super) fn put(&mut self, key: Option<&[u8]>, to: &mut Vec<u8>) -> Result<(), String> {
        let key = key.ok_or("the message has no key")?;
        let mut text = key.trim_ascii();
        if let Some(members) = self.scanner.members(text) {
            let is = |wanted: &'static str| {
                members.iter().find(|member| name(&text[member.name()]).as_deref() == Some(wanted))
            };
            if let (Some(_), Some(payload)) = (is("schema"), is("payload")) {
                text = text[payload.value()].trim_ascii();
            }
        }
        match text.starts_with(b"{") {
            true => self.put_members(text, to),
            false => self.put_value(text, to),
        }
    }

    fn put_members(&mut self, text: &[u8], to: &mut Vec<u8>) -> Result<(), String> {
        let members = self.scanner.members(text).ok_or("the key is not one JSON object")?;
        let begin = to.len();
        for member in members {
            let quoted = &text[member.name()];
            let Some(found) = name(quoted) else { continue };
            if self.columns.iter().any(|column| column.eq_ignore_ascii_case(&found)) {
                if to.len() > begin {
                    to.push(b',');
                }
                to.extend_from_slice(quoted);
                to.push(b':');
                to.extend_from_slice(&text[member.value()]);
            }
        }
        match to.len() == begin {
            true => Err(format!("the key has no column {}", self.columns.join(", "))),
            false => Ok(()),
        }
    }

    fn put_value(&mut self, text: &[u8], to: &mut Vec<u8>) -> Result<(), String> {
        let [column] = self.columns.as_slice() else {
            return Err(format!(
                "the key is not an object with the columns {}",
                self.columns.join(", ")
            ));
        };
        let problem = |error: serde_json::Error| error.to_string();
        serde_json::to_writer(&mut *to, column).map_err(problem)?;
        to.push(b':');
        let is_value =
            !text.starts_with(b"[") && serde_json::from_slice::<IgnoredAny>(text).is_ok();
        match str::from_utf8(text) {
            Ok(text) if is_value => to.extend_from_slice(text.as_bytes()),
            Ok(text) => serde_json::to_writer(&mut *to, text).map_err(problem)?,
            Err(_) => return Err("the key is not UTF-8".to_owned()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_an_object_with_its_schema_or_not_or_a_value() {
        let put = |columns: &[&str], key: &[u8]| {
            let columns = columns.iter().map(|column| (*column).to_owned()).collect();
            let mut to = Vec::new();
            Key::new(columns).put(Some(key), &mut to).map(|()| String::from_utf8(to).unwrap())
        };
        let good: [(&[&str], &str, &str); 8] = [
            (&["a", "b"], "{\"a\": 1, \"c\": 3, \"B\":\"x\"}", "\"a\": 1,\"B\":\"x\""),
            (&["a"], "{\"schema\": {}, \"payload\": {\"a\": 1}}", "\"a\": 1"),
            (&["a"], "{\"schema\": {}, \"payload\": 7}", "\"a\":7"),
            (&["a"], " 12 ", "\"a\":12"),
            (&["a"], "\"12\"", "\"a\":\"12\""),
            (&["a"], "it's", "\"a\":\"it's\""),
            (&["a"], "[1]", "\"a\":\"[1]\""),
            (&["a"], "", "\"a\":\"\""),
        ];
        for (columns, key, expected) in good {
            assert_eq!(put(columns, key.as_bytes()).as_deref(), Ok(expected), "{key}");
        }
        let wrong: [(&[&str], &[u8], &str); 4] = [
            (&["a", "b"], b"12", "not an object with the columns a, b"),
            (&["a"], b"{\"b\": 1}", "has no column a"),
            (&["a"], b"{\"b\": 1", "not one JSON object"),
            (&["a"], b"\xFF", "not UTF-8"),
        ];
        for (columns, key, expected) in wrong {
            let problem = put(columns, key).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
