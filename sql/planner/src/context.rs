//! Name resolution for DataFusion's SQL planner.

use std::sync::{Arc, LazyLock};

use alluvium_sql_functions::bytea::BYTEA;
use alluvium_sql_functions::date_part::Extract;
use alluvium_sql_functions::duckdb::TextSlices;
use alluvium_sql_functions::names::did_you_mean;
use alluvium_sql_functions::{FUNCTIONS, Functions, moving};
use alluvium_sql_syntax::error::{Error, SqlState};
use alluvium_sql_syntax::name;
use alluvium_sql_syntax::options::OPTIONS;
use alluvium_sql_syntax::statement::{DEFAULT_ROUNDS, MoreTypes};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DataFusionError, Result, TableReference};
use datafusion_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner, TypePlanner};
use datafusion_expr::{
    AggregateUDF, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF,
};
use datafusion_sql::planner::{ParserOptions, PlannerContext, SqlToRel};
use sqlparser::ast::{self};

use crate::catalog::{Catalog, Relation};
use crate::expressions::corrections;
use crate::expressions::frame_bounds;
use crate::expressions::grouping_sets;
use crate::expressions::operators::Operators;
use crate::names::merged::{self, MergingPlanner};
use crate::names::named_casts::NamedCasts;
use crate::names::outside_names;
use crate::names::wildcards::WildcardPlanner;
use crate::registered::{self, RegisteredFunctions};
use crate::relations::lateral;
use crate::relations::literal_rows;
use crate::relations::ordinality::OrdinalityPlanner;
use crate::relations::pivot::PivotPlanner;
use crate::relations::relation::RelationSource;
use crate::relations::series::{NoTableFunction, SeriesPlanner};
use crate::relations::time_window::TimeWindowPlanner;
use crate::rules::numbers;
use crate::statements::recursion::WorkTable;
use crate::statements::write::defaults::Defaults;
use crate::statements::write::statement_rows::{self, StatementRows};

/// Planners of EXTRACT, SUBSTRING … FROM, `array[1]`, operators and similar syntax.
static EXPRESSIONS: LazyLock<Vec<Arc<dyn ExprPlanner>>> = LazyLock::new(|| {
    vec![
        Arc::new(datafusion_functions::core::planner::CoreFunctionPlanner::default()),
        Arc::new(TextSlices),
        Arc::new(datafusion_functions_nested::planner::NestedFunctionPlanner),
        Arc::new(datafusion_functions_nested::planner::FieldAccessPlanner),
        Arc::new(Extract),
        Arc::new(datafusion_functions::unicode::planner::UnicodeFunctionPlanner),
        Arc::new(NamedCasts),
        Arc::new(Operators),
        Arc::new(datafusion_functions_aggregate::planner::AggregateFunctionPlanner),
        Arc::new(datafusion_functions_window::planner::WindowFunctionPlanner),
    ]
});

/// Table functions, joins that merge columns, and relations whose columns depend on those of others.
static RELATIONS: LazyLock<Vec<Arc<dyn RelationPlanner>>> = LazyLock::new(|| {
    vec![
        Arc::new(TimeWindowPlanner),
        Arc::new(OrdinalityPlanner),
        Arc::new(SeriesPlanner),
        Arc::new(MergingPlanner),
        Arc::new(PivotPlanner),
        Arc::new(WildcardPlanner),
        Arc::new(NoTableFunction),
    ]
});

/// The objects that a statement can name: relations, and functions of the program.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The relations.
    pub catalog: &'a dyn Catalog,
    /// The functions that a program has registered.
    pub registered: &'a RegisteredFunctions,
}

/// The relations of a catalog and all functions, for one statement.
pub struct Context<'a> {
    catalog: &'a dyn Catalog,
    functions: &'static Functions,
    registered: &'a RegisteredFunctions,
    /// The DEFAULTs of the table that the statement changes.
    defaults: Option<Defaults>,
    /// The last round of its recursions.
    recursion_limit: u64,
}

impl<'a> Context<'a> {
    /// The context of a statement that can name the objects in `scope`.
    pub fn new(scope: Scope<'a>) -> Context<'a> {
        let Scope { catalog, registered } = scope;
        Context {
            catalog,
            functions: &FUNCTIONS,
            registered,
            defaults: None,
            recursion_limit: DEFAULT_ROUNDS,
        }
    }

    /// For expressions that name nothing but functions of Alluvium.
    pub(crate) fn of_nothing() -> Context<'static> {
        static NONE: LazyLock<RegisteredFunctions> = LazyLock::new(RegisteredFunctions::default);
        Context::new(Scope { catalog: &Nothing, registered: &NONE })
    }

    /// The same, whose recursions end at this round.
    pub(crate) fn with_recursion_limit(self, recursion_limit: u64) -> Context<'a> {
        Context { recursion_limit, ..self }
    }

    /// For parts of a statement that changes a table with these DEFAULTs: they may name its rows, and DEFAULT.
    pub(crate) fn of_statement(scope: Scope<'a>, defaults: Defaults) -> Context<'a> {
        Context { defaults: Some(defaults), ..Context::new(scope) }
    }

    /// A planner of SQL that resolves names here.
    pub fn planner(&self) -> SqlToRel<'_, Self> {
        SqlToRel::new_with_options(self, ParserOptions::from(&OPTIONS.sql_parser))
    }

    /// The plan of a statement, with UNNEST in FROM planned by [`lateral`], grouping sets by
    /// [`grouping_sets`], numbers by [`numbers`], many rows of VALUES by
    /// [`literal_rows`], frames by [`frame_bounds`], aggregates over them
    /// by [`moving`], and some expressions by [`corrections`].
    pub fn plan(&self, mut statement: ast::Statement) -> Result<LogicalPlan> {
        registered::check_calls(&statement, self.registered)
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        outside_names::spell(&mut statement, self.catalog)
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        corrections::in_syntax(&mut statement);
        let into_table = !matches!(statement, ast::Statement::Query(_));
        merged::qualify(&mut statement, self.catalog);
        let parameters = self.catalog.parameters().to_vec();
        let mut context = PlannerContext::new().with_prepare_param_data_types(parameters);
        let plan = self.planner().sql_statement_to_plan_with_context(statement, &mut context)?;
        let mut plan = merged::unmark(plan)?;
        if let Some(defaults) = &self.defaults {
            plan = defaults.fill(plan)?;
        }
        lateral::unnest_in_place(plan)
            .and_then(grouping_sets::of_columns)
            .and_then(|plan| numbers::meet(plan, into_table))
            .and_then(literal_rows::scanned)
            .and_then(frame_bounds::corrected)
            .and_then(moving::computable)
            .and_then(corrections::in_plan)
    }
}

impl ContextProvider for Context<'_> {
    fn get_table_source(&self, reference: TableReference) -> Result<Arc<dyn TableSource>> {
        let of_other = |error| DataFusionError::External(Box::new(error));
        let name = name::of_reference(&reference).map_err(of_other)?;
        if let Some(Defaults { schema, .. }) = &self.defaults
            && reference.table() == statement_rows::NAME
        {
            return Ok(Arc::new(StatementRows { schema: schema.clone() }));
        }
        match self.catalog.relation(&name) {
            Some(relation) => Ok(Arc::new(RelationSource::new(name, relation))),
            None => Err(DataFusionError::External(Box::new(no_relation(&name, self.catalog)))),
        }
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(Arc::new(WorkTable::new(name, schema, self.recursion_limit)))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &EXPRESSIONS
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(MoreTypes))
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        &RELATIONS
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let default = || self.defaults.as_ref().and_then(|defaults| defaults.function(name));
        let registered = || self.registered.scalar(name).cloned();
        let cast = || (name == BYTEA.name()).then(|| Arc::clone(&BYTEA));
        let found = self.functions.scalar.get(name).cloned().or_else(registered).or_else(default);
        found.or_else(cast)
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.functions.higher_order.get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        let registered = || self.registered.aggregate(name).cloned();
        self.functions.aggregate.get(name).cloned().or_else(registered)
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.functions.window.get(name).cloned()
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &OPTIONS
    }

    fn udf_names(&self) -> Vec<String> {
        let defined = self.catalog.functions().keys();
        let names = self.functions.scalar.keys().chain(self.registered.scalar_names());
        names.chain(defined).cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.functions.higher_order.keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.functions.aggregate.keys().chain(self.registered.aggregate_names()).cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.functions.window.keys().cloned().collect()
    }
}

/// The error for a relation that does not exist.
pub fn no_relation(name: &str, catalog: &dyn Catalog) -> Error {
    if let Some(failure) = catalog.failure(name) {
        return failure;
    }
    let names = catalog.names();
    let near = did_you_mean(name, names.iter().map(String::as_str));
    let name = name.trim_matches('"');
    Error::new(format!("no table or view \"{name}\"{near}"), None)
        .with_sqlstate(SqlState::NO_RELATION)
}

/// An empty catalog: a table's definition can refer to nothing.
pub(crate) struct Nothing;

impl Catalog for Nothing {
    fn relation(&self, _name: &str) -> Option<Relation> {
        None
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}
