//! `alluvium.sources`: how far the inputs of tables are.

use std::fs;
use std::time::Duration;

use arrow::array::ArrayRef;

use super::{Relations, milliseconds, numbers, some_numbers, some_times};
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
        texts(rows.iter().map(|it| it.state.word())),
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
        some_numbers(lags.iter().map(|lag| lag.as_ref().and_then(|lag| lag.bytes))),
        some_numbers(lags.iter().map(|lag| lag.as_ref().and_then(|lag| lag.rows))),
        some_times(rows.iter().map(|it| it.last_rows)),
        some_numbers(
            lags.iter().map(|lag| lag.as_ref().and_then(|lag| lag.time.map(milliseconds))),
        ),
    ]
}

/// The part of a file, or of what another system has, that has not been read.
pub(super) struct Lag {
    /// `None` if the system does not know it.
    pub(super) bytes: Option<u64>,
    /// Of a file as many rows as there were in so many bytes before; `None` before the first.
    rows: Option<u64>,
    /// For how long all of it has been there; zero if there is none, and `None` if the system does not know it.
    pub(super) time: Option<Duration>,
}

impl Lag {
    /// `None` of what has no length: pipes, and folders.
    pub(super) fn of(input: &SourceProgress) -> Option<Self> {
        if input.state == SourceState::Finished {
            return Some(Self::default());
        }
        let is_none = input.unread == Some(0) || input.unread_bytes == Some(0);
        let nothing = is_none.then_some(0);
        if input.unread.or(input.unread_bytes).is_some() {
            let time = is_none.then_some(Duration::ZERO);
            let (bytes, rows) = (input.unread_bytes.or(nothing), input.unread.or(nothing));
            return Some(Self { bytes, rows, time });
        }
        let file = fs::metadata(&input.path).ok().filter(fs::Metadata::is_file)?;
        let bytes = file.len().saturating_sub(input.begun + input.bytes);
        if bytes == 0 {
            return Some(Self::default());
        }
        // The clock of the file system may be ahead.
        let time =
            file.modified().ok().and_then(|written| written.elapsed().ok()).unwrap_or_default();
        let rows = u128::from(bytes) * u128::from(input.rows + input.refused);
        let rows = rows.checked_div(u128::from(input.bytes));
        let rows = rows.and_then(|rows| u64::try_from(rows).ok());
        Some(Self { bytes: Some(bytes), rows, time: Some(time) })
    }
}

impl Default for Lag {
    /// None.
    fn default() -> Self {
        Self { bytes: Some(0), rows: Some(0), time: Some(Duration::ZERO) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_was_written_and_not_read_has_a_size_and_an_age() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        fs::write(&path, [b'x'; 100]).unwrap();
        let written = SystemTime::now() - Duration::from_secs(100);
        File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
        let lag = |state: SourceState, (begun, bytes, rows): (u64, u64, u64)| {
            let of = SourceProgress {
                table: "t".to_owned(),
                number: 0,
                name: "csv".to_owned(),
                kind: "file".to_owned(),
                path: path.clone(),
                state,
                rows,
                refused: 0,
                bytes,
                begun,
                minute_rows: 0,
                minute_bytes: 0,
                last_rows: None,
                position: None,
                unread: None,
                unread_bytes: None,
                messages: Vec::new(),
            };
            let long = |time: Duration| time >= Duration::from_secs(100);
            Lag::of(&of).map(|lag| (lag.bytes.unwrap(), lag.rows, lag.time.is_some_and(long)))
        };
        let running = || SourceState::Running;
        assert_eq!(lag(running(), (0, 0, 0)), Some((100, None, true)));
        assert_eq!(lag(running(), (0, 40, 8)), Some((60, Some(12), true)));
        assert_eq!(lag(running(), (50, 40, 8)), Some((10, Some(2), true)));
        assert_eq!(lag(running(), (60, 40, 8)), Some((0, Some(0), false)));
        assert_eq!(lag(SourceState::Finished, (0, 40, 8)), Some((0, Some(0), false)));
        fs::remove_file(&path).unwrap();
        assert_eq!(lag(running(), (0, 40, 8)), None);
    }
}
