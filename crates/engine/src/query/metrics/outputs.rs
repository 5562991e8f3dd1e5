//! `alluvium.outputs`: how far the outputs of relations are.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};

use super::{Relations, milliseconds, numbers, some_numbers, some_times};
use crate::query::objects::{some_texts, texts};
use crate::sink::{OutputMode, ShownOutput};
use crate::subscription::feed::Waiting;

/// The outputs of the relations that are shown.
pub(super) fn columns(outputs: Vec<ShownOutput>, relations: &Relations<'_>) -> Vec<ArrayRef> {
    let mut rows = outputs;
    rows.retain(|it| relations.shows(&it.relation));
    let waiting = |number: fn(&Waiting) -> u64| {
        some_numbers(rows.iter().map(|it| it.waiting.as_ref().map(number)))
    };
    let mode = |mode| match mode {
        OutputMode::Changes => "changes",
        OutputMode::Contents => "contents",
    };
    vec![
        texts(rows.iter().map(|it| &it.relation)),
        texts(rows.iter().map(|it| it.path.display().to_string())),
        texts(rows.iter().map(|it| mode(it.mode))),
        texts(rows.iter().map(|it| it.state)),
        some_texts(rows.iter().map(|it| it.error.as_ref())),
        some_numbers(rows.iter().map(|it| it.epoch)),
        numbers(rows.iter().map(|it| it.rows)),
        numbers(rows.iter().map(|it| it.minute_rows)),
        waiting(|it| it.epochs),
        waiting(|it| it.rows),
        waiting(|it| it.bytes),
        waiting(|it| milliseconds(it.time)),
        some_times(rows.iter().map(|it| it.last_rows)),
        Arc::new(BooleanArray::from_iter(
            rows.iter().map(|it| it.waiting.map(|waiting| waiting.holds_commits)),
        )),
        Arc::new(BooleanArray::from_iter(rows.iter().map(|it| it.is_exact))),
    ]
}
