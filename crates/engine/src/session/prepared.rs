//! Statements that are prepared once and run many times.

use std::fmt;
use std::sync::Arc;

use alluvium_sql::statement::{Qualified, Statement};
use datafusion::scalar::ScalarValue;

use super::{Description, Outcome, Session};
use crate::catalog::Entries;
use crate::error::{Error, Result, SqlState};
use crate::interrupt;
use crate::query::{Execution, OwnPlan};
use crate::value::Value;

/// A statement that was parsed and described once, to be run many times by any session of its engine, from any thread:
/// [`Session::prepare`] makes it, [`Session::execute_prepared`] runs it.
///
/// Its plan is made when it first runs, and is kept if it finds rows by key or inserts rows of VALUES. A read of one row by the whole
/// key of a table or a materialized view then looks it up as [`View::get`](crate::View::get) does. A definition (`CREATE`,
/// `ALTER`, `DROP`) ends plans: the statement is planned again when it runs next, and fails if its columns are others by then.
///
/// Its names mean what they did by the search path of the session that prepared it. Rights are those of the session that runs it.
pub struct Prepared {
    statement: Statement,
    /// The schemas that its names were completed by, if they were.
    qualified: Option<Qualified>,
    /// The search path of the session that prepared it; `None` is the usual one.
    search_path: Option<Vec<String>>,
    description: Description,
    plan: OwnPlan,
}

impl Prepared {
    /// Its text, without a semicolon, and with the schemas of a search path.
    pub fn text(&self) -> &str {
        &self.statement.text
    }

    /// The statement, with its names complete.
    pub(crate) fn statement(&self) -> &Statement {
        &self.statement
    }

    /// Where its plan is kept.
    pub(super) fn plan(&self) -> &OwnPlan {
        &self.plan
    }

    /// Its command, as [`Statement::command`](crate::Statement::command) has it.
    pub fn command(&self) -> &'static str {
        self.statement.command()
    }

    /// The parameters that it takes and the columns that it returns.
    pub fn description(&self) -> &Description {
        &self.description
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Prepared")
            .field("text", &self.text())
            .field("description", &self.description)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Parses and [describes](Session::describe) one statement, to be run many times.
    ///
    /// ```
    /// let db = alluvium::Engine::builder().workers(1).open_in_memory()?;
    /// db.execute("CREATE TABLE item (id BIGINT PRIMARY KEY, name VARCHAR)")?;
    /// let mut session = db.session();
    /// let insert = session.prepare("INSERT INTO item VALUES ($1, $2)")?;
    /// assert_eq!(insert.description().parameters.len(), 2);
    /// for id in 0..10_i64 {
    ///     session.execute_prepared(&insert, &[id.into(), "a name".into()])?;
    /// }
    /// # Ok::<(), alluvium::Error>(())
    /// ```
    pub fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        // If there are others meanwhile, it is described again when it runs.
        let entries = self.catalog_entries();
        let (statement, qualified, description) = self.described_text(sql)?;
        let plan = OwnPlan::new(description.columns.clone(), &entries);
        let search_path = self.settings.search_path().map(<[String]>::to_vec);
        Ok(Prepared { statement, qualified, search_path, description, plan })
    }

    /// As [`Session::prepare`], of a statement whose names are complete.
    pub(super) fn prepare_statement(&mut self, statement: &Statement) -> Result<Prepared> {
        let entries = self.authorize(statement)?;
        let description = self.describe_statement(statement, &entries)?;
        let plan = OwnPlan::new(description.columns.clone(), &entries);
        let search_path = self.settings.search_path().map(<[String]>::to_vec);
        let statement = statement.clone();
        Ok(Prepared { statement, qualified: None, search_path, description, plan })
    }

    /// Runs a prepared statement with a value for each of its parameters, as [`Session::execute_with`] does.
    ///
    /// Fails if the statement returns other columns than it did when it was prepared, because of definitions since: prepare it
    /// again.
    pub fn execute_prepared(&mut self, prepared: &Prepared, values: &[Value]) -> Result<Outcome> {
        let values = Value::scalars(values);
        self.note_statement(|| prepared.statement.command());
        let _statement = self.logged(Some(prepared.statement.command()));
        self.in_block(Some(&prepared.statement.kind), |session| {
            session.execute_in_block(prepared, values)
        })
    }

    /// Whether this is what [`Session::prepare`] would make of the same text now: its plan is kept, and the session may run it. Does not block.
    pub(super) fn is_as_prepared(&mut self, prepared: &Prepared) -> bool {
        if self.is_aborted() || prepared.search_path.as_deref() != self.settings.search_path() {
            return false;
        }
        let entries = interrupt::without_waits(|| self.authorize(&prepared.statement));
        entries.is_ok_and(|entries| prepared.plan.is_kept(&entries))
    }

    pub(super) fn execute_in_block(
        &mut self,
        prepared: &Prepared,
        values: &[ScalarValue],
    ) -> Result<Outcome> {
        let Prepared { statement, description, plan, .. } = prepared;
        let (wanted, given) = (description.parameters.len(), values.len());
        if wanted != given {
            let message =
                format!("the statement has {wanted} parameters, and {given} values were given");
            return Err(Error::sql(message).at(statement.position));
        }
        let performed = self.perform(Execution { statement, values, own: Some(plan) }, true);
        performed.map_err(|error| match &prepared.qualified {
            Some(qualified) => error.moved(|position| qualified.moved(position)),
            None => error,
        })
    }

    /// The relations of this moment, for a statement. Fails if it was prepared, and returns other columns over these.
    pub(super) fn entries(&self, execution: Execution<'_>) -> Result<Arc<Entries>> {
        let entries = self.catalog_entries();
        let Execution { statement, own, .. } = execution;
        if let Some(own) = own
            && !own.is_described_for(&entries)
        {
            let described = self.describe_statement(statement, &entries)?;
            if !own.set_described(described.columns.as_ref(), &entries) {
                return Err(Error::sql(
                    "cached plan must not change result type: since the statement was prepared its columns have changed, prepare it again",
                )
                .with_sqlstate(SqlState::NOT_SUPPORTED));
            }
        }
        Ok(entries)
    }
}
