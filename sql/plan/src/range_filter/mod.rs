//! Filters on values that move: `WHERE v > (SELECT AVG(v) FROM t)` is a range join.
//!
//! A comparison of the two sides of a join is a filter of their pairs. When the value of one side moves, all pairs change, though
//! few come through the filter or leave it. A range join changes those only, if nothing above needs the value itself.
//!
//! It keeps both sides in an order of its own, which no other view can share. So a join with keys stays as it is unless the filter is
//! all that its right side is for; one without keys would meet every row in any case.
//!
//! Expressions that are moved below the join are evaluated for each row, and not for each pair. One of the left side that can fail is
//! moved only where that makes no difference: the right side always has one row. A right row for which an end fails has no ends, so it
//! meets all left rows, and the end is evaluated again for these pairs, to fail for each of them.

mod rows;
mod sides;

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium_dataflow::map;
use alluvium_dataflow::rows::layout::assemble;
use alluvium_sql_planner::rules::canonical_floats::NAN_FUNCTION;
use arrow::array::{Array, RecordBatch, new_null_array};
use arrow::datatypes::{DataType, Schema};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::{BinaryExpr, CaseExpr, CastExpr, lit};
use datafusion_physical_expr::{ScalarFunctionExpr, split_conjunction};

use self::sides::Sides;
use super::expression::{self, Expression};
use super::node::{Map, Side};
use super::prune::place;
use super::{IncrementalPlan, Node};

/// Replaces filters of joins by range joins, wherever that pays; returns whether there are such. The plan has its bounds: joins
/// whose state is pruned stay as they are.
pub(super) fn into_range_joins(plan: &mut IncrementalPlan) -> Result<bool> {
    // Rows that differ by round have no range joins.
    if matches!(plan.node, Node::Recursion(_)) {
        return Ok(false);
    }
    let mut is_changed = false;
    for input in plan.inputs_mut() {
        is_changed |= into_range_joins(input)?;
    }
    if let Node::Map(map) = &plan.node
        && let Some(replaced) = replaced(map, &plan.schema)?
        && is_same(&replaced.schema, &plan.schema)
    {
        let schema = Arc::clone(&plan.schema);
        *plan = IncrementalPlan { schema, ..replaced };
        is_changed = true;
    }
    Ok(is_changed)
}

/// Whether rows of the first schema are rows of the second one.
fn is_same(new: &Schema, old: &Schema) -> bool {
    let mut fields = new.fields().iter().zip(old.fields());
    fields.all(|(new, old)| {
        new.name() == old.name()
            && new.data_type() == old.data_type()
            && (!new.is_nullable() || old.is_nullable())
    })
}

/// The plan of a map of a join, with a range join instead.
fn replaced(map: &Map, schema: &Schema) -> Result<Option<IncrementalPlan>> {
    let Some(filter) = &map.filter else { return Ok(None) };
    let filters = split_conjunction(filter);
    for sides in Sides::of_join(&map.input) {
        if let Some(filter) = RangeFilter::find(&sides, &filters)?
            && filter.pays(&sides, &map.project)
        {
            return filter.apply(&sides, &map.project, schema).map(Some);
        }
    }
    Ok(None)
}

/// An end of a range, over the columns of the join.
struct FoundEnd {
    value: Expression,
    is_included: bool,
    can_fail: bool,
}

/// The conditions of a filter on the pairs of a join.
struct RangeFilter {
    /// The value that is compared, over the columns of the join.
    value: Expression,
    low: Option<FoundEnd>,
    high: Option<FoundEnd>,
    /// Whether the high end is evaluated before the low one.
    is_high_first: bool,
    /// Conditions on the left rows alone.
    of_left: Vec<Expression>,
    /// Conditions on the right rows alone.
    of_right: Vec<Expression>,
    /// All others. None of them can fail.
    rest: Vec<Expression>,
}

impl RangeFilter {
    fn find(sides: &Sides<'_>, filters: &[&Expression]) -> Result<Option<Self>> {
        let has_right = sides.right.has_one_row();
        let mut found: Option<Self> = None;
        let (mut of_left, mut of_right, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        // Whether all conditions so far hold for a left row before anything else is evaluated.
        let mut is_first = true;
        for &condition in filters {
            let is_safe = is_total(condition, sides.schema);
            match sides.of(condition) {
                Some(Side::Left) if is_safe || has_right && is_first => {
                    of_left.push(Arc::clone(condition));
                    continue;
                }
                Some(Side::Right) if is_safe => {
                    of_right.push(Arc::clone(condition));
                    continue;
                }
                _ => {}
            }
            if let Some((left, operator, right)) = sides.comparison(condition)
                && (is_total(&left, sides.schema) || has_right && is_first)
            {
                let can_fail = !is_total(&right, sides.schema);
                let filter = found.get_or_insert_with(|| Self::of(Arc::clone(&left)));
                if filter.take(&left, operator, right, can_fail) {
                    is_first = false;
                    continue;
                }
            }
            if !is_safe {
                return Ok(None);
            }
            is_first = false;
            rest.push(Arc::clone(condition));
        }
        let found = found.map(|found| Self { of_left, of_right, rest, ..found });
        Ok(found.filter(|found| !sides.keeps_left || found.drops_lonely_rows(sides)))
    }

    /// Whether no left row without a right one comes through the filter.
    fn drops_lonely_rows(&self, sides: &Sides<'_>) -> bool {
        let nulls = one_row_of_nulls(&sides.right.schema);
        let is_null = |end: &FoundEnd| {
            let value = sides.on_side(Arc::clone(&end.value), sides.right);
            let value = value.and_then(|value| value.evaluate(&nulls)?.into_array(1));
            value.is_ok_and(|value| value.is_null(0))
        };
        self.ends().any(is_null)
    }

    fn of(value: Expression) -> Self {
        let (of_left, of_right, rest) = Default::default();
        Self { value, low: None, high: None, is_high_first: false, of_left, of_right, rest }
    }

    /// Takes a comparison as an end of the range, if that has no such end yet.
    fn take(
        &mut self,
        value: &Expression,
        operator: Operator,
        right: Expression,
        can_fail: bool,
    ) -> bool {
        let is_first = self.ends().next().is_none();
        let end = match operator {
            Operator::Gt | Operator::GtEq => &mut self.low,
            _ => &mut self.high,
        };
        if end.is_some() || self.value.as_ref() != value.as_ref() {
            return false;
        }
        let is_included = matches!(operator, Operator::GtEq | Operator::LtEq);
        self.is_high_first |= is_first && matches!(operator, Operator::Lt | Operator::LtEq);
        *end = Some(FoundEnd { value: right, is_included, can_fail });
        true
    }

    fn ends(&self) -> impl Iterator<Item = &FoundEnd> {
        self.low.iter().chain(&self.high)
    }

    /// The right columns that are needed above the join.
    fn payload(&self, sides: &Sides<'_>, project: &[Expression]) -> BTreeSet<usize> {
        let mut payload = BTreeSet::new();
        for expression in project.iter().chain(&self.rest) {
            sides.used(expression, Side::Right, &mut payload);
        }
        payload
    }

    /// Whether less is done with a range join.
    fn pays(&self, sides: &Sides<'_>, project: &[Expression]) -> bool {
        if sides.left.properties.at_most_one_row() {
            return false;
        }
        if sides.right.properties.at_most_one_row() {
            return true;
        }
        let payload = self.payload(sides, project);
        let mut ends = BTreeSet::new();
        self.ends().for_each(|end| sides.used(&end.value, Side::Right, &mut ends));
        let are_ends_needed = !payload.is_disjoint(&ends);
        if sides.on.is_empty() {
            return !are_ends_needed || sides.is_swapped || self.is_value_needed(sides, project);
        }
        let keys = sides.on.iter().map(|pair| pair.1);
        let is_one = sides.right.properties.has_key_within(keys);
        !are_ends_needed
            && match source(sides.right) {
                Node::Aggregate(_) => payload.is_empty() || is_one,
                Node::Scan(_) => payload.is_empty(),
                _ => false,
            }
    }

    /// Whether the compared value is needed above the join. If it is not, its side had better have the ends than the other one.
    fn is_value_needed(&self, sides: &Sides<'_>, project: &[Expression]) -> bool {
        let (mut needed, mut compared) = (BTreeSet::new(), BTreeSet::new());
        for expression in project.iter().chain(&self.rest) {
            sides.used(expression, Side::Left, &mut needed);
        }
        sides.used(&self.value, Side::Left, &mut compared);
        !needed.is_disjoint(&compared)
    }

    fn apply(
        &self,
        sides: &Sides<'_>,
        project: &[Expression],
        schema: &Schema,
    ) -> Result<IncrementalPlan> {
        let mut needed: BTreeSet<usize> = sides.on.iter().map(|pair| pair.0).collect();
        for expression in project.iter().chain(&self.rest) {
            sides.used(expression, Side::Left, &mut needed);
        }
        let needed: Vec<usize> = needed.into_iter().collect();
        let payload: Vec<usize> = self.payload(sides, project).into_iter().collect();
        let (mut left, right) =
            (self.left_rows(sides, &needed)?, self.right_rows(sides, &payload)?);
        into_range_joins(&mut left.plan)?;
        let (value, width, inputs) = (left.value, left.plan.width(), right.inputs);
        let on = sides.on.iter().zip(right.keys);
        let on = on.map(|(&(l, _), r)| (place(&needed, l), r)).collect();
        let compared = (value, right.ends);
        let joined =
            IncrementalPlan::range_join(left.plan, right.plan, on, compared, right.payload)?;
        let column = |column: usize| expression::column(&joined.schema, column);
        let moved = |expression: &Expression| {
            expression::replace_columns(Arc::clone(expression), |of_join| {
                column(match sides.find(of_join) {
                    (Side::Left, of_left) => place(&needed, of_left),
                    (Side::Right, of_right) => width + place(&payload, of_right),
                })
            })
        };
        let mut rest = None;
        if self.can_fail() {
            let failed = width + payload.len();
            let holds = self.evaluated_again(column(value), |end| {
                expression::replace_columns(Arc::clone(end), |of_join| {
                    column(failed + 1 + place(&inputs, sides.find(of_join).1))
                })
            })?;
            let holds = CaseExpr::try_new(None, vec![(column(failed), holds)], Some(lit(true)))?;
            rest = Some(Arc::new(holds) as Expression);
        }
        for condition in &self.rest {
            rest = expression::and(rest, Some(moved(condition)?));
        }
        let names = schema.fields().iter().map(|field| field.name().clone());
        let project = project.iter().zip(names);
        let project: Result<Vec<_>> =
            project.map(|(expression, name)| Ok((moved(expression)?, name))).collect();
        IncrementalPlan::map(joined, rest, project?)
    }

    /// The condition that `value` is between the ends, which `input` gives; it fails as they do.
    fn evaluated_again(
        &self,
        value: Expression,
        input: impl Fn(&Expression) -> Result<Expression>,
    ) -> Result<Expression> {
        let compared = |end: &Option<FoundEnd>, included: Operator, other: Operator| {
            let Some(end) = end else { return Ok(None) };
            let operator = if end.is_included { included } else { other };
            let compared = BinaryExpr::new(Arc::clone(&value), operator, input(&end.value)?);
            Ok::<_, DataFusionError>(Some(Arc::new(compared) as Expression))
        };
        let low = compared(&self.low, Operator::GtEq, Operator::Gt)?;
        let high = compared(&self.high, Operator::LtEq, Operator::Lt)?;
        let (first, second) = if self.is_high_first { (high, low) } else { (low, high) };
        Ok(expression::and(first, second).unwrap_or_else(|| lit(true)))
    }
}

/// A row that has NULL in all columns of a schema.
fn one_row_of_nulls(schema: &Schema) -> RecordBatch {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let columns = schema.fields().iter().map(|field| new_null_array(field.data_type(), 1));
    let columns = columns.collect();
    assemble(Arc::new(schema), columns, 1)
}

/// The node whose rows a plan maps.
fn source(rows: &IncrementalPlan) -> &Node {
    match &rows.node {
        Node::Map(map) => source(&map.input),
        Node::View(view) => source(&view.input),
        node => node,
    }
}

/// Whether an expression has a value for each row of `schema`. False when in doubt.
fn is_total(expression: &Expression, schema: &Schema) -> bool {
    let type_of = |expression: &Expression| expression.data_type(schema).ok();
    let is_floating = |data_type: DataType| data_type.is_floating();
    let is_own = if let Some(cast) = expression.downcast_ref::<CastExpr>() {
        type_of(cast.expr()).is_some_and(|from| has_room(cast.cast_type(), &from))
    } else if let Some(call) = expression.downcast_ref::<ScalarFunctionExpr>() {
        call.name() == NAN_FUNCTION
    } else {
        map::is_total(expression)
            || is_sum(expression) && type_of(expression).is_some_and(is_floating)
    };
    is_own && expression.children().into_iter().all(|child| is_total(child, schema))
}

/// Whether a type of numbers has a value for each of another one.
fn has_room(data_type: &DataType, from: &DataType) -> bool {
    // The digits before the point, and after it.
    let digits = |data_type: &DataType| match data_type {
        DataType::Int8 => Some((3, 0)),
        DataType::Int16 => Some((5, 0)),
        DataType::Int32 => Some((10, 0)),
        DataType::Int64 => Some((19, 0)),
        DataType::Decimal128(precision, scale) => {
            Some((i16::from(*precision) - i16::from(*scale), i16::from(*scale)))
        }
        _ => None,
    };
    match (digits(data_type), digits(from)) {
        (Some(to), Some(from)) => to.0 >= from.0 && to.1 >= from.1,
        (None, _) => data_type.is_floating() && (from.is_integer() || from.is_floating()),
        (Some(_), None) => false,
    }
}

/// Whether an operator adds, subtracts or multiplies.
fn is_sum(expression: &Expression) -> bool {
    let binary = expression.downcast_ref::<BinaryExpr>();
    binary.is_some_and(|binary| {
        matches!(binary.op(), Operator::Plus | Operator::Minus | Operator::Multiply)
    })
}
