//! Changes as texts of JSON, each of a bounded size.

use alluvium::Change;
use arrow::json::WriterBuilder;
use arrow::json::writer::JsonArray;

use crate::http::problem::Problem;
use crate::http::results::rows_of;

/// How many bytes of rows, as they are in memory, one part has; one row may have more.
const PART: usize = 1 << 20;

/// Some of the changes of an epoch.
#[derive(Debug, PartialEq)]
pub(super) struct Part {
    pub(super) epoch: u64,
    /// Whether its rows are part of all rows that there are.
    pub(super) is_snapshot: bool,
    /// Whether it is the last of its epoch: a client that has it has the epoch.
    pub(super) is_last: bool,
    /// An object with the epoch, the rows, and by how many copies each of them changes.
    pub(super) text: String,
}

/// The parts of a change, one after the other.
pub(super) struct Parts {
    change: Change,
    /// The first row that was not encoded.
    next: usize,
    /// The rows of a part.
    rows: usize,
    is_over: bool,
}

impl Parts {
    /// The parts of a change; one of no rows has one.
    pub(super) fn new(change: Change) -> Self {
        let rows = rows_of(&change.rows, PART);
        Self { change, next: 0, rows, is_over: false }
    }

    /// The next part.
    pub(super) fn next(&mut self) -> Option<Result<Part, Problem>> {
        if self.is_over {
            return None;
        }
        let all = self.change.rows.num_rows();
        let rows = self.rows.min(all - self.next);
        let first = self.next;
        self.next += rows;
        self.is_over = self.next >= all;
        Some(self.encoded(first, rows))
    }

    fn encoded(&self, first: usize, rows: usize) -> Result<Part, Problem> {
        let Change { epoch, is_snapshot, .. } = self.change;
        let (is_first, is_last) = (first == 0, self.is_over);
        let weights: Vec<String> =
            self.change.weights[first..first + rows].iter().map(i64::to_string).collect();
        let head = format!(
            "{{\"epoch\":{epoch},\"snapshot\":{is_snapshot},\"first\":{is_first},\"last\":{is_last},\"weights\":[{}],\"rows\":",
            weights.join(",")
        );
        let mut writer =
            WriterBuilder::new().with_explicit_nulls(true).build::<_, JsonArray>(head.into_bytes());
        let written = writer
            .write(&self.change.rows.slice(first, rows))
            .and_then(|()| writer.finish())
            .map_err(alluvium::Error::from);
        written.map_err(|error| Problem::of(&error))?;
        let mut text = writer.into_inner();
        text.push(b'}');
        let text = String::from_utf8(text)
            .map_err(|_| Problem::bad("the rows cannot be written as JSON"))?;
        Ok(Part { epoch, is_snapshot, is_last, text })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use serde_json::Value;

    use super::*;

    fn parts(change: Change) -> Vec<Part> {
        let mut parts = Parts::new(change);
        std::iter::from_fn(|| parts.next()).collect::<Result<_, _>>().expect("parts")
    }

    #[test]
    fn small_changes_are_one_part_and_large_ones_several() {
        let rows = |texts: Vec<String>| {
            let (keys, texts) = (0..texts.len() as i64, StringArray::from(texts));
            let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
            RecordBatch::try_from_iter([("k", keys), ("v\n", Arc::new(texts) as ArrayRef)])
        };
        let small = rows(vec!["a\nb".to_owned()]).expect("rows");
        let found = parts(Change::new(7, small, vec![-2]));
        let expected = r#"{"epoch":7,"snapshot":false,"first":true,"last":true,"weights":[-2],"rows":[{"k":0,"v\n":"a\nb"}]}"#;
        assert_eq!((found.len(), found[0].text.as_str()), (1, expected));
        let none = parts(Change::new(0, rows(Vec::new()).expect("no rows"), Vec::new()));
        assert!(none.len() == 1 && none[0].text.ends_with("\"weights\":[],\"rows\":[]}"));
        let large = rows(vec!["x".repeat(1 << 20); 5]).expect("rows");
        let found = parts(Change::new(8, large, vec![1; 5]));
        assert!(found.len() >= 4, "{}", found.len());
        let last: Vec<bool> = found.iter().map(|part| part.is_last).collect();
        assert_eq!(last.iter().position(|last| *last), Some(found.len() - 1));
        let keys = found.iter().flat_map(|part| {
            let part: Value = serde_json::from_str(&part.text).expect("JSON");
            part["rows"].as_array().expect("rows").clone()
        });
        let keys: Vec<_> = keys.filter_map(|row| row["k"].as_i64()).collect();
        assert_eq!(keys, [0, 1, 2, 3, 4]);
    }
}
