//! Prepared statements that have names: PREPARE, EXECUTE and DEALLOCATE.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_sql::statement::{Named, Statement};
use alluvium_sql::texts;
use datafusion::scalar::ScalarValue;

use crate::error::{Error, Result, SqlState};
use crate::query::Execution;
use crate::session::{Outcome, Prepared, Session};

/// The prepared statements of a session, by their names. They are no part of transactions.
pub(in crate::session) type NamedStatements = BTreeMap<String, Arc<Prepared>>;

impl Session {
    pub(in crate::session) fn prepare_named(
        &mut self,
        name: &Named,
        statement: &Statement,
    ) -> Result<Outcome> {
        if self.named_statements.contains_key(&name.name) {
            let message = format!("there is already a prepared statement \"{}\"", name.name);
            let error = Error::sql(message).with_sqlstate(SqlState::DUPLICATE_STATEMENT);
            return Err(error.at(name.position));
        }
        let prepared = self.prepare_statement(statement)?;
        self.named_statements.insert(name.name.clone(), Arc::new(prepared));
        Ok(Outcome::Done)
    }

    /// Runs a prepared statement with the values of the single row of a query, which may have parameters itself.
    pub(in crate::session) fn execute_named(
        &mut self,
        name: &Named,
        values: Option<&Statement>,
        parameters: &[ScalarValue],
    ) -> Result<Outcome> {
        let prepared = self.named(name)?.clone();
        let values = match values {
            None => Vec::new(),
            Some(values) => self.values(values, parameters)?,
        };
        let types = prepared.description().parameters.iter().map(Option::as_ref);
        let types = types.chain(std::iter::repeat(None));
        let values: Result<Vec<ScalarValue>> = values
            .into_iter()
            .zip(types)
            .map(|(value, data_type)| match data_type {
                Some(data_type) => Ok(texts::cast_value(&value, data_type)?),
                None => Ok(value),
            })
            .collect();
        self.execute_in_block(&prepared, &values?)
    }

    /// The values in the single row of a query.
    fn values(&mut self, row: &Statement, parameters: &[ScalarValue]) -> Result<Vec<ScalarValue>> {
        let execution = Execution { statement: row, values: parameters, own: None };
        let Outcome::Rows(rows) = self.perform(execution, false)? else { return Ok(Vec::new()) };
        let batches = rows.into_batches()?;
        let columns = batches.iter().flat_map(|batch| batch.columns());
        columns.map(|column| Ok(ScalarValue::try_from_array(column, 0)?)).collect()
    }

    pub(in crate::session) fn deallocate(&mut self, name: Option<&Named>) -> Result<Outcome> {
        match name {
            None => self.named_statements.clear(),
            Some(name) => {
                self.named(name)?;
                self.named_statements.remove(&name.name);
            }
        }
        Ok(Outcome::Done)
    }

    /// The prepared statement of a name.
    pub(in crate::session) fn named(&self, name: &Named) -> Result<&Arc<Prepared>> {
        self.named_statements.get(&name.name).ok_or_else(|| {
            let message = format!("there is no prepared statement \"{}\"", name.name);
            Error::sql(message).with_sqlstate(SqlState::NO_STATEMENT).at(name.position)
        })
    }
}
