//! The database interface of `sqllogictest`: a session of the engine under test.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alluvium::arrow::array::RecordBatch;
use alluvium::arrow::datatypes::{DataType, SchemaRef};
use alluvium::unstable::tree;
use alluvium::{Outcome, Session, parse};
use alluvium_sql::statement::{Statement, StatementKind};
use sqllogictest::{ColumnType, DB, DBOutput};

use super::trial::{Skips, Trial};
use crate::answers::row::rows;

/// The type of a column, as one letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letter {
    Boolean,
    Integer,
    Real,
    Decimal,
    Text,
    Date,
    /// A timestamp.
    Instant,
    /// Any other type.
    Other,
}

impl ColumnType for Letter {
    fn from_char(letter: char) -> Option<Self> {
        Some(match letter {
            'B' => Self::Boolean,
            'I' => Self::Integer,
            'R' => Self::Real,
            'N' => Self::Decimal,
            'T' => Self::Text,
            'D' => Self::Date,
            'P' => Self::Instant,
            '?' => Self::Other,
            _ => return None,
        })
    }

    fn to_char(&self) -> char {
        match self {
            Self::Boolean => 'B',
            Self::Integer => 'I',
            Self::Real => 'R',
            Self::Decimal => 'N',
            Self::Text => 'T',
            Self::Date => 'D',
            Self::Instant => 'P',
            Self::Other => '?',
        }
    }
}

impl From<&DataType> for Letter {
    fn from(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Boolean,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text,
            DataType::Date32 | DataType::Date64 => Self::Date,
            DataType::Timestamp(..) => Self::Instant,
            integer if integer.is_integer() => Self::Integer,
            float if float.is_floating() => Self::Real,
            decimal if decimal.is_decimal() => Self::Decimal,
            _ => Self::Other,
        }
    }
}

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failure(String);

/// One client of the engine under test.
pub(crate) struct Client {
    trial: Arc<Mutex<Trial>>,
    session: Session,
    /// The number of the engine that it is a session of.
    engine: usize,
    /// The statements of the open transaction from its first definition on, and who skips each: the others run it when that is
    /// committed.
    staged: Vec<(Statement, Skips)>,
    /// The savepoints of the open transaction, and how much was staged then.
    savepoints: Vec<(String, usize)>,
}

impl Client {
    pub(crate) fn new(trial: &Arc<Mutex<Trial>>) -> Self {
        let (session, engine) = session(trial);
        let (staged, savepoints) = Default::default();
        Self { trial: trial.clone(), session, engine, staged, savepoints }
    }

    /// Has the other databases do the same as a statement.
    fn follow(&mut self, statement: Statement) {
        let mut trial = locked(&self.trial);
        match &statement.kind {
            StatementKind::Savepoint(savepoint) => {
                self.savepoints.push((savepoint.name.clone(), self.staged.len()));
            }
            StatementKind::RollbackTo(savepoint) => {
                let names = |(name, _): &(String, usize)| *name == savepoint.name;
                if let Some(place) = self.savepoints.iter().rposition(names) {
                    self.staged.truncate(self.savepoints[place].1);
                    self.savepoints.truncate(place + 1);
                }
            }
            StatementKind::Release(_) | StatementKind::Begin(_) => {}
            StatementKind::Commit { .. } => {
                let skips = trial.skips;
                for (staged, skips) in self.staged.drain(..) {
                    trial.skips = skips;
                    trial.follow(&staged);
                }
                trial.skips = skips;
                self.savepoints.clear();
            }
            StatementKind::Rollback { .. } => {
                self.staged.clear();
                self.savepoints.clear();
            }
            kind => {
                let is_definition = !matches!(
                    kind,
                    StatementKind::Insert(_) | StatementKind::Update(_) | StatementKind::Delete(_)
                );
                if self.session.in_transaction() && (is_definition || !self.staged.is_empty()) {
                    let skips = trial.skips;
                    self.staged.push((statement, skips));
                    return;
                }
            }
        }
        trial.follow(&statement);
    }
}

/// A session of the trial's engine, and the number of that.
fn session(trial: &Mutex<Trial>) -> (Session, usize) {
    let trial = locked(trial);
    (trial.engine().session(), trial.engines)
}

/// Locks the trial, also after a panic.
pub(crate) fn locked(trial: &Mutex<Trial>) -> MutexGuard<'_, Trial> {
    trial.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DB for Client {
    type Error = Failure;
    type ColumnType = Letter;

    fn run(&mut self, sql: &str) -> Result<DBOutput<Letter>, Failure> {
        if self.engine != locked(&self.trial).engines {
            (self.session, self.engine) = session(&self.trial);
        }
        let mut output = DBOutput::StatementComplete(0);
        for statement in parse(sql) {
            let statement = statement.map_err(|error| Failure(error.to_string()))?;
            let outcome =
                self.session.run(&statement).map_err(|error| Failure(error.to_string()))?;
            let statement = tree(&statement);
            let changes = matches!(
                statement.kind,
                StatementKind::Insert(_) | StatementKind::Update(_) | StatementKind::Delete(_)
            );
            if changes || !matches!(outcome, Outcome::Rows { .. } | Outcome::Text(_)) {
                self.follow(statement.clone());
                locked(&self.trial).judge();
            }
            output = rendered(outcome)?;
        }
        Ok(output)
    }

    fn engine_name(&self) -> &str {
        "alluvium"
    }
}

fn rendered(outcome: Outcome) -> Result<DBOutput<Letter>, Failure> {
    Ok(match outcome {
        Outcome::Rows(rows) => {
            let schema = rows.schema().clone();
            let batches = rows.into_batches().map_err(|error| Failure(error.to_string()))?;
            table(&schema, &batches)
        }
        Outcome::Text(text) => DBOutput::Rows {
            types: vec![Letter::Text],
            rows: text.lines().map(|line| vec![line.to_owned()]).collect(),
        },
        Outcome::Changed { rows, .. } | Outcome::Copied { rows, .. } => {
            DBOutput::StatementComplete(rows)
        }
        _ => DBOutput::StatementComplete(0),
    })
}

fn table(schema: &SchemaRef, batches: &[RecordBatch]) -> DBOutput<Letter> {
    DBOutput::Rows {
        types: schema.fields().iter().map(|field| field.data_type().into()).collect(),
        rows: rows(batches)
            .iter()
            .map(|row| row.iter().map(ToString::to_string).collect())
            .collect(),
    }
}
