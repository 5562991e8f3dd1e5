//! `alluvium.sources`: how far the inputs of tables are.

use std::fs;

use arrow::array::ArrayRef;

use super::{Relations, numbers, some_numbers, some_times};
use crate::query::objects::{some_texts, texts};
use crate::source::{SourceProgress, SourceState};

/// The inputs of the tables that are shown.
pub(super) fn columns(inputs: Vec<SourceProgress>, relations: &Relations<'_>) -> Vec<ArrayRef> {
    let mut rows = inputs;
    rows.retain(|it| relations.shows(&it.table));
    let lags: Vec<Option<Lag>> = rows.iter().map(Lag::of).collect();
    vec![
        texts(rows.iter().map(|it| &it.table)),
        numbers(rows.iter().map(|it| u64::from(it.number))),
        texts(rows.iter().map(|it| &it.name)),
        texts(rows.iter().map(|it| it.path.display().to_string())),
        texts(rows.iter().map(|it| state(&it.state))),
        some_texts(rows.iter().map(|it| match &it.state {
            SourceState::Failed { message } => Some(message),
            _ => None,
        })),
        some_texts(rows.iter().map(|it| it.position.as_ref().map(ToString::to_string))),
        numbers(rows.iter().map(|it| it.rows)),
        numbers(rows.iter().map(|it| it.bytes)),
        numbers(rows.iter().map(|it| it.refused)),
        numbers(rows.iter().map(|it| it.minute_rows)),
        numbers(rows.iter().map(|it| it.minute_bytes)),
        some_numbers(lags.iter().map(|lag| lag.as_ref().map(|lag| lag.bytes))),
        some_numbers(lags.iter().map(|lag| lag.as_ref().and_then(|lag| lag.rows))),
        some_times(rows.iter().map(|it| it.last_rows)),
    ]
}

fn state(state: &SourceState) -> &'static str {
    match state {
        SourceState::Waiting => "waiting",
        SourceState::Running => "running",
        SourceState::Finished => "finished",
        SourceState::Failed { .. } => "failed",
    }
}

/// The part of a file that has not been read.
pub(super) struct Lag {
    pub(super) bytes: u64,
    /// As many rows as there were in so many bytes before; `None` before the first.
    rows: Option<u64>,
}

impl Lag {
    /// `None` of what has no length: pipes, and folders.
    pub(super) fn of(input: &SourceProgress) -> Option<Self> {
        if input.state == SourceState::Finished {
            return Some(Self { bytes: 0, rows: Some(0) });
        }
        let file = fs::metadata(&input.path).ok().filter(fs::Metadata::is_file)?;
        let bytes = file.len().saturating_sub(input.bytes);
        let rows = u128::from(bytes) * u128::from(input.rows + input.refused);
        let rows = rows.checked_div(u128::from(input.bytes));
        Some(Self { bytes, rows: rows.and_then(|rows| u64::try_from(rows).ok()) })
    }
}
