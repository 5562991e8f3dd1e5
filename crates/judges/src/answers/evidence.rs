//! All that is known of a view after a transaction, and what does not fit together.

use super::compare::{Measure, difference};
use super::row::Row;

/// An answer, or why there is none.
pub(crate) type Answer = Result<Vec<Row>, String>;

/// What a view holds according to everybody who can say; `None` is who cannot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// Whether its query adds up floats that cancel.
    pub(crate) cancels: bool,
    /// What reading it gives.
    pub(crate) contents: Option<Answer>,
    /// Whether it is kept; if not, reading it evaluates its query.
    pub(crate) materialized: bool,
    /// The sum of all its changes since it was created.
    pub(crate) deltas: Option<Answer>,
    /// A snapshot taken later, and the sum of all changes since.
    pub(crate) late_deltas: Option<Answer>,
    /// DataFusion's answer over the tables.
    pub(crate) batch: Option<Answer>,
    /// SQLite's answer.
    pub(crate) sqlite: Option<Answer>,
    /// The naive evaluator's answer.
    pub(crate) naive: Option<Answer>,
    /// DuckDB's answer.
    pub(crate) duckdb: Option<Answer>,
}

impl Evidence {
    /// What is wrong; nothing if all agree.
    pub(crate) fn objections(&self) -> Vec<String> {
        let mut objections = Vec::new();
        // What is kept up to date step by step is held against all others; where a view is not kept, that is
        // the sum of its changes.
        let witness = if self.materialized { &self.contents } else { &self.deltas };
        let witness = match witness {
            Some(Ok(rows)) => rows,
            Some(Err(reason)) => return vec![format!("it cannot be read: {reason}")],
            None => match &self.contents {
                Some(Ok(rows)) => rows,
                Some(Err(reason)) => return vec![format!("it cannot be read: {reason}")],
                None => return Vec::new(),
            },
        };
        let contents = if self.materialized { None } else { self.contents.as_ref() };
        let evaluated = if self.cancels { Measure::Rough } else { Measure::Typed };
        let others = [
            ("what reading it gives", contents, evaluated),
            ("the sum of its changes", self.deltas.as_ref(), Measure::Identical),
            (
                "a later snapshot and the changes since",
                self.late_deltas.as_ref(),
                Measure::Identical,
            ),
            ("the batch answer", self.batch.as_ref(), evaluated),
            ("SQLite's answer", self.sqlite.as_ref(), Measure::Untyped),
            ("the naive answer", self.naive.as_ref(), Measure::Typed),
            ("DuckDB's answer", self.duckdb.as_ref(), Measure::Untyped),
        ];
        for (name, answer, measure) in others {
            let objection = match answer {
                None => None,
                Some(Ok(rows)) => difference(rows, witness, measure),
                Some(Err(reason)) => Some(reason.clone()),
            };
            objections.extend(objection.map(|objection| format!("against {name}: {objection}")));
        }
        objections
    }
}
