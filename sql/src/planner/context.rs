//! Name resolution for DataFusion's SQL planner.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, FieldRef, IntervalMonthDayNano, SchemaRef, TimeUnit};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DFSchema, DataFusionError, Result, ScalarValue, TableReference};
use datafusion_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner, TypePlanner};
use datafusion_expr::{
    AggregateUDF, Expr, ExprSchemable, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource,
    WindowUDF,
};
use datafusion_sql::planner::{ParserOptions, PlannerContext, SqlToRel};
use sqlparser::ast::{self, ColumnDef};

use super::corrections;
use super::extent::Extent;
use super::frame_bounds;
use super::functions::registered::{self, RegisteredFunctions};
use super::functions::{FUNCTIONS, Functions, moving};
use super::grouping_sets;
use super::lateral;
use super::literal_rows;
use super::merged::{self, MergingPlanner};
use super::microseconds::in_microseconds;
use super::numbers;
use super::ordinality::OrdinalityPlanner;
use super::pivot::PivotPlanner;
use super::recursion::{RECURSION_LIMIT, WorkTable};
use super::refusal;
use super::relation::RelationSource;
use super::series::SeriesPlanner;
use super::time_window::TimeWindowPlanner;
use super::wildcards::WildcardPlanner;
use super::write::defaults::Defaults;
use super::write::statement_rows::{self, StatementRows};
use crate::catalog::{Catalog, Relation};
use crate::error::{Error, SqlState, did_you_mean};
use crate::name;
use crate::statement::is_column_type;
use crate::syntax::check_type;

/// Planning options: one string type everywhere, numbers with a point are DECIMAL, and time zone UTC.
pub(crate) static OPTIONS: LazyLock<Arc<ConfigOptions>> = LazyLock::new(|| {
    let mut options = ConfigOptions::new();
    options.execution.time_zone = Some("+00:00".to_string());
    options.sql_parser.map_string_types_to_utf8view = false;
    options.sql_parser.collect_spans = true;
    options.sql_parser.parse_float_as_decimal = true;
    options.optimizer.skip_failed_rules = false;
    options.optimizer.max_passes = 2;
    // Uncorrelated scalar subqueries become joins too: `subquery` leaves only those of one row.
    options.optimizer.enable_physical_uncorrelated_scalar_subquery = false;
    Arc::new(options)
});

/// The largest number of levels of a DEFAULT, which every INSERT evaluates.
const DEEPEST_DEFAULT: usize = 100;

/// Table functions, joins that merge columns, and relations whose columns depend on those of others.
static RELATIONS: LazyLock<Vec<Arc<dyn RelationPlanner>>> = LazyLock::new(|| {
    vec![
        Arc::new(TimeWindowPlanner),
        Arc::new(OrdinalityPlanner),
        Arc::new(SeriesPlanner),
        Arc::new(MergingPlanner),
        Arc::new(PivotPlanner),
        Arc::new(WildcardPlanner),
    ]
});

/// What a statement can name: relations, and functions of the program.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) catalog: &'a dyn Catalog,
    pub(crate) registered: &'a RegisteredFunctions,
}

/// The relations of a catalog and all functions, for one statement.
pub(crate) struct Context<'a> {
    catalog: &'a dyn Catalog,
    functions: &'static Functions,
    registered: &'a RegisteredFunctions,
    /// Of the table that the statement changes.
    defaults: Option<Defaults>,
    /// The last round of its recursions.
    recursion_limit: u64,
}

impl<'a> Context<'a> {
    pub(crate) fn new(scope: Scope<'a>) -> Context<'a> {
        let Scope { catalog, registered } = scope;
        Context {
            catalog,
            functions: &FUNCTIONS,
            registered,
            defaults: None,
            recursion_limit: RECURSION_LIMIT,
        }
    }

    /// For expressions that name nothing but functions of Alluvium.
    fn of_nothing() -> Context<'static> {
        static NONE: LazyLock<RegisteredFunctions> = LazyLock::new(RegisteredFunctions::default);
        Context::new(Scope { catalog: &Nothing, registered: &NONE })
    }

    /// The same, whose recursions end at this round.
    pub(super) fn with_recursion_limit(self, recursion_limit: u64) -> Context<'a> {
        Context { recursion_limit, ..self }
    }

    /// For parts of a statement that changes a table with these DEFAULTs: they may name its rows, and DEFAULT.
    pub(super) fn of_statement(scope: Scope<'a>, defaults: Defaults) -> Context<'a> {
        Context { defaults: Some(defaults), ..Context::new(scope) }
    }

    /// A planner of SQL that resolves names here.
    pub(crate) fn planner(&self) -> SqlToRel<'_, Self> {
        SqlToRel::new_with_options(self, ParserOptions::from(&OPTIONS.sql_parser))
    }

    /// The plan of a statement, with UNNEST in FROM planned by [`lateral`](super::lateral), grouping sets by
    /// [`grouping_sets`](super::grouping_sets), numbers by [`numbers`](super::numbers), many rows of VALUES by
    /// [`literal_rows`](super::literal_rows), frames by [`frame_bounds`](super::frame_bounds), aggregates over them
    /// by [`moving`](super::functions::moving), and some expressions by [`corrections`](super::corrections).
    pub(crate) fn plan(&self, mut statement: ast::Statement) -> Result<LogicalPlan> {
        registered::check_calls(&statement, self.registered)
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        corrections::in_syntax(&mut statement);
        let into_table = !matches!(statement, ast::Statement::Query(_));
        merged::qualify(&mut statement, self.catalog);
        let mut plan = merged::unmark(self.planner().sql_statement_to_plan(statement)?)?;
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
        &self.functions.planners
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
        self.functions.scalar.get(name).cloned().or_else(registered).or_else(default)
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
pub(crate) fn no_relation(name: &str, catalog: &dyn Catalog) -> Error {
    let names = catalog.names();
    let near = did_you_mean(name, names.iter().map(String::as_str));
    let name = name.trim_matches('"');
    Error::new(format!("no table or view \"{name}\"{near}"), None)
        .with_sqlstate(SqlState::NO_RELATION)
}

/// An empty catalog: a table's definition can refer to nothing.
pub(super) struct Nothing;

impl Catalog for Nothing {
    fn relation(&self, _name: &str) -> Option<Relation> {
        None
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The types that DataFusion's planner does not know: `MAP<K, V>`, and DuckDB's names of others.
#[derive(Debug)]
struct MoreTypes;

impl TypePlanner for MoreTypes {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> Result<Option<FieldRef>> {
        let (key, value) = match sql_type {
            ast::DataType::Map(key, value) => (key, value),
            ast::DataType::Blob(_) => {
                return Ok(Some(Arc::new(Field::new("blob", DataType::Binary, true))));
            }
            ast::DataType::Datetime(None) => {
                let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
                return Ok(Some(Arc::new(Field::new("datetime", timestamp, true))));
            }
            // `CHARACTER(n)`, which is neither checked nor padded, as no length is.
            ast::DataType::Character(_) => {
                return Ok(Some(Arc::new(Field::new("character", DataType::Utf8, true))));
            }
            ast::DataType::Custom(name, _) if is_bpchar(name) => {
                return Ok(Some(Arc::new(Field::new("bpchar", DataType::Utf8, true))));
            }
            ast::DataType::JSON => {
                return Ok(Some(Arc::new(Field::new("json", DataType::Utf8, true))));
            }
            _ => return Ok(None),
        };
        let key = Field::new("key", data_type(key)?, false);
        let value = Field::new("value", data_type(value)?, true);
        let entries = Field::new_struct("entries", vec![key, value], false);
        Ok(Some(Arc::new(Field::new("map", DataType::Map(Arc::new(entries), false), true))))
    }
}

/// Whether it is Postgres's own name of `CHAR`.
fn is_bpchar(name: &ast::ObjectName) -> bool {
    let [part] = name.0.as_slice() else { return false };
    part.as_ident().is_some_and(|name| name.value.eq_ignore_ascii_case("bpchar"))
}

/// The type of this name.
fn data_type(sql_type: &ast::DataType) -> Result<DataType> {
    let name = ast::Ident::new("column");
    let column = ColumnDef { name, data_type: sql_type.clone(), options: Vec::new() };
    let schema = Context::of_nothing().planner().build_schema(vec![column])?;
    Ok(in_microseconds(schema.field(0).data_type()))
}

/// The type of a table's column, if tables can store it.
pub(crate) fn column_type(column: &ColumnDef) -> crate::error::Result<DataType> {
    check_type(&column.data_type)?;
    let data_type = data_type(&column.data_type).map_err(|error| Error::from_datafusion(&error))?;
    if !is_column_type(&data_type) {
        return Err(Error::not_supported(format!("a column of type {}", column.data_type), None));
    }
    Ok(data_type)
}

/// The value of an interval that is written as one literal; `None` of any other expression.
pub(crate) fn interval(
    expression: &ast::Expr,
) -> crate::error::Result<Option<IntervalMonthDayNano>> {
    let nothing = DFSchema::empty();
    let planned = Context::of_nothing()
        .planner()
        .sql_to_expr(expression.clone(), &nothing, &mut PlannerContext::new())
        .map_err(|error| Error::from_datafusion(&error))?;
    Ok(match planned {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(interval), _) => interval,
        _ => None,
    })
}

/// A column's DEFAULT: an expression without columns, of the column's type.
pub(crate) fn column_default(
    expression: &ast::Expr,
    data_type: &DataType,
) -> crate::error::Result<Expr> {
    refusal::check_default(expression)?;
    let context = Context::of_nothing();
    let nothing = DFSchema::empty();
    context
        .planner()
        .sql_to_expr(expression.clone(), &nothing, &mut PlannerContext::new())
        .and_then(|default| Ok(corrections::in_expression(default)?.data))
        .and_then(|default| default.cast_to(data_type, &nothing))
        .and_then(numbers::exact)
        .map_err(|error| Error::from_datafusion(&error))
        .and_then(|default| match Extent::default().expression(&default, 0)? > DEEPEST_DEFAULT {
            true => {
                let message = format!("a DEFAULT nests at most {DEEPEST_DEFAULT} levels deep");
                Err(Error::new(message, None))
            }
            false => Ok(default),
        })
}
