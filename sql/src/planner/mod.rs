//! From statements to plans.
//!
//! ```text
//! query ─ refusal ─► datafusion-sql ─► analyzer, optimizer ─► validate ─► plan::build ─► IncrementalPlan   (views)
//!                    datafusion-sql ─► views expanded in place ─► LogicalPlan                               (statements)
//! ```
//!
//! - `sql_functions` puts expressions in the places of calls of functions that SQL defines.
//! - `query`, `view` and `write` plan queries, views, and INSERT, UPDATE and DELETE; `parameters` binds `$1`, `parameter_types` infers
//!   its type, and `parametrized` makes parameters of literals.
//! - `context` and `functions` resolve names, `relation` is a scan's source, `now` leaves the time open.
//! - `frame_bounds` corrects window frames, `grouping_sets` what they are sets of, `corrections` other expressions.
//! - `operators` plans `^` and numbers, `time_arithmetic` sums of times.
//! - `numbers` has DECIMAL and DOUBLE meet, and keeps results exact.
//! - `final_rows` finds the column by which rows of a view are final, `lateness` those by which they may come late.
//! - `refusal` and `validate` refuse what views do not support, `hopeless` calls that fail for every row; `constant`
//!   refuses constants that overflow, and `extent` plans that are too large.
//! - `culprit` finds the expression that an error is about, `uses` what a statement does with the relations that it names.
//! - `constructs` finds in a view's text what operators of its plan stand for.
//! - `unnested_names` names columns of UNNEST, `repeated_names` tells columns of one name apart, `subquery` turns subqueries and LATERAL into joins, with `membership` for IN, after
//!   `selected_names` has made their columns distinct; `correlation` says where
//!   that is simple, `dependent_join` does it for any.
//! - `recursion` reads the rows of WITH RECURSIVE, `declared` those of views that recur.
//! - `set_operation` plans INTERSECT and EXCEPT, `asof` ASOF joins, `lateral` and `ordinality` UNNEST, `merged` USING and
//!   NATURAL joins, `pivot` PIVOT and UNPIVOT, `wildcards` `* RENAME` and `(e).*`, `time_window` TUMBLE, HOP and SESSION.
//! - `optimizer` lists the rules that stay correct while data changes; `distinct_on`, `filter_push_down`,
//!   `in_lists`, `intervals`, `join_keys`, `microseconds`, `named_casts`, `one_nan`, `one_zero` and `whole_days` are ours.
pub(crate) mod asof;
mod canonical_floats;
mod constant;
mod constructs;
pub(crate) mod context;
mod corrections;
mod correlation;
mod culprit;
pub(crate) mod declared;
mod dependent_join;
mod distinct_on;
pub(crate) mod equality;
pub(crate) mod extent;
mod filter_push_down;
mod final_rows;
pub(crate) mod frame_bounds;
pub(crate) mod functions;
mod grouping_sets;
mod growth;
mod hopeless;
mod in_lists;
mod interval_choice;
pub(crate) mod intervals;
mod join_keys;
mod lateness;
mod lateral;
mod literal_rows;
mod locking;
mod membership;
mod merged;
pub(crate) mod microseconds;
mod named_casts;
mod now;
mod numbers;
mod one_nan;
mod one_zero;
mod operands;
pub(crate) mod operators;
mod optimizer;
mod ordinality;
mod parameter_types;
mod parameters;
mod parametrized;
mod pivot;
mod query;
pub(crate) mod recursion;
pub(crate) mod refusal;
pub(crate) mod relation;
mod repeated_names;
mod selected_names;
pub(crate) mod series;
pub(crate) mod set_operation;
mod simplify;
mod single_row;
mod sql_functions;
mod subquery;
mod time_arithmetic;
pub(crate) mod time_window;
mod types;
mod unnested_names;
mod uses;
mod validate;
mod view;
mod whole_days;
mod wildcards;
mod write;

pub use alluvium_dataflow::wording::type_name;
use arrow::datatypes::DataType;
use datafusion_expr::LogicalPlan;
use sqlparser::ast;

pub use self::constructs::ViewText;
pub(crate) use self::constructs::{Clause, Constructs};
use self::context::Scope;
pub use self::corrections::TextToInterval;
pub use self::extent::Extent;
pub use self::filter_push_down::{FilterPushDown, may_fail};
pub use self::functions::aggregate_names;
use self::functions::registered;
pub use self::functions::registered::RegisteredFunctions;
pub use self::functions::sequence::{
    Sequences, calls_sequence, generated_value, is_sequence, named_sequences,
};
pub use self::in_lists::DisjointLists;
pub use self::intervals::IntervalsByLength;
pub use self::join_keys::{CrossJoinElimination, EquijoinExtraction};
pub use self::literal_rows::LiteralRows;
pub use self::locking::{PlannedLocking, RowRange};
pub use self::microseconds::Microseconds;
pub use self::now::{BindSequences, CLOCK, CLOCK_SCHEMA, at};
pub use self::numbers::ExactNumbers;
pub use self::one_nan::OneNan;
pub use self::one_zero::OneZero;
pub use self::parameters::{bind, check_parameters, check_values, fit, parameter_count, typed};
pub use self::parametrized::{Parametrized, literal_value, may_become, parametrized};
pub use self::recursion::{RECURSION_LIMIT, WorkTable};
pub use self::relation::RelationSource;
pub use self::repeated_names::as_written;
pub use self::series::SeriesSource;
pub use self::simplify::{BoundedSimplifier, check_copies};
use self::sql_functions::{Inlined, inlined, planned};
pub use self::sql_functions::{SqlFunction, SqlFunctions};
pub use self::types::type_of;
pub use self::uses::{How, Use};
pub use self::view::PlannedView;
pub use self::write::{Arbiter, Checks, OnConflict, PlannedWrite, Returning, Violation};
use crate::catalog::{Catalog, DeclaredRecursion};
use crate::error::{Position, Result};
use crate::physical::{Output, compile};
use crate::plan::{Fingerprint, IncrementalPlan, KeptBy};
use crate::statement::{
    FunctionDefinition, LockingQuery, StatementKind, TableDefinition, ViewDefinition,
};

/// The types of so many parameters of a query with this plan, by place; `None` where nothing tells.
pub fn parameter_types(plan: &LogicalPlan, count: usize) -> Result<Vec<Option<DataType>>> {
    parameter_types::parameter_types(&[plan], count)
}

/// Plans statements against a catalog.
///
/// Plans for statements are logical plans that scan [`RelationSource`]s, neither analyzed nor
/// optimized; they scan tables, materialized views, system relations and the [`CLOCK`] only. Before one is run, [`at`]
/// fills in the time for `NOW()`, and [`bind`] its parameters.
#[derive(Debug)]
pub struct Planner {
    optimizer: optimizer::ViewOptimizer,
    registered: RegisteredFunctions,
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
            optimizer: optimizer::ViewOptimizer::new(),
            registered: RegisteredFunctions::default(),
        }
    }

    /// The same, for statements that can call these functions, too.
    #[must_use]
    pub fn with_functions(self, registered: RegisteredFunctions) -> Planner {
        Planner { registered, ..self }
    }

    fn scope<'a>(&'a self, catalog: &'a dyn Catalog) -> Scope<'a> {
        Scope { catalog, registered: &self.registered }
    }

    /// A function that a view or function calls and nobody knows: the name of one that another program had registered. SQL
    /// defines those that `is_defined` names.
    pub fn unknown_function(
        &self,
        statement: &StatementKind,
        is_defined: &dyn Fn(&str) -> bool,
    ) -> Option<String> {
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
        sql_functions::define(definition, self.scope(catalog))
    }

    /// The plan of a view.
    ///
    /// # Errors
    /// If the query is wrong, or the view cannot be maintained.
    pub fn view(&self, view: &ViewDefinition, catalog: &dyn Catalog) -> Result<PlannedView> {
        let scope = self.scope(catalog);
        let Inlined { part: query, calls } = inlined(view.query.as_ref(), catalog.functions())?;
        let view = &ViewDefinition { query: Box::new(query), ..view.clone() };
        let planned = view::plan(&self.optimizer, view, scope).map_err(|error| {
            let plan = |query: &ast::Query| {
                let view = ViewDefinition { query: Box::new(query.clone()), ..view.clone() };
                view::plan(&self.optimizer, &view, scope)
            };
            culprit::located(error, view.query.as_ref(), &plan)
                .at(Position::of(view.query.as_ref()))
        });
        planned.map(|planned| PlannedView { calls, ..planned })
    }

    /// The plan of a view in a complete recursion, of which `planned` is its plan alone.
    ///
    /// # Errors
    /// If the recursion cannot be maintained.
    pub fn within(
        &self,
        planned: PlannedView,
        view: &ViewDefinition,
        recursion: &DeclaredRecursion,
    ) -> Result<PlannedView> {
        planned.within(view, recursion, &self.registered)
    }

    /// The plan of a query that runs once. Columns of its result that have one name are [told apart](as_written).
    pub fn query(&self, query: &ast::Query, catalog: &dyn Catalog) -> Result<LogicalPlan> {
        let scope = self.scope(catalog);
        planned(query, catalog.functions(), |query| {
            query::plan(query, scope).map_err(|error| {
                let plan = |query: &ast::Query| query::plan(query, scope);
                culprit::located(error, query, &plan).at(Position::of(query))
            })
        })
    }

    /// The rows that a query finds which locks them, with their keys.
    ///
    /// # Errors
    /// If the query is wrong, or its rows are not those of one table.
    pub fn locking(&self, query: &LockingQuery, catalog: &dyn Catalog) -> Result<PlannedLocking> {
        let Inlined { part, calls: _ } = inlined(query.query.as_ref(), catalog.functions())?;
        let query = LockingQuery { query: Box::new(part), ..query.clone() };
        let at = Position::of(&*query.query);
        locking::plan(&query, self.scope(catalog)).map_err(|error| error.at(at))
    }

    /// The rows that an INSERT adds: the table's columns in order, of their types, with defaults filled in.
    pub fn insert(&self, insert: &ast::Insert, catalog: &dyn Catalog) -> Result<PlannedWrite> {
        let scope = self.scope(catalog);
        planned(insert, catalog.functions(), |insert| {
            write::insert(insert, scope).map_err(|error| {
                let plan = |insert: &ast::Insert| write::insert(insert, scope);
                culprit::located(error, insert, &plan).at(Position::of(&insert.table))
            })
        })
    }

    /// The conditions that the rows of a table have to meet.
    ///
    /// # Errors
    /// If a condition is wrong, or depends on more than the columns of a row.
    pub fn checks(&self, table: &TableDefinition) -> Result<Checks> {
        write::checks(&self.optimizer, table)
    }

    /// The rows that an UPDATE changes: the table's columns as they are, qualified `old`, then as they
    /// become, qualified `new`.
    pub fn update(&self, update: &ast::Update, catalog: &dyn Catalog) -> Result<PlannedWrite> {
        let scope = self.scope(catalog);
        planned(update, catalog.functions(), |update| {
            write::update(update, scope).map_err(|error| {
                let plan = |update: &ast::Update| write::update(update, scope);
                culprit::located(error, update, &plan).at(Position::of(&update.table.relation))
            })
        })
    }

    /// The rows that a DELETE removes: the table's columns.
    pub fn delete(&self, delete: &ast::Delete, catalog: &dyn Catalog) -> Result<PlannedWrite> {
        let scope = self.scope(catalog);
        planned(delete, catalog.functions(), |delete| {
            write::delete(delete, scope).map_err(|error| {
                let plan = |delete: &ast::Delete| write::delete(delete, scope);
                culprit::located(error, delete, &plan).at(Position::of(delete))
            })
        })
    }

    /// What a statement does with the relations that it names: it reads rows, or inserts, updates or deletes some. Views count as
    /// they are named, and what they read does not.
    pub fn uses(&self, statement: &StatementKind, catalog: &dyn Catalog) -> Vec<Use> {
        uses::uses(statement, self.scope(catalog))
    }

    /// Where the expression is that makes a statement fail with this message, which `check` gives for its plan: a query's, or
    /// that of the rows which a statement changes; of a view, compiling it does. `None` if no expression does.
    pub fn culprit(
        &self,
        statement: &StatementKind,
        catalog: &dyn Catalog,
        message: &str,
        check: &dyn Fn(LogicalPlan) -> Option<String>,
    ) -> Option<Position> {
        let scope = self.scope(catalog);
        let functions = catalog.functions();
        let checked = |plan: Result<LogicalPlan>| match plan {
            Ok(plan) => check(plan),
            Err(error) => Some(error.message),
        };
        let rows = |planned: Result<PlannedWrite>| checked(planned.map(|planned| planned.plan));
        match statement {
            StatementKind::Query(query) | StatementKind::ExplainSelect(query) => {
                let failure = |query: &ast::Query| checked(query::plan(query, scope));
                let query = inlined(query.as_ref(), functions).ok()?.part;
                culprit::culprit(&query, message, &failure)
            }
            StatementKind::Insert(insert) => {
                let failure = |insert: &ast::Insert| rows(write::insert(insert, scope));
                let insert = inlined(insert.as_ref(), functions).ok()?.part;
                culprit::culprit(&insert, message, &failure)
            }
            StatementKind::Update(update) => {
                let failure = |update: &ast::Update| rows(write::update(update, scope));
                let update = inlined(update.as_ref(), functions).ok()?.part;
                culprit::culprit(&update, message, &failure)
            }
            StatementKind::Delete(delete) => {
                let failure = |delete: &ast::Delete| rows(write::delete(delete, scope));
                let delete = inlined(delete.as_ref(), functions).ok()?.part;
                culprit::culprit(&delete, message, &failure)
            }
            StatementKind::CreateView(view) => {
                let failure = |query: &ast::Query| {
                    let view = ViewDefinition { query: Box::new(query.clone()), ..view.clone() };
                    let planned = view::plan(&self.optimizer, &view, scope);
                    let compiled =
                        planned.and_then(|view| compile(&view.plan, Output::Rows, &|_| false));
                    compiled.err().map(|error| error.message)
                };
                let query = inlined(view.query.as_ref(), functions).ok()?.part;
                culprit::culprit(&query, message, &failure)
            }
            _ => None,
        }
    }

    /// A plan as text, with one node per line and inputs indented below. Of the indexes of whole relations it reads those that
    /// are `there`.
    pub fn explain(
        &self,
        plan: &IncrementalPlan,
        there: &dyn Fn(Fingerprint) -> bool,
    ) -> Result<String> {
        crate::plan::explain(plan, there)
    }

    /// What a view keeps that is planned like this over the indexes of whole relations that are `there`, whether and below what
    /// that is pruned, and why not. Of `texts` the first is its own, the others are those of the views that it expands.
    ///
    /// # Errors
    /// If the plan cannot be compiled.
    pub fn explain_state(
        &self,
        plan: &IncrementalPlan,
        output: Output,
        texts: &[ViewText<'_>],
        there: &dyn Fn(Fingerprint) -> bool,
    ) -> Result<Vec<KeptBy>> {
        crate::plan::explain_state(plan, output, texts, there)
    }
}
