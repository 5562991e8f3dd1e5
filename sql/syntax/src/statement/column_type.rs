//! The types of columns, and intervals: their meaning without any relation.

use std::sync::Arc;
use std::time::Duration;

use alluvium_sql_functions::microseconds::in_microseconds;
use arrow::datatypes::{DataType, Field, FieldRef, IntervalMonthDayNano, TimeUnit};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DFSchema, Result, ScalarValue, TableReference, plan_err};
use datafusion_expr::planner::{ContextProvider, TypePlanner};
use datafusion_expr::{AggregateUDF, Expr, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use datafusion_sql::planner::{ParserOptions, PlannerContext, SqlToRel};
use sqlparser::ast::{self, ColumnDef};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::dialect::Alluvium;
use super::is_column_type;
use crate::error::Error;
use crate::options::OPTIONS;
use crate::syntax::check_type;

/// Without relations and functions.
struct Types;

fn planner() -> SqlToRel<'static, Types> {
    SqlToRel::new_with_options(&Types, ParserOptions::from(&OPTIONS.sql_parser))
}

impl ContextProvider for Types {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        plan_err!("no relation {name} belongs here")
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(MoreTypes))
    }

    fn get_function_meta(&self, _: &str) -> Option<Arc<ScalarUDF>> {
        None
    }

    fn get_higher_order_meta(&self, _: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, _: &str) -> Option<Arc<AggregateUDF>> {
        None
    }

    fn get_window_meta(&self, _: &str) -> Option<Arc<WindowUDF>> {
        None
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &OPTIONS
    }

    fn udf_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udwf_names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The types that DataFusion's planner does not know: `MAP<K, V>`, and other names of types.
#[derive(Debug)]
pub struct MoreTypes;

impl TypePlanner for MoreTypes {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> Result<Option<FieldRef>> {
        let (key, value) = match sql_type {
            ast::DataType::Map(key, value) => (key, value),
            ast::DataType::Dec(info) => {
                let decimal = data_type(&ast::DataType::Decimal(*info))?;
                return Ok(Some(Arc::new(Field::new("dec", decimal, true))));
            }
            other => {
                let named = other_name(other);
                return Ok(named.map(|named| Arc::new(Field::new("column", named, true))));
            }
        };
        let key = Field::new("key", data_type(key)?, false);
        let value = Field::new("value", data_type(value)?, true);
        let entries = Field::new_struct("entries", vec![key, value], false);
        Ok(Some(Arc::new(Field::new("map", DataType::Map(Arc::new(entries), false), true))))
    }
}

/// The type that DuckDB, or Postgres, has another name for; `None` if it is none of these.
fn other_name(sql_type: &ast::DataType) -> Option<DataType> {
    Some(match sql_type {
        ast::DataType::Blob(_) | ast::DataType::Binary(None) | ast::DataType::Varbinary(None) => {
            DataType::Binary
        }
        ast::DataType::Datetime(None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        // The length of `CHARACTER(n)` is neither checked nor padded to, as no length is.
        ast::DataType::Character(_)
        | ast::DataType::Nvarchar(_)
        | ast::DataType::JSON
        | ast::DataType::JSONB => DataType::Utf8,
        ast::DataType::Int16 => DataType::Int16,
        ast::DataType::Int32 | ast::DataType::Signed => DataType::Int32,
        ast::DataType::Int64 => DataType::Int64,
        ast::DataType::UTinyInt | ast::DataType::UInt8 => DataType::UInt8,
        ast::DataType::USmallInt | ast::DataType::UInt16 => DataType::UInt16,
        ast::DataType::UInt32 => DataType::UInt32,
        ast::DataType::UBigInt | ast::DataType::UInt64 => DataType::UInt64,
        ast::DataType::Custom(name, _) => {
            let [part] = name.0.as_slice() else { return None };
            match &*part.as_ident()?.value.to_ascii_lowercase() {
                // That of Postgres, which is written in quotes; without, it is another type.
                "bpchar" | "char" => DataType::Utf8,
                "int1" => DataType::Int8,
                "short" => DataType::Int16,
                "integral" => DataType::Int32,
                "long" => DataType::Int64,
                "uinteger" => DataType::UInt32,
                "logical" => DataType::Boolean,
                "timestamp_us" => DataType::Timestamp(TimeUnit::Microsecond, None),
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// The type of this name.
fn data_type(sql_type: &ast::DataType) -> Result<DataType> {
    let name = ast::Ident::new("column");
    let column = ColumnDef { name, data_type: sql_type.clone(), options: Vec::new() };
    let schema = planner().build_schema(vec![column])?;
    Ok(in_microseconds(schema.field(0).data_type()))
}

/// The type of a table's column, if tables can store it.
pub fn column_type(column: &ColumnDef) -> crate::error::Result<DataType> {
    check_type(&column.data_type)?;
    let data_type = data_type(&column.data_type).map_err(|error| Error::from_datafusion(&error))?;
    if !is_column_type(&data_type) {
        return Err(Error::not_supported(format!("a column of type {}", column.data_type), None));
    }
    Ok(data_type)
}

/// The type of a table's column that a text names, such as `DECIMAL(10, 2)`.
pub fn named_type(text: &str) -> crate::error::Result<DataType> {
    let dialect = Alluvium::new(text.len());
    let parsed = Parser::new(&dialect).try_with_sql(text).and_then(|mut parser| {
        let data_type = parser.parse_data_type()?;
        parser.expect_token(&Token::EOF)?;
        Ok(data_type)
    });
    let wrong = |_| Error::new(format!("\"{text}\" is not the name of a type"), None);
    let (name, options) = (ast::Ident::new("column"), Vec::new());
    column_type(&ColumnDef { name, data_type: parsed.map_err(wrong)?, options })
}

/// The time of an interval that is written as one literal; `None` of any other expression, of one with months, and if it is negative.
pub fn duration(expression: &ast::Expr) -> crate::error::Result<Option<Duration>> {
    const DAY: i128 = 24 * 60 * 60 * 1_000_000_000;
    Ok(interval(expression)?.filter(|interval| interval.months == 0).and_then(|interval| {
        let nanoseconds = i128::from(interval.days) * DAY + i128::from(interval.nanoseconds);
        u64::try_from(nanoseconds).ok().map(Duration::from_nanos)
    }))
}

/// The value of an interval that is written as one literal; `None` of any other expression.
pub fn interval(expression: &ast::Expr) -> crate::error::Result<Option<IntervalMonthDayNano>> {
    let nothing = DFSchema::empty();
    let planned = planner()
        .sql_to_expr(expression.clone(), &nothing, &mut PlannerContext::new())
        .map_err(|error| Error::from_datafusion(&error))?;
    Ok(match planned {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(interval), _) => interval,
        _ => None,
    })
}
