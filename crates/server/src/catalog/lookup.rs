//! Texts by OID, in one list: `key`, a separator, and the text.
//!
//! A function of SQL that looks something up makes such a list by a query of its own and passes it on, so that it can stand
//! wherever an expression can.

use std::collections::HashMap;
use std::sync::Arc;

use alluvium::arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray};
use alluvium::functions::{ColumnarValue, Result};

/// Between a key and its text, and between the parts of a text.
pub(super) const SEPARATOR: char = '\u{1f}';

/// Lists, one for each row: mostly the same one.
pub(super) struct Lists {
    lists: ListArray,
    /// The list that was read last.
    last: Option<ArrayRef>,
}

impl Lists {
    pub(super) fn new(lists: &ArrayRef) -> Self {
        Self { lists: lists.as_list::<i32>().clone(), last: None }
    }

    /// The list of a row, unless it is the one that was read last. NULL is an empty one.
    pub(super) fn read(&mut self, row: usize) -> Option<ArrayRef> {
        let list = match self.lists.is_valid(row) {
            true => self.lists.value(row),
            false => self.lists.values().slice(0, 0),
        };
        if self.last.as_ref().is_some_and(|last| **last == *list) {
            return None;
        }
        self.last = Some(list.clone());
        Some(list)
    }
}

/// Lists of entries.
pub(super) struct Entries {
    lists: Lists,
    by_key: HashMap<String, String>,
    by_text: HashMap<String, String>,
}

impl Entries {
    pub(super) fn new(lists: &ArrayRef) -> Self {
        Self { lists: Lists::new(lists), by_key: HashMap::new(), by_text: HashMap::new() }
    }

    /// The list of a row.
    fn read(&mut self, row: usize) {
        let Some(list) = self.lists.read(row) else { return };
        (self.by_key, self.by_text) = Default::default();
        for entry in list.as_string_opt::<i32>().into_iter().flatten().flatten() {
            if let Some((key, text)) = entry.split_once(SEPARATOR) {
                self.by_key.insert(key.to_owned(), text.to_owned());
                self.by_text.entry(text.to_owned()).or_insert_with(|| key.to_owned());
            }
        }
    }

    /// The text of a key.
    pub(super) fn text(&mut self, row: usize, key: &str) -> Option<&str> {
        self.read(row);
        self.by_key.get(key).map(String::as_str)
    }

    /// The key of a text.
    pub(super) fn key(&mut self, row: usize, text: &str) -> Option<&str> {
        self.read(row);
        self.by_text.get(text).map(String::as_str)
    }
}

/// `lookup(entries, key)`: the text of a key, or NULL.
pub(super) fn lookup(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let columns = ColumnarValue::values_to_arrays(arguments)?;
    let [entries, keys] = &columns[..] else { unreachable!("two are declared") };
    let mut entries = Entries::new(entries);
    let keys = keys.as_string::<i32>();
    let texts = keys.iter().enumerate().map(|(row, key)| Some(entries.text(row, key?)?.to_owned()));
    Ok(ColumnarValue::Array(Arc::new(texts.collect::<StringArray>())))
}
