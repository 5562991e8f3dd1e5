//! A relation: a table or a view.

use std::sync::{Arc, OnceLock};

use alluvium_sql::catalog::{DeclaredRecursion, Relation};
use alluvium_sql::name;
use alluvium_sql::plan::node::ViewRows;
use alluvium_sql::plan::{IncrementalPlan, KeptBy, LowerBounds, PlannedView};
use alluvium_sql::planner::defaults;
use alluvium_sql::planner::{Checks, Extent, Planner, type_name};
use alluvium_sql::statement::{
    KEEPING, Lateness, TableDefinition, ViewDefinition, ViewKind, ViewLateness,
};
use alluvium_trace::Epoch;
use arrow::datatypes::SchemaRef;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::{IndexInfo, NamedIndex, Temporary, Uses};
use crate::error::{Error, Result, SqlState};
use crate::transaction::KeyColumns;
use crate::worker::DataflowId;

/// A relation in the catalog.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) schema: SchemaRef,
    /// The relations it names.
    pub(crate) depends: Vec<String>,
    pub(crate) definition: Definition,
    /// Its indexes: of its UNIQUE constraints, and then in the order in which they were created.
    pub(crate) indexes: Vec<Arc<NamedIndex>>,
    /// Why it has failed, if it has: then it has no dataflow.
    pub(crate) failed: Option<Arc<str>>,
    /// As of epochs before this one it was not there, or did not have its rows: it was altered.
    pub(crate) since: Epoch,
    /// Whether an open transaction has created it, which alone sees it: it has no dataflow yet.
    pub(crate) is_staged: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Definition {
    Table(Table),
    View(View),
    /// A view that is declared, and not complete.
    Declared(Declared),
}

/// A view that recurs, before all views are there that it recurs over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declared {
    /// The view, if it is created.
    pub(crate) view: Option<Arc<Waiting>>,
}

/// A view that waits for others.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) definition: ViewDefinition,
    pub(crate) planned: PlannedView,
}

/// A table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) id: DataflowId,
    /// Empty without a primary key.
    pub(crate) primary_key: Vec<usize>,
    /// The columns of a primary key that is not enforced; empty without one.
    pub(crate) promised_key: Vec<usize>,
    /// With the values of generated columns.
    pub(crate) defaults: Vec<Option<Expr>>,
    /// Whether it keeps its contents.
    pub(crate) kept: bool,
    /// Whether rows are only ever inserted. A table that keeps nothing and is not append-only takes unchecked changes.
    pub(crate) append_only: bool,
    /// How late its rows may come, by columns that differ.
    pub(crate) lateness: Vec<Lateness>,
    /// Whether rows that come too late are shown.
    pub(crate) shows_late: bool,
    /// For how many microseconds it has had no rows when it is idle.
    pub(crate) idle_after: Option<i64>,
    /// Its part as a temporary relation, if it is a session's own.
    pub(crate) temporary: Option<Arc<Temporary>>,
    /// Its definition.
    pub(crate) defined: Box<TableDefinition>,
    /// How its primary key is encoded, once that is asked for.
    pub(crate) keys: OnceLock<Arc<KeyColumns>>,
    /// The conditions that its rows have to meet, once these are asked for.
    pub(crate) checks: OnceLock<Arc<Checks>>,
}

impl Table {
    /// Refuses to delete rows of a table, called `name`, that keeps none or is append-only.
    pub(crate) fn check_delete(&self, name: &str) -> Result<()> {
        if !self.kept {
            return Err(Error::sql(format!("\"{name}\" keeps no rows to delete: {KEEPING}")));
        }
        if self.append_only {
            return Err(Error::sql(format!("\"{name}\" is 'append_only': rows only enter it")));
        }
        Ok(())
    }

    /// Refuses unchecked changes of a table, called `name`, that keeps its contents or is append-only.
    pub(crate) fn check_unchecked(&self, name: &str) -> Result<()> {
        if self.kept {
            let message = format!("\"{name}\" keeps its contents: insert and delete its rows");
            return Err(Error::sql(message));
        }
        if self.append_only {
            return Err(Error::sql(format!("\"{name}\" is 'append_only': insert its rows")));
        }
        Ok(())
    }
}

/// A view.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// Its dataflow; `None` for a local view, which has none.
    pub(crate) id: Option<DataflowId>,
    pub(crate) kind: ViewKind,
    /// The plan that stands in its place in queries and views that name it.
    pub(crate) logical: Arc<LogicalPlan>,
    /// The size of that plan.
    pub(crate) extent: Extent,
    /// The column by which its rows are final, if it has no others.
    pub(crate) emit_final: Option<usize>,
    /// How late its changes may come, by columns that differ.
    pub(crate) lateness: Vec<Lateness>,
    /// The statements that say so.
    pub(crate) late_by: Vec<ViewLateness>,
    pub(crate) plan: Arc<IncrementalPlan>,
    /// The lower bounds of its columns.
    pub(crate) bounds: Arc<LowerBounds>,
    /// The recursion that it is part of, if it recurs.
    pub(crate) recursion: Option<Arc<DeclaredRecursion>>,
    /// The views that a local view reads that are declared and not complete.
    pub(crate) awaits: Vec<String>,
    /// The functions that its text calls and that SQL defines.
    pub(crate) calls: Vec<String>,
    pub(crate) uses: Uses,
    /// The statement that created it.
    pub(crate) text: String,
    /// Its state and the reasons for it, once these were asked for.
    pub(crate) kept: OnceLock<Vec<KeptBy>>,
}

impl View {
    /// This local view, called `entry`, with another plan.
    pub(crate) fn planned_again(&self, entry: &Entry, planned: PlannedView) -> Entry {
        let definition = Definition::View(View {
            id: self.id,
            kind: self.kind,
            logical: planned.logical,
            extent: planned.extent,
            emit_final: planned.emit_final,
            lateness: planned.lateness,
            late_by: self.late_by.clone(),
            plan: Arc::new(planned.plan),
            bounds: planned.bounds,
            recursion: self.recursion.clone(),
            awaits: planned.awaits,
            calls: planned.calls,
            uses: Uses::default(),
            text: self.text.clone(),
            kept: OnceLock::new(),
        });
        let (name, depends) = (entry.name.clone(), planned.depends);
        let (indexes, failed) = Default::default();
        let (schema, since, is_staged) = (planned.schema, entry.since, entry.is_staged);
        Entry { name, schema, depends, definition, indexes, failed, since, is_staged }
    }
}

/// A table or view, as [`crate::Engine::relations`] lists it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RelationInfo {
    /// The [name](crate::name) it goes by.
    pub name: String,
    /// Its kind.
    pub kind: RelationKind,
    /// Its columns.
    pub schema: SchemaRef,
    /// The statement that created it, if the engine has a state directory; `None` of a table with the columns of a file or a
    /// query.
    pub definition: Option<String>,
    /// SQL that defines it: the text as written or, of a table with the columns of a file or a query, a statement that creates a
    /// table like it.
    pub sql: String,
    /// The relations that it names.
    pub reads: Vec<String>,
    /// The functions that it calls and that SQL defines.
    pub calls: Vec<String>,
    /// Whether rows have passed through it that are not kept, so that nothing new can read it.
    pub has_passed: bool,
    /// The columns of a table's primary key; empty without one.
    pub primary_key: Vec<usize>,
    /// The indexes that statements created on it.
    pub indexes: Vec<IndexInfo>,
    /// The statements of [COMMENT ON](https://www.postgresql.org/docs/current/sql-comment.html) for it and its
    /// columns.
    pub comments: Vec<String>,
    /// Why it has failed, if it has: it is not kept up to date, until `ALTER VIEW … RESUME`.
    pub failed: Option<String>,
    /// How many deletions were refused because the row was not there; only of a table without a primary key.
    pub refused: u64,
    /// How many rows came too late and were dropped; only of a table or view with LATENESS.
    pub late: u64,
}

/// The kinds of relations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RelationKind {
    /// A table.
    Table,
    /// A view whose changes are an output.
    View,
    /// A view that only serves other views.
    LocalView,
    /// A view whose rows are kept.
    MaterializedView,
    /// A view that is declared, and does not exist before all views are created that it recurs over.
    DeclaredView,
}

impl RelationKind {
    /// The kind of a view that is defined so.
    pub(crate) fn of_view(kind: ViewKind) -> Self {
        match kind {
            ViewKind::Local => Self::LocalView,
            ViewKind::Plain => Self::View,
            ViewKind::Materialized => Self::MaterializedView,
        }
    }

    /// Its name in messages.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::View => "view",
            Self::LocalView => "local view",
            Self::MaterializedView => "materialized view",
            Self::DeclaredView => "declared view",
        }
    }
}

impl Entry {
    /// A table that a dataflow keeps. The indexes of its UNIQUE constraints are not built.
    pub(crate) fn of_table(definition: &TableDefinition, id: DataflowId) -> Result<Self> {
        let table = Table {
            id,
            primary_key: definition.primary_key.clone(),
            promised_key: definition.promised_key.clone(),
            keys: OnceLock::new(),
            checks: OnceLock::new(),
            defaults: defaults(definition)?,
            kept: definition.is_kept(),
            append_only: definition.is_append_only(),
            lateness: definition.lateness.clone(),
            shows_late: definition.shows_late_rows(),
            idle_after: definition.idle_after(),
            temporary: None,
            defined: Box::new(definition.clone()),
        };
        Ok(Self {
            name: definition.name.clone(),
            schema: definition.schema.clone(),
            depends: Vec::new(),
            definition: Definition::Table(table),
            indexes: NamedIndex::of_uniques(definition)?,
            failed: None,
            since: 0,
            is_staged: false,
        })
    }

    /// A view that is planned, with its dataflow and the indexes that it uses.
    pub(crate) fn of_view(
        definition: &ViewDefinition,
        planned: PlannedView,
        (id, uses): (Option<DataflowId>, Uses),
        recursion: Option<Arc<DeclaredRecursion>>,
    ) -> Self {
        let view = View {
            id,
            kind: definition.kind,
            logical: planned.logical,
            extent: planned.extent,
            emit_final: planned.emit_final,
            lateness: planned.lateness,
            late_by: definition.lateness.clone(),
            plan: Arc::new(planned.plan),
            bounds: planned.bounds,
            recursion,
            awaits: planned.awaits,
            calls: planned.calls,
            uses,
            text: definition.text.clone(),
            kept: OnceLock::new(),
        };
        Self {
            name: definition.name.clone(),
            schema: planned.schema,
            depends: planned.depends,
            definition: Definition::View(view),
            indexes: Vec::new(),
            failed: None,
            since: 0,
            is_staged: false,
        }
    }

    pub(crate) fn kind(&self) -> RelationKind {
        match &self.definition {
            Definition::Table(_) => RelationKind::Table,
            Definition::View(view) => RelationKind::of_view(view.kind),
            Definition::Declared(_) => RelationKind::DeclaredView,
        }
    }

    /// SQL that defines it.
    pub(crate) fn sql(&self) -> String {
        match &self.definition {
            Definition::View(view) => {
                let declared = view.recursion.as_ref().map(|_| self.declaration());
                let said = view.late_by.iter().map(|lateness| lateness.text.as_str());
                let said = declared.as_deref().into_iter().chain(said);
                said.chain([view.text.as_str()]).collect::<Vec<_>>().join(";\n")
            }
            Definition::Table(table) if !table.defined.text.is_empty() => {
                table.defined.text.clone()
            }
            Definition::Table(_) => {
                format!("CREATE TABLE {} ({})", name::written(&self.name), self.columns())
            }
            Definition::Declared(Declared { view }) => {
                let text = view.as_ref().map(|waiting| waiting.definition.text.as_str());
                let declared = self.declaration();
                [declared.as_str()].into_iter().chain(text).collect::<Vec<_>>().join(";\n")
            }
        }
    }

    /// The statement that declares it, if it recurs.
    fn declaration(&self) -> String {
        format!("DECLARE RECURSIVE VIEW {} ({})", name::written(&self.name), self.columns())
    }

    /// Its columns and their types as SQL spells them.
    fn columns(&self) -> String {
        let columns = self.schema.fields().iter().map(|field| {
            format!("{} {}", name::spelled(field.name()), type_name(field.data_type()))
        });
        columns.collect::<Vec<_>>().join(", ")
    }

    /// The functions that it calls and that SQL defines.
    pub(crate) fn calls(&self) -> &[String] {
        match &self.definition {
            Definition::Table(_) => &[],
            Definition::View(view) => &view.calls,
            Definition::Declared(Declared { view }) => {
                view.as_ref().map_or(&[], |waiting| &waiting.planned.calls)
            }
        }
    }

    /// Its dataflow, if it has one.
    pub(crate) fn dataflow(&self) -> Option<DataflowId> {
        match &self.definition {
            _ if self.is_staged => None,
            Definition::Table(table) => Some(table.id),
            Definition::View(view) => view.id,
            Definition::Declared(_) => None,
        }
    }

    /// The same, which has failed.
    pub(crate) fn stopped(&self, reason: &Arc<str>) -> Self {
        let mut entry = Self { failed: Some(reason.clone()), ..self.clone() };
        if let Definition::View(view) = &mut entry.definition {
            (view.id, view.uses) = Default::default();
        }
        let indexes = self.indexes.iter().map(|index| Arc::new(index.stopped()));
        entry.indexes = indexes.collect();
        entry
    }

    /// Fails if it has failed.
    pub(crate) fn check_runs(&self) -> Result<()> {
        match &self.failed {
            None => Ok(()),
            Some(reason) => {
                Err(Error::Failed { view: self.name.clone(), reason: reason.to_string() })
            }
        }
    }

    /// Whether its dataflow keeps its rows.
    pub(crate) fn keeps_rows(&self) -> bool {
        match &self.definition {
            Definition::Table(table) => table.kept,
            Definition::View(view) => view.kind == ViewKind::Materialized,
            Definition::Declared(_) => false,
        }
    }

    pub(crate) fn is_table(&self) -> bool {
        matches!(self.definition, Definition::Table(_))
    }

    /// The same relation, whose rows are there as of an epoch and later ones.
    pub(crate) fn since(mut self, epoch: Epoch) -> Self {
        self.since = epoch;
        self
    }

    /// Whether a transaction that reads as of an epoch finds the rows that it has then. The dataflows of views say so themselves as
    /// well.
    pub(crate) fn is_there_as_of(&self, epoch: Epoch) -> bool {
        self.since <= epoch
    }

    /// Whether a row that is inserted into a table takes the place of one with its key.
    pub(crate) fn replaces(&self) -> bool {
        self.as_table().is_ok_and(|table| table.defined.replaces())
    }

    /// How the primary key of a table is encoded; `None` if the relation has none.
    pub(crate) fn key_columns(&self) -> Result<Option<&Arc<KeyColumns>>> {
        let Ok(table) = self.as_table() else { return Ok(None) };
        if table.primary_key.is_empty() {
            return Ok(None);
        }
        if let Some(keys) = table.keys.get() {
            return Ok(Some(keys));
        }
        let keys = Arc::new(KeyColumns::new(&self.schema, &table.primary_key)?);
        Ok(Some(table.keys.get_or_init(|| keys)))
    }

    /// The conditions that the rows of a table have to meet; `None` if there are none.
    pub(crate) fn checks(&self, planner: &Planner) -> Result<Option<&Arc<Checks>>> {
        let Ok(table) = self.as_table() else { return Ok(None) };
        if table.defined.checks.is_empty() {
            return Ok(None);
        }
        if let Some(checks) = table.checks.get() {
            return Ok(Some(checks));
        }
        let checks = Arc::new(planner.checks(&table.defined)?);
        Ok(Some(table.checks.get_or_init(|| checks)))
    }

    pub(crate) fn as_table(&self) -> Result<&Table> {
        match &self.definition {
            Definition::Table(table) => Ok(table),
            Definition::View(_) | Definition::Declared(_) => Err(Error::sql(format!(
                "\"{}\" is a {}, not a table",
                self.name,
                self.kind().noun()
            ))),
        }
    }

    pub(crate) fn as_view(&self) -> Result<&View> {
        match &self.definition {
            Definition::View(view) => Ok(view),
            Definition::Table(_) => {
                Err(Error::sql(format!("\"{}\" is a table, not a view", self.name)))
            }
            Definition::Declared(declared) => Err(match &declared.view {
                None => Error::sql(format!(
                    "\"{}\" is declared, and not created yet: CREATE VIEW first",
                    self.name
                )),
                Some(waiting) => {
                    let awaits = waiting.planned.awaits.iter();
                    let awaits: Vec<String> = awaits.map(|name| format!("\"{name}\"")).collect();
                    let (name, awaits) = (&self.name, awaits.join(", "));
                    Error::sql(format!(
                        "\"{name}\" waits for views that it recurs over: CREATE VIEW {awaits} first"
                    ))
                }
            }),
        }
    }

    /// Refuses anything but a materialized view.
    pub(crate) fn check_materialized(&self) -> Result<()> {
        match self.as_view()?.kind {
            ViewKind::Materialized => Ok(()),
            ViewKind::Plain | ViewKind::Local => {
                let message = format!("\"{}\" is not a materialized view", self.name);
                Err(Error::sql(message).with_sqlstate(SqlState::WRONG_KIND))
            }
        }
    }

    /// Refuses anything but a view.
    pub(crate) fn check_view(&self) -> Result<()> {
        match &self.definition {
            Definition::Declared(_) => Ok(()),
            _ => self.as_view().map(|_| ()),
        }
    }

    /// The definition of a declared view that is created and waits for others.
    pub(crate) fn waiting(&self) -> Option<&Arc<Waiting>> {
        match &self.definition {
            Definition::Declared(declared) => declared.view.as_ref(),
            _ => None,
        }
    }

    /// Whether it is declared, and not created.
    pub(crate) fn is_only_declared(&self) -> bool {
        matches!(self.definition, Definition::Declared(Declared { view: None }))
    }

    /// The plan of its changes: a scan of kept rows, the stream of a table that keeps nothing, or a plain view itself.
    pub(crate) fn changes(&self) -> Result<Arc<IncrementalPlan>> {
        if let Definition::Declared(_) = &self.definition {
            self.as_view()?;
        }
        if self.kind() == RelationKind::LocalView {
            return Err(Error::sql(format!(
                "\"{}\" is a local view, which is not an output",
                self.name
            )));
        }
        if let Definition::View(view) = &self.definition
            && view.kind == ViewKind::Plain
        {
            return Ok(view.plan.clone());
        }
        let columns = (0..self.schema.fields().len()).collect();
        let relation = self.name.clone();
        let plan = match &self.definition {
            Definition::Table(Table { kept: false, append_only, .. }) => {
                IncrementalPlan::stream(relation, &self.schema, columns, *append_only, Vec::new())
            }
            _ => IncrementalPlan::scan(relation, &self.schema, columns, &[], false, Vec::new()),
        };
        plan.map(Arc::new).map_err(|error| Error::sql(error.to_string()))
    }

    /// The relation as the planner sees it.
    pub(crate) fn relation(&self) -> Relation {
        let schema = self.schema.clone();
        match &self.definition {
            Definition::Table(table) => Relation::Table {
                schema,
                primary_key: table.primary_key.clone(),
                promised_key: table.promised_key.clone(),
                uniques: table.defined.uniques.iter().map(|of| of.columns.clone()).collect(),
                defaults: table.defaults.clone(),
                always_generated: table.defined.always_generated(),
                kept: table.kept,
                append_only: table.append_only,
                waterlines: table.lateness.iter().map(|late| late.column).collect(),
            },
            // That of an open transaction has no rows: its query stands in its place.
            Definition::View(View { kind: ViewKind::Materialized, plan, bounds, .. })
                if !self.is_staged =>
            {
                Relation::MaterializedView {
                    schema,
                    append_only: plan.properties.append_only,
                    maintained: Arc::new(ViewRows::of(plan, bounds.clone())),
                }
            }
            Definition::View(View { recursion: Some(recursion), kind, .. }) => Relation::Declared {
                schema,
                recursion: Some(recursion.clone()),
                local: *kind == ViewKind::Local,
            },
            Definition::Declared(_) => Relation::Declared { schema, recursion: None, local: true },
            Definition::View(view) => Relation::View {
                schema,
                plan: view.logical.clone(),
                extent: view.extent,
                local: view.kind == ViewKind::Local,
                emit_final: view.emit_final,
                lateness: view.lateness.clone(),
            },
        }
    }
}
