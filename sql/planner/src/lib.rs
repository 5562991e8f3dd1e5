//! From statements to plans.
//!
//! ```text
//! query ─ refusal ─► datafusion-sql ─► analyzer, optimizer ─► validate ─► LogicalView                     (views)
//!                    datafusion-sql ─► views expanded in place ─► LogicalPlan                               (statements)
//! ```
//!
//! - [`catalog`]: the relations that SQL can name; [`context`] resolves names, with the functions that a program has [`registered`];
//! - `sql_functions` puts expressions in the places of calls of functions that SQL defines;
//! - [`statements`]: each kind of statement; [`relations`]: in FROM; [`subqueries`]: as joins; [`names`]: of columns;
//! - [`expressions`]: those that mean something else than DataFusion plans;
//! - [`rules`]: of the analyzer and the optimizer; [`checks`]: refused constructs;
//! - [`system`] has views and functions of the program's own;
//! - `culprit` finds the expression that an error is about; [`fault`] has seeded faults.
pub mod catalog;
pub mod checks;
pub mod context;
mod culprit;
pub mod expressions;
pub mod fault;
pub mod names;
pub mod registered;
pub mod relations;
pub mod rules;
mod sql_functions;
pub mod statements;
pub mod subqueries;
pub mod system;

pub use alluvium_dataflow::messages::wording::type_name;
use alluvium_sql_syntax::error::{Position, Result};
use alluvium_sql_syntax::statement::{
    FunctionDefinition, LockingQuery, StatementKind, TableDefinition, ViewDefinition,
};
use arrow::datatypes::DataType;
use datafusion_expr::LogicalPlan;
use sqlparser::ast;

pub use self::checks::extent::Extent;
pub use self::checks::refusal::Landmarks;
use self::context::Scope;
pub use self::expressions::corrections::TextToInterval;
pub use self::expressions::defaults::defaults;
pub use self::expressions::evaluation::checked;
pub use self::expressions::evaluation::one_row;
pub use self::expressions::now::{BindSequences, CLOCK, CLOCK_SCHEMA, at, is_now};
pub use self::expressions::operators::{NAME_OF_NONE, REFERENCE};
pub use self::expressions::types::type_of;
pub use self::names::repeated_names::as_written;
pub use self::registered::RegisteredFunctions;
pub use self::relations::literal_rows::LiteralRows;
pub use self::relations::relation::RelationSource;
pub use self::relations::series::SeriesSource;
pub use self::rules::filter_push_down::{FilterPushDown, may_fail};
pub use self::rules::in_lists::DisjointLists;
pub use self::rules::intervals::IntervalsByLength;
pub use self::rules::join_keys::{CrossJoinElimination, EquijoinExtraction};
pub use self::rules::microseconds::Microseconds;
pub use self::rules::numbers::ExactNumbers;
pub use self::rules::one_nan::OneNan;
pub use self::rules::one_zero::OneZero;
use self::rules::optimizer::ViewOptimizer;
pub use self::rules::simplify::{BoundedSimplifier, check_copies};
use self::sql_functions::{Inlined, inlined, planned};
pub use self::sql_functions::{SqlFunction, SqlFunctions};
pub use self::statements::locking::{PlannedLocking, RowRange};
pub use self::statements::own_types::{PlannedFor, plan_for};
pub use self::statements::parameters::{bind, check_parameters, fit, parameter_count, typed};
pub use self::statements::parametrized::{Parametrized, literal_value, may_become, parametrized};
pub use self::statements::recursion::WorkTable;
pub use self::statements::uses::{How, Use};
pub use self::statements::view::LogicalView;
pub use self::statements::write::{
    Arbiter, Checks, OnConflict, PlannedWrite, Returning, Violation,
};
pub use self::system::SystemSchemas;
use self::system::visible::Visible;
use crate::catalog::Catalog;

/// The types of so many parameters of a query with this plan, by place; `None` where nothing tells.
pub fn parameter_types(plan: &LogicalPlan, count: usize) -> Result<Vec<Option<DataType>>> {
    statements::parameter_types::parameter_types(&[plan], count)
}

/// Plans statements against a catalog.
///
/// Plans for statements are logical plans that scan [`RelationSource`]s, neither analyzed nor
/// optimized; they scan tables, materialized views, system relations and the [`CLOCK`] only. Before one is run, [`at`]
/// fills in the time for `NOW()`, and [`bind`] its parameters.
#[derive(Debug)]
pub struct Planner {
    optimizer: ViewOptimizer,
    registered: RegisteredFunctions,
    system: SystemSchemas,
}

impl Default for Planner {
    fn default() -> Self {
        Planner::new()
    }
}

impl Planner {
    /// A planner; it can plan any number of statements, against any catalog.
    pub fn new() -> Planner {
        Planner {
            optimizer: ViewOptimizer::new(),
            registered: RegisteredFunctions::default(),
            system: SystemSchemas::default(),
        }
    }

    /// The same, for statements that can call these functions, too.
    #[must_use]
    pub fn with_functions(self, registered: RegisteredFunctions) -> Planner {
        Planner { registered, ..self }
    }

    /// The same, for statements that can use these views and functions, too.
    #[must_use]
    pub fn with_system(self, system: SystemSchemas) -> Planner {
        Planner { system, ..self }
    }

    /// The views and functions of the program's own.
    pub fn system(&self) -> &SystemSchemas {
        &self.system
    }

    fn visible<'a>(&'a self, catalog: &'a dyn Catalog) -> Visible<'a> {
        Visible::new(catalog, &self.system, &self.registered)
    }

    fn scope<'a>(&'a self, catalog: &'a dyn Catalog) -> Scope<'a> {
        Scope { catalog, registered: &self.registered }
    }

    /// A function that a view or function calls and that is not known: the name of one that another program had registered. SQL
    /// defines those that `is_defined` names.
    pub fn unknown_function(
        &self,
        statement: &StatementKind,
        is_defined: &dyn Fn(&str) -> bool,
    ) -> Option<String> {
        let is_defined: &dyn Fn(&str) -> bool =
            &|name| is_defined(name) || self.system.functions.contains_key(name);
        match statement {
            StatementKind::CreateView(view) => {
                registered::unknown(&view.query, &self.registered, is_defined)
            }
            StatementKind::CreateFunction(function) => {
                registered::unknown(&function.body, &self.registered, is_defined)
            }
            _ => None,
        }
    }

    /// The function that a definition defines.
    ///
    /// # Errors
    /// If another function has its name, or if its expression is wrong.
    pub fn function(
        &self,
        definition: &FunctionDefinition,
        catalog: &dyn Catalog,
    ) -> Result<SqlFunction> {
        sql_functions::define(definition, self.scope(&self.visible(catalog)))
    }

    /// Plans the query of a view, and what `build` makes of it and of the functions that it calls and SQL defines.
    ///
    /// # Errors
    /// If the query is wrong, if views cannot have it, or that of `build`, with its place in the text.
    pub fn view<T>(
        &self,
        view: &ViewDefinition,
        catalog: &dyn Catalog,
        build: &dyn Fn(LogicalView, &[String]) -> Result<T>,
    ) -> Result<T> {
        let catalog = &self.visible(catalog);
        let scope = self.scope(catalog);
        let Inlined { part: query, calls } = inlined(view.query.as_ref(), catalog)?;
        let plan = |query: &ast::Query| {
            let view = ViewDefinition { query: Box::new(query.clone()), ..view.clone() };
            build(statements::view::plan(&self.optimizer, &view, scope)?, &calls)
        };
        plan(&query)
            .map_err(|error| culprit::located(error, &query, &plan).at(Position::of(&query)))
    }

    /// Where a view's text has constructs that may turn out not to be supported.
    ///
    /// # Errors
    /// If views cannot have its query.
    pub fn landmarks(&self, view: &ViewDefinition) -> Result<Landmarks> {
        checks::refusal::check_view(&view.query, &self.registered)
    }

    /// The plan of a query that runs once. Columns of its result that have one name are [told apart](as_written).
    pub fn query(&self, query: &ast::Query, catalog: &dyn Catalog) -> Result<LogicalPlan> {
        let catalog = &self.visible(catalog);
        let scope = self.scope(catalog);
        planned(query, catalog, |query| {
            statements::query::plan(query, scope).map_err(|error| {
                let plan = |query: &ast::Query| statements::query::plan(query, scope);
                culprit::located(error, query, &plan).at(Position::of(query))
            })
        })
    }

    /// The rows that a query finds which locks them, with their keys.
    ///
    /// # Errors
    /// If the query is wrong, or its rows are not those of one table.
    pub fn locking(&self, query: &LockingQuery, catalog: &dyn Catalog) -> Result<PlannedLocking> {
        let catalog = &self.visible(catalog);
        let Inlined { part, calls: _ } = inlined(query.query.as_ref(), catalog)?;
        let query = LockingQuery { query: Box::new(part), ..query.clone() };
        let at = Position::of(&*query.query);
        statements::locking::plan(&query, self.scope(catalog)).map_err(|error| error.at(at))
    }

    /// The rows that an INSERT adds: the table's columns in order, of their types, with defaults filled in.
    pub fn insert(&self, insert: &ast::Insert, catalog: &dyn Catalog) -> Result<PlannedWrite> {
        let catalog = &self.visible(catalog);
        let scope = self.scope(catalog);
        planned(insert, catalog, |insert| {
            statements::write::insert(insert, scope).map_err(|error| {
                let plan = |insert: &ast::Insert| statements::write::insert(insert, scope);
                culprit::located(error, insert, &plan).at(Position::of(&insert.table))
            })
        })
    }

    /// The conditions that the rows of a table have to meet.
    ///
    /// # Errors
    /// If a condition is wrong, or depends on more than the columns of a row.
    pub fn checks(&self, table: &TableDefinition) -> Result<Checks> {
        statements::write::checks(&self.optimizer, table)
    }

    /// The rows that an UPDATE changes: the table's columns as they are, qualified `old`, then as they
    /// become, qualified `new`.
    pub fn update(&self, update: &ast::Update, catalog: &dyn Catalog) -> Result<PlannedWrite> {
        let catalog = &self.visible(catalog);
        let scope = self.scope(catalog);
        planned(update, catalog, |update| {
            statements::write::update(update, scope).map_err(|error| {
                let plan = |update: &ast::Update| statements::write::update(update, scope);
                culprit::located(error, update, &plan).at(Position::of(&update.table.relation))
            })
        })
    }

    /// The rows that a DELETE removes: the table's columns.
    pub fn delete(&self, delete: &ast::Delete, catalog: &dyn Catalog) -> Result<PlannedWrite> {
        let catalog = &self.visible(catalog);
        let scope = self.scope(catalog);
        planned(delete, catalog, |delete| {
            statements::write::delete(delete, scope).map_err(|error| {
                let plan = |delete: &ast::Delete| statements::write::delete(delete, scope);
                culprit::located(error, delete, &plan).at(Position::of(delete))
            })
        })
    }

    /// The uses that a statement makes of the relations that it names: it reads rows, or inserts, updates or deletes some. Views count as
    /// they are named, and what they read does not.
    pub fn uses(&self, statement: &StatementKind, catalog: &dyn Catalog) -> Vec<Use> {
        statements::uses::uses(statement, self.scope(&self.visible(catalog)))
    }

    /// Where the expression is that makes a statement fail with this message, which `check` gives for its plan: a query's, or
    /// that of the rows which a statement changes; of a view, `build` does. `None` if no expression does.
    pub fn culprit(
        &self,
        statement: &StatementKind,
        catalog: &dyn Catalog,
        message: &str,
        check: &dyn Fn(LogicalPlan) -> Option<String>,
        build: &dyn Fn(&ViewDefinition, LogicalView) -> Result<()>,
    ) -> Option<Position> {
        let catalog = &self.visible(catalog);
        let scope = self.scope(catalog);
        let checked = |plan: Result<LogicalPlan>| match plan {
            Ok(plan) => check(plan),
            Err(error) => Some(error.message),
        };
        let rows = |planned: Result<PlannedWrite>| checked(planned.map(|planned| planned.plan));
        match statement {
            StatementKind::Query(query) | StatementKind::ExplainSelect { query, .. } => {
                let failure = |query: &ast::Query| checked(statements::query::plan(query, scope));
                let query = inlined(query.as_ref(), catalog).ok()?.part;
                culprit::culprit(&query, message, &failure)
            }
            StatementKind::Insert(insert) => {
                let failure = |insert: &ast::Insert| rows(statements::write::insert(insert, scope));
                let insert = inlined(insert.as_ref(), catalog).ok()?.part;
                culprit::culprit(&insert, message, &failure)
            }
            StatementKind::Update(update) => {
                let failure = |update: &ast::Update| rows(statements::write::update(update, scope));
                let update = inlined(update.as_ref(), catalog).ok()?.part;
                culprit::culprit(&update, message, &failure)
            }
            StatementKind::Delete(delete) => {
                let failure = |delete: &ast::Delete| rows(statements::write::delete(delete, scope));
                let delete = inlined(delete.as_ref(), catalog).ok()?.part;
                culprit::culprit(&delete, message, &failure)
            }
            StatementKind::CreateView(view) => {
                let failure = |query: &ast::Query| {
                    let view = ViewDefinition { query: Box::new(query.clone()), ..view.clone() };
                    let planned = statements::view::plan(&self.optimizer, &view, scope);
                    let built = planned.and_then(|planned| build(&view, planned));
                    built.err().map(|error| error.message)
                };
                let query = inlined(view.query.as_ref(), catalog).ok()?.part;
                culprit::culprit(&query, message, &failure)
            }
            _ => None,
        }
    }
}
