//! How EXPLAIN writes columns and expressions.
//!
//! A column whose name its input has twice is written with its number, as `id#3`.

use std::fmt::{self, Display, Write};
use std::sync::Arc;

use alluvium_dataflow::reductions::aggregate::{Aggregate, Fallback, Function};
use alluvium_dataflow::reductions::window::{Argument, WindowFunction};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Schema};
use datafusion_common::ScalarValue;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_physical_expr::expressions::{Column, Literal};

use super::IncrementalPlan;
use super::expression::{self, Expression};
use crate::physical::Place;

/// The state of an operator, and its place, if that is known.
pub(super) fn kept(what: &str, places: &[Place]) -> String {
    match places {
        [place, ..] => format!("{what} {place}"),
        [] => what.to_string(),
    }
}

/// Where a join keeps its sides.
pub(super) fn sides(
    left: &IncrementalPlan,
    right: &IncrementalPlan,
    on: &[(usize, usize)],
    places: &[Place],
) -> String {
    let side = |name: &str, plan: &IncrementalPlan, keys: Vec<usize>, place: usize| {
        let keys = match keys.is_empty() {
            true => String::new(),
            false => format!(" by {}", Names(&plan.schema).list(&keys)),
        };
        kept(&format!("{name}{keys}"), places.get(place..).unwrap_or_default())
    };
    let (l, r): (Vec<usize>, Vec<usize>) = on.iter().copied().unzip();
    format!("{}, {}", side("left", left, l, 0), side("right", right, r, 1))
}

/// The name of an aggregate function in SQL.
pub(super) fn function_name(function: Function) -> &'static str {
    match function {
        Function::Count => "count",
        Function::Sum => "sum",
        Function::Avg => "avg",
        Function::Min => "min",
        Function::Max => "max",
        Function::ArgMin => "arg_min",
        Function::ArgMax => "arg_max",
    }
}

/// An aggregate, over columns that `name` names.
pub(super) fn aggregate_name<N: Display>(
    aggregate: &Aggregate,
    name: impl Fn(usize) -> N,
) -> String {
    let input = aggregate.input.map_or_else(|| "*".to_string(), |column| name(column).to_string());
    let distinct = if aggregate.distinct { "DISTINCT " } else { "" };
    let rank = aggregate.rank.map(|rank| format!(", {}", name(rank))).unwrap_or_default();
    let filter = aggregate.filter.map(|filter| format!(" where {}", name(filter)));
    let filter = filter.unwrap_or_default();
    format!("{}({distinct}{input}{rank}){filter}", function_name(aggregate.function))
}

/// Writes the columns of a schema, and expressions over them.
pub(super) struct Names<'a>(pub(super) &'a Schema);

impl Names<'_> {
    /// A column; one whose name occurs twice is followed by its number.
    pub(super) fn column(&self, column: usize) -> String {
        let name = self.0.field(column).name();
        match self.0.fields().iter().filter(|field| field.name() == name).count() {
            1 => name.clone(),
            _ => format!("{name}#{column}"),
        }
    }

    /// All columns.
    pub(super) fn all(&self) -> String {
        self.list(&(0..self.0.fields().len()).collect::<Vec<_>>())
    }

    /// The names of columns, as they are.
    pub(super) fn each(&self, columns: &[usize]) -> Vec<String> {
        columns.iter().map(|&column| self.0.field(column).name().clone()).collect()
    }

    /// Columns, in parentheses.
    pub(super) fn list(&self, columns: &[usize]) -> String {
        let names: Vec<String> = columns.iter().map(|&column| self.column(column)).collect();
        format!("({})", names.join(", "))
    }

    /// As [`Names::list`], without parentheses.
    pub(super) fn plain(&self, columns: &[usize]) -> String {
        let names: Vec<String> = columns.iter().map(|&column| self.column(column)).collect();
        names.join(", ")
    }

    /// An order.
    pub(super) fn order(&self, order: &[(usize, SortOptions)]) -> String {
        let column = |&(column, options): &(usize, SortOptions)| {
            let direction = if options.descending { " desc" } else { "" };
            let nulls = match (options.nulls_first, options.descending) {
                (true, false) => " nulls first",
                (false, true) => " nulls last",
                _ => "",
            };
            format!("{}{direction}{nulls}", self.column(column))
        };
        order.iter().map(column).collect::<Vec<_>>().join(", ")
    }

    fn arguments(&self, arguments: &[Argument]) -> String {
        let argument = |argument: &Argument| match argument {
            Argument::Column(column) => self.column(*column),
            Argument::Constant(value) => quoted(value).unwrap_or_else(|| value.to_string()),
        };
        arguments.iter().map(argument).collect::<Vec<_>>().join(", ")
    }

    /// A window function.
    pub(super) fn window(&self, function: &WindowFunction) -> String {
        let arguments = self.arguments(&function.arguments);
        format!("{}({arguments})", function.function.name())
    }

    /// A unique key.
    pub(super) fn key(&self, key: &[usize]) -> String {
        if key.is_empty() { "at most one row".to_string() } else { self.list(key) }
    }

    /// An aggregate.
    pub(super) fn aggregate(&self, aggregate: &Aggregate) -> String {
        aggregate_name(aggregate, |column| self.column(column))
    }

    /// An aggregate that is recomputed.
    pub(super) fn fallback(&self, function: &Fallback) -> String {
        let distinct = if function.distinct { "DISTINCT " } else { "" };
        let mut text = format!(
            "{}({distinct}{}",
            function.function.name(),
            self.arguments(&function.arguments)
        );
        if !function.order.is_empty() {
            text += &format!(" ORDER BY {}", self.order(&function.order));
        }
        text.push(')');
        if let Some(filter) = function.filter {
            text += &format!(" where {}", self.column(filter));
        }
        text + " (re-evaluated)"
    }

    /// An expression over these columns.
    pub(super) fn expression(&self, expression: &Expression) -> Result<String, fmt::Error> {
        let named = Expression::clone(expression).transform_up(|node| {
            let shown = if let Some(column) = expression::as_column(&node) {
                self.column(column)
            } else if let Some(literal) = node.downcast_ref::<Literal>() {
                match quoted(literal.value()) {
                    Some(quoted) => quoted,
                    None => return Ok(Transformed::no(node)),
                }
            } else {
                return Ok(Transformed::no(node));
            };
            // A column stands for its own text.
            Ok(Transformed::yes(Arc::new(Column::new(&shown, 0)) as Expression))
        });
        let named = named.map_or_else(|_| Expression::clone(expression), |named| named.data);
        let mut text = String::new();
        write!(text, "{}", Sql(&named))?;
        Ok(text)
    }
}

/// A literal that SQL writes in quotes; `None` for one that it writes bare.
pub(super) fn quoted(value: &ScalarValue) -> Option<String> {
    let data_type = value.data_type();
    if value.is_null()
        || data_type.is_numeric()
        || data_type == DataType::Boolean
        || data_type == DataType::Null
    {
        return None;
    }
    let text = match value {
        ScalarValue::Binary(Some(bytes))
        | ScalarValue::LargeBinary(Some(bytes))
        | ScalarValue::BinaryView(Some(bytes))
        | ScalarValue::FixedSizeBinary(_, Some(bytes)) => {
            bytes.iter().fold("\\x".to_owned(), |text, byte| text + &format!("{byte:02x}"))
        }
        value => match value.cast_to(&DataType::Utf8) {
            Ok(ScalarValue::Utf8(Some(text))) => text,
            _ => value.to_string(),
        },
    };
    Some(format!("'{}'", text.replace('\'', "''")))
}

/// An expression as SQL, with columns by their names.
pub(super) struct Sql<'a>(pub(super) &'a Expression);

impl fmt::Display for Sql<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(formatter)
    }
}
