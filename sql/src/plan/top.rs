//! The first rows of groups, behind the ways SQL has to ask for them.

use std::sync::Arc;

use alluvium_dataflow::ranked::{Numbering, Top};
use arrow::array::RecordBatch;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::ScalarValue;
use datafusion_expr::logical_plan::{self as logical, FetchType, SkipType};
use datafusion_expr::{LogicalPlan, Operator, WindowFunctionDefinition};
use datafusion_physical_expr::expressions::{BinaryExpr, CastExpr, Literal};
use datafusion_physical_expr::split_conjunction;

use super::build::{Builder, check_columns, renamed};
use super::construct::minimal;
use super::expression::{self, Expression};
use super::order::{ASCENDING, Projection, ties};
use super::{IncrementalPlan, Node};
use crate::error::{Error, Result};

impl IncrementalPlan {
    /// The rows of each group that `which` chooses.
    ///
    /// Where rows are numbered one by one, those equal in `order` are put in the order of a unique key, if
    /// there is one: other columns then may or may not be kept without any difference.
    pub(crate) fn top(
        input: IncrementalPlan,
        keys: Vec<usize>,
        mut order: Vec<(usize, SortOptions)>,
        which: Top,
    ) -> datafusion_common::Result<IncrementalPlan> {
        if which.take == Some(0) {
            let mut fields: Vec<Arc<Field>> = input.schema.fields().iter().cloned().collect();
            fields.extend(which.numbered.then(number_field));
            let rows = RecordBatch::new_empty(Arc::new(Schema::new(fields)));
            return Ok(IncrementalPlan::constant(rows));
        }
        order.retain(|(column, _)| !keys.contains(column));
        if which.numbering == Numbering::Row {
            let ties = ties(&input, &keys, &order).unwrap_or_default();
            order.extend(ties.into_iter().map(|column| (column, ASCENDING)));
        }
        let mut fields: Vec<Arc<Field>> = input.schema.fields().iter().cloned().collect();
        let mut unique = input.unique.clone();
        if which.numbering == Numbering::Row && which.take == Some(1) {
            unique.push(keys.clone());
        }
        if which.numbered {
            if which.numbering == Numbering::Row {
                unique.push(keys.iter().copied().chain([fields.len()]).collect());
            }
            fields.push(number_field());
        }
        Ok(IncrementalPlan {
            unique: minimal(unique),
            append_only: false,
            schema: Arc::new(Schema::new(fields)),
            node: Node::Top { input: Box::new(input), keys, order, which },
        })
    }
}

fn number_field() -> Arc<Field> {
    Arc::new(Field::new("number", DataType::UInt64, false))
}

impl Builder<'_> {
    /// LIMIT and OFFSET.
    pub(super) fn limit(&self, limit: &logical::Limit) -> Result<IncrementalPlan> {
        let unknown = || {
            let position = self.landmarks.limit.or(self.landmarks.start);
            Error::not_supported("LIMIT by an expression in a view", position)
        };
        let SkipType::Literal(skip) = limit.get_skip_type()? else { return Err(unknown()) };
        let FetchType::Literal(take) = limit.get_fetch_type()? else { return Err(unknown()) };
        let which = Top {
            numbering: Numbering::Row,
            skip: skip as u64,
            take: take.map(|take| take as u64),
            numbered: false,
        };
        self.first_of(&limit.input, which)
    }

    /// The first `count` rows of a sort.
    pub(super) fn first(&self, sort: &LogicalPlan, count: usize) -> Result<IncrementalPlan> {
        let take = Some(count as u64);
        self.first_of(sort, Top { numbering: Numbering::Row, skip: 0, take, numbered: false })
    }

    /// The first rows of a plan, in the order that it has.
    fn first_of(&self, plan: &LogicalPlan, which: Top) -> Result<IncrementalPlan> {
        match plan {
            LogicalPlan::Projection(projection) => {
                let input = self.first_of(&projection.input, which)?;
                self.projection(projection, input)
            }
            LogicalPlan::SubqueryAlias(alias) => {
                renamed(self.first_of(&alias.input, which)?, &alias.schema)
            }
            LogicalPlan::Sort(sort)
                if sort.fetch.is_none_or(|fetch| which.last() <= fetch as u64) =>
            {
                let input = self.build(&sort.input)?;
                let width = input.schema.fields().len();
                let mut projection = Projection::of(&input);
                let order = self.order(&sort.expr, sort.input.schema(), &mut projection)?;
                let input = projection.over(input)?;
                check_columns(&input.schema)?;
                let top = IncrementalPlan::top(input, Vec::new(), order, which)?;
                Ok(IncrementalPlan::columns(top, &(0..width).collect::<Vec<_>>())?)
            }
            other => {
                let input = self.build(other)?;
                check_columns(&input.schema)?;
                Ok(IncrementalPlan::top(input, Vec::new(), Vec::new(), which)?)
            }
        }
    }
}

/// Which numbers a condition lets through.
struct Numbers {
    above: u64,
    /// The last one.
    up_to: Option<u64>,
}

/// A filter of a number over a window as the first rows of each partition, and what is left of the filter.
///
/// `project` is evaluated on the rows that are left.
pub(super) fn bounded(
    input: IncrementalPlan,
    filter: Option<Expression>,
    project: &[(Expression, String)],
) -> datafusion_common::Result<(IncrementalPlan, Option<Expression>)> {
    let (Node::Window { input: rows, functions, .. }, Some(condition)) = (&input.node, &filter)
    else {
        return Ok((input, filter));
    };
    let number = rows.schema.fields().len();
    let numbering = match functions.as_slice() {
        [function] => match &function.function {
            WindowFunctionDefinition::WindowUDF(function) => match function.name() {
                "row_number" => Numbering::Row,
                "rank" => Numbering::Rank,
                "dense_rank" => Numbering::DenseRank,
                _ => return Ok((input, filter)),
            },
            WindowFunctionDefinition::AggregateUDF(_) => return Ok((input, filter)),
        },
        _ => return Ok((input, filter)),
    };
    let mut numbers = Numbers { above: 0, up_to: None };
    let mut rest = None;
    for part in split_conjunction(condition) {
        if !numbers.narrow(part, number) {
            rest = expression::and(rest, Some(Arc::clone(part)));
        }
    }
    let Some(last) = numbers.up_to else { return Ok((input, filter)) };
    let mut numbered = false;
    for expression in rest.iter().chain(project.iter().map(|(expression, _)| expression)) {
        expression::for_each_column(expression, &mut |column| numbered |= column == number);
    }
    let Node::Window { input: rows, keys, order, .. } = input.node else {
        unreachable!("it is a window");
    };
    let take = Some(last.saturating_sub(numbers.above));
    let which = Top { numbering, skip: numbers.above, take, numbered };
    Ok((IncrementalPlan::top(*rows, keys, order, which)?, rest))
}

impl Numbers {
    /// Takes a condition in, if it is a comparison of column `number` with a constant.
    fn narrow(&mut self, condition: &Expression, number: usize) -> bool {
        let Some(comparison) = condition.downcast_ref::<BinaryExpr>() else { return false };
        let (operator, constant) = match (
            is_number(comparison.left(), number),
            whole(comparison.right()),
            is_number(comparison.right(), number),
            whole(comparison.left()),
        ) {
            (true, Some(constant), _, _) => (Some(*comparison.op()), constant),
            (_, _, true, Some(constant)) => (comparison.op().swap(), constant),
            _ => return false,
        };
        let within = |number: i128| u64::try_from(number.max(0)).unwrap_or(u64::MAX);
        let (above, up_to) = match operator {
            Some(Operator::Lt) => (0, Some(within(constant - 1))),
            Some(Operator::LtEq) => (0, Some(within(constant))),
            Some(Operator::Eq) => (within(constant - 1), Some(within(constant))),
            Some(Operator::Gt) => (within(constant), None),
            Some(Operator::GtEq) => (within(constant - 1), None),
            _ => return false,
        };
        self.above = self.above.max(above);
        self.up_to = match (self.up_to, up_to) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        true
    }
}

/// Whether an expression is column `number`, perhaps as another type of whole numbers.
fn is_number(expression: &Expression, number: usize) -> bool {
    match expression.downcast_ref::<CastExpr>() {
        Some(cast) => cast.cast_type().is_integer() && is_number(cast.expr(), number),
        None => expression::as_column(expression) == Some(number),
    }
}

/// The whole number that an expression is.
fn whole(expression: &Expression) -> Option<i128> {
    let value = expression.downcast_ref::<Literal>()?.value();
    if !value.data_type().is_integer() {
        return None;
    }
    match value.cast_to(&DataType::Decimal128(38, 0)) {
        Ok(ScalarValue::Decimal128(value, ..)) => value,
        _ => None,
    }
}
