//! All answers about the contents of a view after a transaction, and their contradictions.

use super::compare::{Measure, difference};
use super::row::Row;

/// An answer, or why there is none.
pub(crate) type Answer = Result<Vec<Row>, String>;

/// The contents of a view according to each source; `None` if the source has no answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// Whether its query sums floats that cancel.
    pub(crate) cancels: bool,
    /// The rows read from it.
    pub(crate) contents: Option<Answer>,
    /// Whether it is materialized; if not, reading it evaluates its query.
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
    /// The contradictions; empty if all answers agree.
    pub(crate) fn objections(&self) -> Vec<String> {
        let mut objections = Vec::new();
        // The incrementally maintained contents are compared with all other answers. For a view that is not
        // materialized, these are the sum of its changes.
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
            ("the rows read", contents, evaluated),
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
