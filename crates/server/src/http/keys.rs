//! Keys by which a request has its effect once, however often it is sent.

use std::collections::HashSet;
use std::sync::Arc;

use alluvium::unstable::owned_key;
use axum::http::{HeaderMap, StatusCode};
use parking_lot::Mutex;

use super::problem::Problem;

const HEADER: &str = "idempotency-key";
/// The bytes of a key.
const LONGEST: usize = 255;

/// The keys of requests that are answered just now.
#[derive(Default)]
pub(super) struct Keys(Mutex<HashSet<String>>);

/// The key of a request; until it is dropped no other request with this key is answered.
pub(super) struct Key {
    keys: Arc<Keys>,
    text: String,
}

impl Keys {
    /// The key of a request with these headers, for this table. Keys of others, and for other tables, are others. It belongs to the role.
    ///
    /// # Errors
    /// 409 if another request with this key is being answered.
    pub(super) fn take(
        self: &Arc<Self>,
        headers: &HeaderMap,
        role: Option<&str>,
        table: &str,
    ) -> Result<Option<Key>, Problem> {
        let mut values = headers.get_all(HEADER).iter();
        let Some(value) = values.next() else { return Ok(None) };
        let given = value.to_str().ok().filter(|key| (1..=LONGEST).contains(&key.len()));
        let (Some(given), None) = (given, values.next()) else {
            let detail = format!("Idempotency-Key is one text of 1 to {LONGEST} ASCII characters");
            return Err(Problem::bad(detail));
        };
        // Lengths tell where each part ends.
        let length = role.map_or(-1, |role| role.len() as i64);
        let text = owned_key(
            &format!("http {length} {}", role.unwrap_or_default()),
            &format!("{} {table} {given}", table.len()),
        );
        match self.0.lock().insert(text.clone()) {
            true => Ok(Some(Key { keys: self.clone(), text })),
            false => {
                let detail = "a request with this Idempotency-Key is being answered";
                Err(Problem::new(StatusCode::CONFLICT, detail).hint("send it again later"))
            }
        }
    }
}

impl Key {
    /// The key of its transaction.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.keys.0.lock().remove(&self.text);
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_key_belongs_to_a_role_and_a_table() {
        let keys = Arc::new(Keys::default());
        let mut headers = HeaderMap::new();
        assert!(keys.take(&headers, None, "t").is_ok_and(|key| key.is_none()));
        headers.insert(HEADER, HeaderValue::from_static("one"));
        let (nobody, role) = (None, Some(""));
        let first = keys.take(&headers, nobody, "t").expect("a key").expect("a key");
        assert!(keys.take(&headers, nobody, "t").is_err());
        let other = keys.take(&headers, nobody, "t2").expect("a key").expect("a key");
        let of_role = keys.take(&headers, role, "t").expect("a key").expect("a key");
        assert!(first.text() != other.text() && first.text() != of_role.text());
        drop(first);
        assert!(keys.take(&headers, nobody, "t").is_ok());
        let texts = ["ada", "a\u{1f}da", "a%1fda", "a\u{1}da"].map(|role| {
            let key = keys.take(&headers, Some(role), "t").expect("a key").expect("a key");
            key.text().to_owned()
        });
        // As the states of earlier versions have it.
        assert_eq!(texts[0], "http 3 ada\u{1f}1 t one");
        assert_eq!(texts.iter().collect::<HashSet<_>>().len(), texts.len());
        for wrong in [String::new(), "x".repeat(256), "\u{e4}".to_owned()] {
            headers.insert(HEADER, HeaderValue::from_bytes(wrong.as_bytes()).expect("a value"));
            assert!(keys.take(&headers, nobody, "t3").is_err(), "{wrong}");
        }
    }
}
