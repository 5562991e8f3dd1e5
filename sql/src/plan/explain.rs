//! Incremental plans as text.
//!
//! A node a line, its inputs indented below it; in brackets what is known of its rows and what it
//! keeps. A column whose name its input has twice is written with its number, as `id#3`.

use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::aggregate::{Aggregate, Fallback};
use alluvium_dataflow::ranked::{Numbering, Top};
use alluvium_dataflow::window::{Argument, WindowFunction};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Schema};
use datafusion_common::ScalarValue;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_physical_expr::expressions::{Column, Literal};

use super::aggregate::function_name;
use super::expression::{self, Expression};
use super::outer_join::{joined_schema, kind_name};
use super::{IncrementalPlan, Node};
use crate::planner::set_operation_name;

/// The plan, a node a line.
pub(crate) fn explain(plan: &IncrementalPlan) -> String {
    let mut text = String::new();
    write_node(plan, 0, &mut text).expect("a string takes any text");
    text
}

fn write_node(plan: &IncrementalPlan, depth: usize, text: &mut String) -> fmt::Result {
    write!(text, "{:indent$}", "", indent = 2 * depth)?;
    let names = Names(&plan.schema);
    let state = match &plan.node {
        Node::Scan { relation, columns } => {
            let columns: Vec<usize> = (0..columns.len()).collect();
            write!(text, "scan {relation} {}", names.list(&columns))?;
            None
        }
        Node::Stream { relation, columns } => {
            let columns: Vec<usize> = (0..columns.len()).collect();
            write!(text, "stream {relation} {}", names.list(&columns))?;
            None
        }
        Node::Index { number, keys } => {
            write!(text, "index {number} {}", names.list(keys))?;
            None
        }
        Node::Constant { rows } => {
            let rows = rows.num_rows();
            write!(text, "constant: {rows} row{}", if rows == 1 { "" } else { "s" })?;
            None
        }
        Node::Map { input, filter, project } => {
            let below = Names(&input.schema);
            text.push_str("map");
            for (number, expression) in project.iter().enumerate() {
                text.push_str(if number == 0 { " " } else { ", " });
                let shown = below.expression(expression)?;
                let name = plan.schema.field(number).name();
                match expression::as_column(expression) {
                    Some(column) if input.schema.field(column).name() == name => {
                        text.push_str(&shown)
                    }
                    _ if shown == *name => text.push_str(&shown),
                    _ => write!(text, "{shown} AS {name}")?,
                }
            }
            if let Some(filter) = filter {
                write!(text, " where {}", below.expression(filter)?)?;
            }
            None
        }
        Node::Join { on, .. } if on.is_empty() => {
            text.push_str("cross join");
            Some("both sides".to_string())
        }
        Node::Join { left, right, on } => {
            let (left, right) = (Names(&left.schema), Names(&right.schema));
            let pairs: Vec<String> = on
                .iter()
                .map(|&(l, r)| format!("{} = {}", left.column(l), right.column(r)))
                .collect();
            let (l, r): (Vec<usize>, Vec<usize>) = on.iter().copied().unzip();
            write!(text, "join on {}", pairs.join(" and "))?;
            Some(format!("left by {}, right by {}", left.list(&l), right.list(&r)))
        }
        Node::Unnest { input, lists } => {
            write!(text, "unnest {}", Names(&input.schema).list(lists))?;
            None
        }
        Node::OuterJoin { left, right, on, kind, residual } => {
            let pairs = joined_schema(left, right);
            let (left, right) = (Names(&left.schema), Names(&right.schema));
            text.push_str(kind_name(*kind));
            for (number, &(l, r)) in on.iter().enumerate() {
                text.push_str(if number == 0 { " on " } else { " and " });
                write!(text, "{} = {}", left.column(l), right.column(r))?;
            }
            if let Some(residual) = residual {
                write!(text, " where {}", Names(&pairs).expression(residual)?)?;
            }
            let (l, r): (Vec<usize>, Vec<usize>) = on.iter().copied().unzip();
            let sides = match on.is_empty() {
                true => "both sides".to_string(),
                false => format!("left by {}, right by {}", left.list(&l), right.list(&r)),
            };
            Some(if residual.is_some() { format!("{sides}, rows with partners") } else { sides })
        }
        Node::Aggregate { input, keys, aggregates, fallbacks } => {
            let below = Names(&input.schema);
            let own = aggregates.iter().map(|aggregate| below.aggregate(aggregate));
            let others = fallbacks.iter().map(|function| below.fallback(function));
            let shown: Vec<String> = own.chain(others).collect();
            write!(text, "aggregate {}", shown.join(", "))?;
            if !keys.is_empty() {
                write!(text, " by {}", below.plain(keys))?;
            }
            let accumulated = |aggregate: &&Aggregate| aggregate.is_accumulated(input.append_only);
            let mut what = Vec::new();
            if aggregates.iter().any(|aggregate| accumulated(&aggregate)) {
                what.push("accumulators");
            }
            if aggregates.iter().any(|aggregate| aggregate.distinct) {
                what.push("distinct values");
            }
            if !aggregates.iter().all(|aggregate| accumulated(&aggregate)) {
                what.push("ordered values");
            }
            if !fallbacks.is_empty() {
                what.push("rows");
            }
            let what = what.join(" and ");
            Some(match keys.is_empty() {
                true => format!("{what} of one group"),
                false => format!("{what} by {}", below.list(keys)),
            })
        }
        Node::Top { input, keys, order, which } => {
            let below = Names(&input.schema);
            text.push_str(&chosen(*which));
            if !order.is_empty() {
                write!(text, " in order of {}", below.order(order))?;
            }
            Some(match keys.is_empty() {
                true => "rows in order".to_string(),
                false => {
                    write!(text, " by {}", below.plain(keys))?;
                    format!("rows in order by {}", below.list(keys))
                }
            })
        }
        Node::Window { input, keys, order, functions, .. } => {
            let below = Names(&input.schema);
            let shown: Vec<String> =
                functions.iter().map(|function| below.window(function)).collect();
            write!(text, "window {}", shown.join(", "))?;
            if !order.is_empty() {
                write!(text, " in order of {}", below.order(order))?;
            }
            if !keys.is_empty() {
                write!(text, " by {}", below.plain(keys))?;
            }
            text.push_str(" (re-evaluated)");
            Some(match keys.is_empty() {
                true => "rows in order".to_string(),
                false => format!("rows in order by {}", below.list(keys)),
            })
        }
        Node::Distinct { .. } => {
            text.push_str("distinct");
            Some("rows".to_string())
        }
        Node::SetOperation { operation, .. } => {
            text.push_str(&set_operation_name(*operation).to_lowercase());
            Some("rows of both sides".to_string())
        }
        Node::Union { .. } => {
            text.push_str("union");
            None
        }
        Node::View { name, .. } => {
            write!(text, "view {name}")?;
            None
        }
    };
    let unique = (!plan.unique.is_empty()).then(|| {
        let keys: Vec<String> = plan.unique.iter().map(|key| names.key(key)).collect();
        format!("unique: {}", keys.join(", "))
    });
    let append_only = plan.append_only && !matches!(plan.node, Node::Constant { .. });
    let properties: Vec<String> = unique
        .into_iter()
        .chain(append_only.then(|| "append-only".to_string()))
        .chain(state.map(|state| format!("keeps: {state}")))
        .collect();
    if !properties.is_empty() {
        write!(text, " [{}]", properties.join("; "))?;
    }
    text.push('\n');
    plan.inputs().into_iter().try_for_each(|input| write_node(input, depth + 1, text))
}

/// The names of a node's columns.
struct Names<'a>(&'a Schema);

impl Names<'_> {
    fn column(&self, column: usize) -> String {
        let name = self.0.field(column).name();
        match self.0.fields().iter().filter(|field| field.name() == name).count() {
            1 => name.clone(),
            _ => format!("{name}#{column}"),
        }
    }

    fn list(&self, columns: &[usize]) -> String {
        let names: Vec<String> = columns.iter().map(|&column| self.column(column)).collect();
        format!("({})", names.join(", "))
    }

    /// As [`Names::list`], without parentheses.
    fn plain(&self, columns: &[usize]) -> String {
        let names: Vec<String> = columns.iter().map(|&column| self.column(column)).collect();
        names.join(", ")
    }

    fn order(&self, order: &[(usize, SortOptions)]) -> String {
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

    fn window(&self, function: &WindowFunction) -> String {
        let arguments = self.arguments(&function.arguments);
        format!("{}({arguments})", function.function.name())
    }

    fn key(&self, key: &[usize]) -> String {
        if key.is_empty() { "at most one row".to_string() } else { self.list(key) }
    }

    fn aggregate(&self, aggregate: &Aggregate) -> String {
        let input = aggregate.input.map_or_else(|| "*".to_string(), |column| self.column(column));
        let distinct = if aggregate.distinct { "DISTINCT " } else { "" };
        format!("{}({distinct}{input})", function_name(aggregate.function))
    }

    fn fallback(&self, function: &Fallback) -> String {
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
    fn expression(&self, expression: &Expression) -> Result<String, fmt::Error> {
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
            // Only for its text: a column is written as its name.
            Ok(Transformed::yes(Arc::new(Column::new(&shown, 0)) as Expression))
        });
        let named = named.map_or_else(|_| Expression::clone(expression), |named| named.data);
        let mut text = String::new();
        write!(text, "{}", Sql(&named))?;
        Ok(text)
    }
}

/// Which rows of a group.
fn chosen(which: Top) -> String {
    let kind = match which.numbering {
        Numbering::Row => "rows",
        Numbering::Rank => "ranks",
        Numbering::DenseRank => "dense ranks",
    };
    let numbered = if which.numbered { " with numbers" } else { "" };
    match (which.skip, which.take) {
        (0, Some(take)) => format!("first {take} {kind}{numbered}"),
        (skip, Some(_)) => format!("{kind} {} to {}{numbered}", skip + 1, which.last()),
        (skip, None) => format!("{kind} from {} on{numbered}", skip.saturating_add(1)),
    }
}

/// A literal that SQL writes in quotes; `None` for what is written as it is.
fn quoted(value: &ScalarValue) -> Option<String> {
    let data_type = value.data_type();
    if value.is_null()
        || data_type.is_numeric()
        || data_type == DataType::Boolean
        || data_type == DataType::Null
    {
        return None;
    }
    match value.cast_to(&DataType::Utf8) {
        Ok(ScalarValue::Utf8(Some(text))) => Some(format!("'{}'", text.replace('\'', "''"))),
        _ => None,
    }
}

struct Sql<'a>(&'a Expression);

impl fmt::Display for Sql<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(formatter)
    }
}
