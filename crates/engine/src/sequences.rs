//! Sequences as statements see them: by their names, and with the values that a session has taken.

use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use alluvium_sql::error::Error as SqlError;
use alluvium_sql::functions::sequence::Sequences;
use alluvium_sql::functions::session::SessionFacts;
use alluvium_sql::name;
use alluvium_sql::planner::SystemSchemas;
use alluvium_sql::statement::SequenceOptions;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use parking_lot::Mutex;

use crate::authorizer::Action;
use crate::authorizer::Rights;
use crate::catalog::Entries;
use crate::durable::record::SequenceValue;
use crate::error::{Error, Result, SqlState};
use crate::query::{Reading, ShownSettings};
use crate::sequencer::Sequencer;
use crate::worker::Durable;

/// The values that a session has taken.
#[derive(Clone, Default)]
pub(crate) struct TakenValues(Arc<Mutex<Values>>);

#[derive(Default)]
struct Values {
    /// The last one of each sequence, by its name.
    by_name: HashMap<String, i64>,
    /// The sequence that was asked last.
    last: Option<String>,
}

impl TakenValues {
    /// The session has taken none.
    pub(crate) fn forget(&self) {
        *self.0.lock() = Values::default();
    }
}

/// The part of a session that takes values.
#[derive(Clone, Copy)]
pub(crate) struct Taker<'a> {
    pub(crate) taken: &'a TakenValues,
    /// The schemas in which names without one are looked for; `None` if there is only the default one.
    pub(crate) search_path: Option<&'a [String]>,
    /// Whether nothing may be changed.
    pub(crate) is_read_only: bool,
    pub(crate) settings: &'a dyn ShownSettings,
    /// The schemas and settings of the program's own.
    pub(crate) system: &'a SystemSchemas,
}

/// The sequences that a statement finds.
pub(crate) struct BoundSequences {
    entries: Arc<Entries>,
    sequencer: Arc<Sequencer>,
    taken: TakenValues,
    search_path: Option<Vec<String>>,
    /// Whose rights count; `None` if all may be taken.
    rights: Option<Rights>,
    is_read_only: bool,
    /// The session, if one takes the values.
    session: Option<Arc<dyn SessionFacts>>,
    /// Whether the values are seen before a commit that follows their record.
    durable: Durable,
}

impl Debug for BoundSequences {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BoundSequences").finish_non_exhaustive()
    }
}

impl BoundSequences {
    /// Those of generated columns, for rows that no session inserts.
    pub(crate) fn of_tables(entries: Arc<Entries>, sequencer: Arc<Sequencer>) -> Self {
        let (taken, search_path, rights, is_read_only, session) = Default::default();
        let durable = Durable::No;
        Self { entries, sequencer, taken, search_path, rights, is_read_only, session, durable }
    }

    /// Those that a statement reads.
    pub(crate) fn of_reading(reading: Reading<'_>, sequencer: Arc<Sequencer>) -> Self {
        let all = Self::of_tables(reading.entries.clone(), sequencer);
        let Some(taker) = reading.taker else { return all };
        let Taker { taken, search_path, is_read_only, settings, system } = taker;
        let (taken, search_path) = (taken.clone(), search_path.map(<[String]>::to_vec));
        let rights = reading.rights.cloned();
        let session = Some(settings.facts(system));
        Self { session, taken, search_path, rights, is_read_only, durable: reading.durable, ..all }
    }

    /// The name by which a sequence goes that a statement writes as a text, and its values.
    fn find(&self, written: &str) -> Result<(String, SequenceOptions)> {
        let (schema, name) = name::parts_of_text(written);
        let schemas = match (schema, &self.search_path) {
            (None, Some(path)) => path.iter().cloned().map(Some).collect(),
            (schema, _) => vec![schema],
        };
        let names = schemas.iter().map(|schema| name::qualified(schema.as_deref(), &name));
        let mut found = names.filter_map(|name| Some((self.entries.sequence(&name)?, name)));
        let (options, name) = found.next().ok_or_else(|| no_sequence(written))?;
        Ok((name, options))
    }

    fn changed(&self, written: &str, generated: bool) -> Result<(String, SequenceOptions)> {
        if generated {
            // It goes with its table, whose rights count.
            let options = self.entries.sequence(written).ok_or_else(|| no_sequence(written))?;
            return Ok((written.to_owned(), options));
        }
        let found = self.find(written)?;
        if self.is_read_only {
            let message = "the transaction is READ ONLY, and the values of a sequence are gone when they are taken";
            return Err(Error::sql(message).with_sqlstate(SqlState::READ_ONLY));
        }
        self.check(Action::Update, &found.0)?;
        Ok(found)
    }

    fn check(&self, action: Action, sequence: &str) -> Result<()> {
        let rights = self.rights.as_ref();
        let table = self.entries.generated(sequence).map(|(table, _)| &*table.name);
        rights.map_or(Ok(()), |rights| rights.check_sequence(action, sequence, table))
    }

    fn settle(&self, record: Option<alluvium_storage::Position>) -> Result<()> {
        match self.durable {
            Durable::Yes => self.sequencer.durable().settle(record),
            Durable::No => Ok(()),
        }
    }

    fn next_values(&self, written: &str, count: usize, generated: bool) -> Result<Vec<i64>> {
        let (name, options) = self.changed(written, generated)?;
        let taken = self.sequencer.next_values(&name, &options, count)?;
        if let Some(last) = taken.values.last() {
            let mut values = self.taken.0.lock();
            values.by_name.insert(name.clone(), *last);
            values.last = Some(name);
        }
        self.settle(taken.record)?;
        Ok(taken.values)
    }
}

impl Sequences for BoundSequences {
    fn session(&self) -> Option<Arc<dyn SessionFacts>> {
        self.session.clone()
    }

    fn next(&self, written: &str, count: usize, generated: bool) -> DataFusionResult<Vec<i64>> {
        self.next_values(written, count, generated).map_err(in_sql)
    }

    fn current(&self, written: &str) -> DataFusionResult<i64> {
        let current = || {
            let (name, _) = self.find(written)?;
            self.check(Action::Select, &name)?;
            let values = self.taken.0.lock();
            values.by_name.get(&name).copied().ok_or_else(|| {
                let message = format!("the session has taken no value of the sequence \"{name}\"");
                Error::sql(message).with_sqlstate(SqlState::NOT_IN_STATE)
            })
        };
        current().map_err(in_sql)
    }

    fn last(&self) -> DataFusionResult<i64> {
        let values = self.taken.0.lock();
        let last = values.last.as_ref().and_then(|name| values.by_name.get(name));
        last.copied().ok_or_else(|| {
            let message = "the session has taken no value of a sequence";
            in_sql(Error::sql(message).with_sqlstate(SqlState::NOT_IN_STATE))
        })
    }

    fn set(&self, written: &str, value: i64, is_called: bool) -> DataFusionResult<()> {
        let set = || {
            let (name, options) = self.changed(written, false)?;
            let last = SequenceValue { last: value, is_called };
            let record = self.sequencer.set_value(&name, &options, last)?;
            if is_called {
                self.taken.0.lock().by_name.insert(name, value);
            }
            self.settle(record)
        };
        set().map_err(in_sql)
    }
}

/// There is no sequence of this name.
pub(crate) fn no_sequence(name: &str) -> Error {
    Error::sql(format!("there is no sequence \"{name}\"")).with_sqlstate(SqlState::NO_RELATION)
}

/// An error as a function has it.
fn in_sql(error: Error) -> DataFusionError {
    let (message, sqlstate) = match &error {
        Error::Sql { message, .. } => (message.clone(), error.sqlstate()),
        _ => (error.to_string(), error.sqlstate()),
    };
    DataFusionError::External(Box::new(SqlError::new(message, None).with_sqlstate(sqlstate)))
}
