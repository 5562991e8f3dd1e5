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

/// Lists of entries, one for each row: mostly the same one.
pub(super) struct Entries {
    lists: ListArray,
    /// The list that was read last.
    last: Option<ArrayRef>,
    by_key: HashMap<String, String>,
    by_text: HashMap<String, String>,
}

impl Entries {
    pub(super) fn new(lists: &ArrayRef) -> Self {
        let lists = lists.as_list::<i32>().clone();
        Self { lists, last: None, by_key: HashMap::new(), by_text: HashMap::new() }
    }

    /// The list of a row.
    fn read(&mut self, row: usize) {
        let list = match self.lists.is_valid(row) {
            true => self.lists.value(row),
            false => Arc::new(StringArray::from(Vec::<&str>::new())),
        };
        if self.last.as_ref().is_some_and(|last| **last == *list) {
            return;
        }
        (self.by_key, self.by_text) = Default::default();
        for entry in list.as_string::<i32>().iter().flatten() {
            if let Some((key, text)) = entry.split_once(SEPARATOR) {
                self.by_key.insert(key.to_owned(), text.to_owned());
                self.by_text.entry(text.to_owned()).or_insert_with(|| key.to_owned());
            }
        }
        self.last = Some(list);
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
