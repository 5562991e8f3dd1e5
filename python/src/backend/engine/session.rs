//! Sessions of an engine.

use alluvium::{Error, Outcome, Prepared, Value};

use crate::backend::{Answer, Session};
use crate::failure::{Failure, Fallible};

impl Session for alluvium::Session {
    fn run(&mut self, sql: &str, values: &[Value]) -> Fallible<Answer> {
        // A text of one statement may have a plan already, and is not parsed then. What is only a comment is no statement.
        let text = sql.trim().trim_end_matches(';');
        let is_one = !text.is_empty() && !text.contains(';') && !text.starts_with(['-', '/']);
        if is_one || !values.is_empty() {
            return Ok(self.execute_with(sql, values)?.into());
        }
        let mut last = Outcome::Done;
        for statement in alluvium::parse(sql) {
            if let Outcome::Rows(rows) = last {
                rows.into_batches()?;
            }
            last = alluvium::Session::run(self, &statement?)?;
        }
        Ok(last.into())
    }

    fn in_transaction(&self) -> bool {
        Self::in_transaction(self)
    }

    fn prepare(&mut self, sql: &str) -> Fallible<Option<Prepared>> {
        match Self::prepare(self, sql) {
            Ok(prepared) => Ok(Some(prepared)),
            Err(error) if is_of_statement(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn insert(&mut self, insert: &str) -> Fallible<Option<u64>> {
        match self.execute_with(insert, &[]) {
            Ok(Outcome::Changed { rows, .. }) => Ok(Some(rows)),
            Ok(_) => Ok(None),
            Err(error) if is_of_statement(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn run_each(
        &mut self,
        sql: &str,
        prepared: Option<&Prepared>,
        rows: &[Vec<Value>],
        place: &mut usize,
    ) -> Fallible<Option<u64>> {
        let mut changed = 0;
        for values in rows {
            let outcome = match prepared {
                Some(prepared) => self.execute_prepared(prepared, values),
                None => self.execute_with(sql, values),
            };
            match outcome? {
                Outcome::Changed { rows, .. } => changed += rows,
                Outcome::Rows(_) => return Ok(None),
                _ => {}
            }
            *place += 1;
        }
        Ok(Some(changed))
    }
}

/// Whether it is about what the statement says and about its rows.
fn is_of_statement(error: &Error) -> bool {
    matches!(error, Error::Sql { .. } | Error::Data { .. } | Error::Source { .. })
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Rows(rows) => rows.into(),
            Outcome::Changed { rows, epoch, .. } | Outcome::Copied { rows, epoch, .. } => {
                Self::Changed(rows, epoch)
            }
            Outcome::Moved { rows, .. } => Self::Moved(rows),
            Outcome::Text(text) => Self::Text(text),
            Outcome::Subscribed(_) => Self::Subscribed,
            _ => Self::Done,
        }
    }
}

impl From<alluvium::Rows> for Answer {
    fn from(rows: alluvium::Rows) -> Self {
        let schema = rows.schema().clone();
        Self::Rows(schema, Box::new(rows.map(|batch| batch.map_err(Failure::from))))
    }
}
