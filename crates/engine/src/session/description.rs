//! The parameters and the result of a statement, before it runs.

use std::sync::Arc;

use alluvium_sql::planner::parameter_types;
use alluvium_sql::planner::{PlannedWrite, as_written, parameter_count, typed};
use alluvium_sql::stack;
use alluvium_sql::statement::{Qualified, Statement, StatementKind, Subscribe};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::logical_expr::LogicalPlan;

use super::culprit::located_by;
use super::statements::describe;
use super::{Outcome, Session, depth};
use crate::catalog::{Entries, Scope};
use crate::error::{Error, Result};
use crate::query::{FileScope, Files, allow_nulls};

/// The column of an EXPLAIN, as Postgres calls it.
const PLAN: &str = "QUERY PLAN";

/// The parameters that a statement takes and the columns that it returns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// The type of each parameter, `$1` first: that of the column or expression with which it is compared or computed, or of
    /// the column that it is written to. `None` where nothing tells: values of any type are taken there. A client that has
    /// to name a type says VARCHAR, as Postgres does.
    pub parameters: Vec<Option<DataType>>,
    /// The columns of the result, with their names, types, and whether they may be NULL, as what is computed of a parameter may;
    /// `None` of a statement that returns no rows. A column that takes its type from a parameter without one is VARCHAR.
    pub columns: Option<SchemaRef>,
}

impl Session {
    /// Describes one statement without running it: nothing is started, read or changed. Of the files that a query names, the
    /// columns are looked up.
    ///
    /// Queries, SHOW, DESCRIBE, and changes with RETURNING have columns; so have EXPLAIN, which returns one text, and SUBSCRIBE,
    /// with those of its relation. Parameters are numbered from `$1` without gaps.
    ///
    /// Fails for what the session may not do, and where the statement would for what can be known before it runs, at the same place.
    pub fn describe(&mut self, sql: &str) -> Result<Description> {
        self.described_text(sql).map(|(_, _, description)| description)
    }

    /// The statement that a text is, with the schemas of the search path; what its names were completed by, and its
    /// description over the relations of before that.
    pub(super) fn described_text(
        &mut self,
        sql: &str,
    ) -> Result<(Statement, Option<Qualified>, Description)> {
        let statement = self.parsed(sql)?;
        self.in_block(Some(&statement.kind), |session| {
            session.within_limits(|session| session.described_statement(statement.clone()))
        })
    }

    fn described_statement(
        &mut self,
        statement: Statement,
    ) -> Result<(Statement, Option<Qualified>, Description)> {
        let Some(qualified) = self.qualified(&statement)? else {
            let entries = self
                .authorize_described(&statement)
                .map_err(|error| error.at(statement.position))?;
            let description = self.describe_statement(&statement, &entries)?;
            return Ok((statement, None, description));
        };
        let completed = qualified.statement.clone();
        let described = self
            .authorize_described(&completed)
            .map_err(|error| error.at(completed.position))
            .and_then(|entries| self.describe_statement(&completed, &entries));
        let described =
            described.map_err(|error| error.moved(|position| qualified.moved(position)))?;
        Ok((completed, Some(qualified), described))
    }

    /// Describes a statement over these relations.
    pub(super) fn describe_statement(
        &self,
        statement: &Statement,
        entries: &Arc<Entries>,
    ) -> Result<Description> {
        let poison = &self.instance().poison;
        poison.check()?;
        let depth = depth(&self.instance().definitions.catalog, statement);
        let described = poison.guard(|| {
            stack::with_room(depth, || {
                let count = parameter_count(&statement.kind)?;
                self.described(statement, count, entries)
            })
        });
        described.map_err(|error| self.told(error).at(statement.position))
    }

    fn described(
        &self,
        statement: &Statement,
        count: usize,
        entries: &Arc<Entries>,
    ) -> Result<Description> {
        let planner = &self.instance().definitions.planner;
        let without_parameters =
            |columns| Ok(Description { parameters: Vec::new(), columns: Some(columns) });
        match &statement.kind {
            StatementKind::Query(query) => {
                let files = self.files(query)?;
                let plan = planner.query(query, &FileScope { entries, files: &files })?;
                let parameters = parameter_types(&plan, count)?;
                let types = or_text(&parameters);
                let columns = self.columns(&plan, &types, entries, &files);
                let check =
                    |plan| Some(self.columns(&plan, &types, entries, &files).err()?.to_string());
                let columns = columns.map_err(|error| {
                    self.located_over((entries, &files), statement, error, &check)
                })?;
                let columns = as_written(&columns).unwrap_or(columns);
                Ok(Description { parameters, columns: Some(columns) })
            }
            StatementKind::LockingQuery(locking) => {
                // Relations that cannot be locked are refused here as well.
                planner.locking(locking, &Scope(entries))?;
                let kind = StatementKind::Query(locking.query.clone());
                let query = Statement { kind, ..statement.clone() };
                self.described(&query, count, entries)
            }
            StatementKind::ExplainSelect { query, .. } => {
                let files = self.files(query)?;
                let plan = planner.query(query, &FileScope { entries, files: &files })?;
                Ok(Description {
                    parameters: parameter_types(&plan, count)?,
                    columns: Some(text(PLAN)),
                })
            }
            StatementKind::CreateTableAs { query, .. } => {
                let files = self.files(query)?;
                let plan = planner.query(query, &FileScope { entries, files: &files })?;
                Ok(Description { parameters: parameter_types(&plan, count)?, columns: None })
            }
            StatementKind::Insert(insert) => {
                let files = self.files(&**insert)?;
                let scope = FileScope { entries, files: &files };
                let planned = planner.insert(insert, &scope)?;
                self.described_write(statement, planned, count, entries, &files)
            }
            StatementKind::Update(update) => {
                let files = self.files(update)?;
                let planned = planner.update(update, &FileScope { entries, files: &files })?;
                self.described_write(statement, planned, count, entries, &files)
            }
            StatementKind::Delete(delete) => {
                let files = self.files(delete)?;
                let planned = planner.delete(delete, &FileScope { entries, files: &files })?;
                self.described_write(statement, planned, count, entries, &files)
            }
            StatementKind::ShowTables => {
                without_parameters(schema_of(describe::show_tables(&Entries::default(), None)?))
            }
            StatementKind::ShowSources => {
                without_parameters(schema_of(describe::show_sources(Vec::new())?))
            }
            StatementKind::ShowSinks => {
                without_parameters(schema_of(describe::show_sinks(Vec::new())?))
            }
            StatementKind::Show { name, position } => {
                without_parameters(schema_of(self.show(name.as_deref(), *position)?))
            }
            StatementKind::Describe { name, position } => {
                let entry = entries.relation(name).map_err(|error| error.at(*position))?;
                without_parameters(schema_of(describe::describe(&entry)?))
            }
            StatementKind::DescribeFile { file, position } => {
                let described = self.describe_file(file).map_err(|error| error.at(*position));
                without_parameters(schema_of(described?))
            }
            StatementKind::Subscribe(Subscribe { name, position, .. }) => {
                let entry = entries.relation(name).map_err(|error| error.at(*position))?;
                entry.changes().map_err(|error| error.at(*position))?;
                without_parameters(entry.schema.clone())
            }
            StatementKind::ExplainView { name, position, .. }
            | StatementKind::ExplainState { name, position, .. }
            | StatementKind::ExplainAnalyze { name, position, .. } => {
                let entry = entries.relation(name).map_err(|error| error.at(*position))?;
                entry.as_view().map_err(|error| error.at(*position))?;
                without_parameters(text(PLAN))
            }
            StatementKind::DeclareCursor(cursor) => {
                let described = self.described(&cursor.query, count, entries)?;
                Ok(Description { columns: None, ..described })
            }
            StatementKind::Fetch { cursor, .. } => {
                without_parameters(self.columns_of_cursor(cursor)?)
            }
            StatementKind::Execute { name, values } => {
                let columns = self.named(name)?.description().columns.clone();
                let parameters = match values {
                    Some(values) => self.described(values, count, entries)?.parameters,
                    None => Vec::new(),
                };
                Ok(Description { parameters, columns })
            }
            StatementKind::CreateTable(_)
            | StatementKind::CreateView(_)
            | StatementKind::DeclareView(_)
            | StatementKind::Lateness(_)
            | StatementKind::CreateSchema(_)
            | StatementKind::DropSchema(_)
            | StatementKind::CreateSequence(_)
            | StatementKind::DropSequence(_)
            | StatementKind::RestartSequence(_)
            | StatementKind::CreateFunction(_)
            | StatementKind::DropFunction(_)
            | StatementKind::Alter(_)
            | StatementKind::AlterSource(_)
            | StatementKind::CreateSecret(_)
            | StatementKind::DropSecret(_)
            | StatementKind::CreateConnection(_)
            | StatementKind::DropConnection(_)
            | StatementKind::CreateSink(_)
            | StatementKind::DropSink(_)
            | StatementKind::DropTable(_)
            | StatementKind::DropView(_)
            | StatementKind::DropSeveral(_)
            | StatementKind::Truncate(_)
            | StatementKind::Refresh { .. }
            | StatementKind::Vacuum
            | StatementKind::Comment(_)
            | StatementKind::CreateRole(_)
            | StatementKind::AlterRole(_)
            | StatementKind::DropRole { .. }
            | StatementKind::Grant(_)
            | StatementKind::SetOwner(_)
            | StatementKind::SetRole(_)
            | StatementKind::CreateIndex(_)
            | StatementKind::DropIndex(_)
            | StatementKind::CreateTableFrom { .. }
            | StatementKind::Copy { .. }
            | StatementKind::CopyTo { .. }
            | StatementKind::CopyChanges { .. }
            | StatementKind::Listen(_)
            | StatementKind::Unlisten(_)
            | StatementKind::Start
            | StatementKind::Checkpoint
            | StatementKind::Set(_)
            | StatementKind::Reset { .. }
            | StatementKind::DiscardAll
            | StatementKind::Begin(_)
            | StatementKind::Commit { .. }
            | StatementKind::Rollback { .. }
            | StatementKind::Savepoint(_)
            | StatementKind::RollbackTo(_)
            | StatementKind::Release(_)
            | StatementKind::Prepare { .. }
            | StatementKind::Deallocate(_)
            | StatementKind::Move { .. }
            | StatementKind::Close(_) => Ok(Description { parameters: Vec::new(), columns: None }),
        }
    }

    fn described_write(
        &self,
        statement: &Statement,
        planned: PlannedWrite,
        count: usize,
        entries: &Arc<Entries>,
        files: &Files,
    ) -> Result<Description> {
        let parameters = planned.parameter_types(count)?;
        let types = or_text(&parameters);
        let columns = |plan: &LogicalPlan| {
            let plan = allow_nulls(typed(plan.clone(), &types)?)?;
            self.instance().reader.described(plan, entries, files)
        };
        let check = |plan| Some(columns(&plan).err()?.to_string());
        columns(&planned.plan)
            .map_err(|error| self.located_over((entries, files), statement, error, &check))?;
        let returned = planned.returning.map(|returning| -> Result<SchemaRef> {
            let table = entries.get(&planned.table);
            let schema = table.map_or_else(|| Arc::new(Schema::empty()), |of| of.schema.clone());
            let plan = returning.typed(&types)?.of(&RecordBatch::new_empty(schema))?;
            self.instance().reader.described(plan, entries, files)
        });
        Ok(Description { parameters, columns: returned.transpose()? })
    }

    /// An error of a description, at what it is about.
    fn located_over(
        &self,
        (entries, files): (&Entries, &Files),
        statement: &Statement,
        error: Error,
        check: &dyn Fn(LogicalPlan) -> Option<String>,
    ) -> Error {
        located_by(self.instance(), error, statement, FileScope { entries, files }, check)
    }

    /// The columns of the rows of a plan with parameters of these types.
    fn columns(
        &self,
        plan: &LogicalPlan,
        types: &[DataType],
        entries: &Arc<Entries>,
        files: &Files,
    ) -> Result<SchemaRef> {
        self.instance().reader.described(typed(plan.clone(), types)?, entries, files)
    }
}

/// The types by which columns are described.
fn or_text(parameters: &[Option<DataType>]) -> Vec<DataType> {
    parameters.iter().map(|known| known.clone().unwrap_or(DataType::Utf8)).collect()
}

/// One column of texts.
fn text(name: &str) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(name, DataType::Utf8, false)]))
}

fn schema_of(outcome: Outcome) -> SchemaRef {
    match outcome {
        Outcome::Rows(rows) => rows.schema().clone(),
        _ => Arc::new(Schema::empty()),
    }
}
