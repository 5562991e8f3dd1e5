//! Filters on the time: `WHERE ts > NOW() - INTERVAL '1' HOUR` is a temporal filter.

use std::sync::Arc;

use alluvium_dataflow::time::temporal_filter::Comparison;
use alluvium_sql_planner::{CLOCK, CLOCK_SCHEMA};
use arrow::datatypes::Schema;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::{BinaryExpr, CastExpr, Literal};
use datafusion_physical_expr::{ScalarFunctionExpr, split_conjunction};

use super::bounds::{self, LowerBound};
use super::expression::{self, Expression};
use super::node::Join;
use super::{IncrementalPlan, Node};

/// A condition on a row and the time.
struct Condition {
    /// Over the row's columns.
    row: Expression,
    comparison: Comparison,
    /// Over the column of the clock. It never falls.
    time: Expression,
}

/// Rows, and the filter and the projection of a map of them.
type Mapped = (IncrementalPlan, Option<Expression>, Vec<(Expression, String)>);

/// Replaces conditions of `filter` that compare rows with the time by temporal filters of the rows, which are joined with the
/// clock. Returns the rows with the rest of the filter: without the clock if nothing else needs it. `None` if there are no
/// such conditions.
///
/// `project` is evaluated on the rows that pass.
pub(super) fn into_temporal_filters(
    input: &IncrementalPlan,
    filter: &Option<Expression>,
    project: &[(Expression, String)],
) -> Result<Option<Mapped>> {
    let (Node::Join(join), Some(condition)) = (&input.node, filter) else { return Ok(None) };
    // The first transaction may have any time, and temporal filters cannot go back.
    let Some(clock) = Clock::of(join).filter(|clock| !clock.rows.has_constant_rows()) else {
        return Ok(None);
    };
    let (mut conditions, mut rest) = (Vec::new(), None);
    for part in split_conjunction(condition) {
        match clock.conditions(part)? {
            Some(found) => conditions.extend(found),
            None => rest = expression::and(rest, Some(Arc::clone(part))),
        }
    }
    if conditions.is_empty() {
        return Ok(None);
    }
    // Rows that have not come into view need not be kept among those that are.
    conditions.sort_by_key(|condition| !condition.comparison.comes());
    let rows = filtered(clock.rows, conditions)?;
    let project_uses = project.iter().map(|(expression, _)| expression);
    if rest.iter().chain(project_uses).any(|expression| clock.is_used_by(expression)) {
        let (left, right) = match clock.column {
            0 => (clock.clock.clone(), rows),
            _ => (rows, clock.clock.clone()),
        };
        return Ok(Some((IncrementalPlan::join(left, right, Vec::new())?, rest, project.to_vec())));
    }
    let schema = Arc::clone(&rows.schema);
    let moved = |expression: Expression| clock.over_rows(expression, &schema);
    let rest = rest.map(moved).transpose()?;
    let project = project.iter().cloned();
    let project = project.map(|(expression, name)| Ok((moved(expression)?, name)));
    let project = project.collect::<Result<_>>()?;
    Ok(Some((rows, rest, project)))
}

impl IncrementalPlan {
    /// Whether there may be rows before there is a first transaction.
    pub fn has_constant_rows(&self) -> bool {
        match &self.node {
            Node::Constant(_) | Node::Series(_) => true,
            Node::Scan(scan) => scan.view.as_ref().is_some_and(|view| view.are_constant),
            Node::Aggregate(aggregate) if aggregate.keys.is_empty() => true,
            Node::Join(join) => join.left.has_constant_rows() && join.right.has_constant_rows(),
            _ => self.inputs().into_iter().any(IncrementalPlan::has_constant_rows),
        }
    }
}

/// The rows for which all conditions hold.
fn filtered(rows: &IncrementalPlan, conditions: Vec<Condition>) -> Result<IncrementalPlan> {
    let width = rows.width();
    let (mut project, mut checks, mut filters) = (rows.identity(), Vec::new(), Vec::new());
    for Condition { row, comparison, time } in conditions {
        // A sum of a column and a constant is not kept beside the column. It still fails where it cannot be computed.
        let undone = bounds::undone(&row, &rows.schema, &time)
            .filter(|(column, time)| is_comparable(time, &rows.schema, *column));
        let is_computed = expression::as_column(&row).is_none() && undone.is_some();
        if is_computed || expression::is_nullable(&row, &rows.schema)? {
            let check = expression::is_not_null(&row);
            if !checks.iter().any(|known: &Expression| known.as_ref() == check.as_ref()) {
                checks.push(check);
            }
        }
        filters.push(undone.map_or((project.len(), comparison, time), |(column, time)| {
            (column, comparison, time)
        }));
        if filters.last().is_some_and(|(column, ..)| *column == project.len()) {
            project.push((row, format!("at{}", project.len() - width + 1)));
        }
    }
    let checked = checks.into_iter().fold(None, |all, check| expression::and(all, Some(check)));
    let rows = IncrementalPlan::map(rows.clone(), checked, project)?;
    let rows = filters.into_iter().fold(rows, |rows, (column, comparison, time)| {
        IncrementalPlan::temporal_filter(rows, column, comparison, time)
    });
    IncrementalPlan::columns(rows, &(0..width).collect::<Vec<_>>())
}

/// Whether a column of rows of `schema` can be compared with a function of the time.
fn is_comparable(time: &Expression, schema: &Schema, column: usize) -> bool {
    let data_type = time.data_type(&CLOCK_SCHEMA);
    data_type.is_ok_and(|data_type| data_type == *schema.field(column).data_type())
        && time_bound(time).is_some()
}

/// The clock as a side of a cross join.
struct Clock<'a> {
    clock: &'a IncrementalPlan,
    /// The other side.
    rows: &'a IncrementalPlan,
    /// The place of the time among the columns of the join: the first or the last.
    column: usize,
}

impl<'a> Clock<'a> {
    fn of(join: &'a Join) -> Option<Self> {
        if !join.on.is_empty() {
            return None;
        }
        let (left, right) = (&*join.left, &*join.right);
        match (left.is_clock(), right.is_clock()) {
            (false, true) => Some(Self { clock: right, rows: left, column: left.width() }),
            (true, false) => Some(Self { clock: left, rows: right, column: 0 }),
            _ => None,
        }
    }

    fn is_used_by(&self, expression: &Expression) -> bool {
        let mut uses = false;
        expression::for_each_column(expression, &mut |column| uses |= column == self.column);
        uses
    }

    /// The expression, which does not use the time, over the columns of the rows.
    fn over_rows(&self, expression: Expression, schema: &Schema) -> Result<Expression> {
        let before = usize::from(self.column == 0);
        expression::replace_columns(expression, |column| {
            expression::column(schema, column - before)
        })
    }

    /// The sides of a comparison or a difference of which only one uses the time: the other one, and whether it is the left one,
    /// and the time.
    fn sides<'e>(&self, binary: &'e BinaryExpr) -> Option<(&'e Expression, bool, &'e Expression)> {
        match (self.is_used_by(binary.left()), self.is_used_by(binary.right())) {
            (false, true) => Some((binary.left(), true, binary.right())),
            (true, false) => Some((binary.right(), false, binary.left())),
            _ => None,
        }
    }

    /// The sides of a comparison with the time: an expression of a row, the operator, and a function of the time.
    fn compared(&self, binary: &BinaryExpr) -> Option<(Expression, Operator, Expression)> {
        let (row, is_left, time) = self.sides(binary)?;
        let operator = if is_left { *binary.op() } else { binary.op().swap()? };
        let Some((difference, length)) = difference(time, row) else {
            return Some((Arc::clone(row), operator, Arc::clone(time)));
        };
        // `operator` says how the length compares with the difference.
        let (row, is_minuend, time) = self.sides(difference)?;
        let (shift, operator) = match is_minuend {
            true => (Operator::Plus, operator.swap()?),
            false => (Operator::Minus, operator),
        };
        let shifted = BinaryExpr::new(Arc::clone(time), shift, length);
        Some((Arc::clone(row), operator, Arc::new(shifted.with_fail_on_overflow(true))))
    }

    /// The conditions on rows and the time in a condition of a filter; `None` if it is not a comparison of a row with something that
    /// rises with the time.
    fn conditions(&self, condition: &Expression) -> Result<Option<Vec<Condition>>> {
        let Some(binary) = condition.downcast_ref::<BinaryExpr>() else { return Ok(None) };
        let Some((row, operator, time)) = self.compared(binary) else { return Ok(None) };
        let comparisons: &[Comparison] = match operator {
            Operator::Lt => &[Comparison::Before],
            Operator::LtEq => &[Comparison::BeforeOrAt],
            Operator::Gt => &[Comparison::After],
            Operator::GtEq => &[Comparison::AfterOrAt],
            Operator::Eq => &[Comparison::BeforeOrAt, Comparison::AfterOrAt],
            _ => return Ok(None),
        };
        let mut others = false;
        expression::for_each_column(&time, &mut |column| others |= column != self.column);
        let mut is_constant = true;
        expression::for_each_column(&row, &mut |_| is_constant = false);
        if others || is_constant {
            return Ok(None);
        }
        let time = expression::replace_columns(time, |_| expression::column(&CLOCK_SCHEMA, 0))?;
        let row = self.over_rows(row, &self.rows.schema)?;
        let (data_type, of_time) =
            (row.data_type(&self.rows.schema)?, time.data_type(&CLOCK_SCHEMA)?);
        let time = match data_type == of_time {
            true => time,
            // A difference of times is one of their numbers.
            false if bounds::has_same_numbers(&of_time, &data_type) => {
                Arc::new(CastExpr::new(time, data_type.clone(), None))
            }
            false => return Ok(None),
        };
        if !bounds::is_prunable(&data_type) || time_bound(&time).is_none() {
            return Ok(None);
        }
        let condition = |comparison: &Comparison| {
            let (row, time) = (Arc::clone(&row), Arc::clone(&time));
            Condition { row, comparison: *comparison, time }
        };
        Ok(Some(comparisons.iter().map(condition).collect()))
    }
}

/// The difference of times whose length is compared with a constant one, and that.
fn difference<'e>(
    compared: &'e Expression,
    constant: &Expression,
) -> Option<(&'e BinaryExpr, Expression)> {
    const DAY: i64 = 86_400_000_000_000;
    let call = compared.downcast_ref::<ScalarFunctionExpr>()?;
    let [argument] = call.args() else { return None };
    let difference = argument.downcast_ref::<BinaryExpr>()?;
    let is_difference = call.name() == "by_length" && *difference.op() == Operator::Minus;
    let length = match constant.downcast_ref::<Literal>()?.value() {
        ScalarValue::IntervalMonthDayNano(Some(length)) if is_difference => *length,
        _ => return None,
    };
    let days = length.months.checked_mul(30)?.checked_add(length.days)?;
    // Times have microseconds.
    if length.nanoseconds % 1_000 != 0 || length.nanoseconds.abs() >= DAY {
        return None;
    }
    let length = ScalarValue::new_interval_mdn(0, days, length.nanoseconds);
    Some((difference, Arc::new(Literal::new(length))))
}

/// The bound that a function of the time is; `None` if it may fall, or cannot be computed for all times that ever come.
pub(super) fn time_bound(time: &Expression) -> Option<LowerBound> {
    /// Half of the range of times: some 146,000 years.
    const FAR: i64 = i64::MAX / 2;
    let clock = LowerBound::waterline(CLOCK, 0, CLOCK_SCHEMA.field(0));
    let bound = bounds::lower_bound(time, &CLOCK_SCHEMA, &vec![Ok(clock)]).ok()?;
    let terms = bound.terms();
    let is_there = |at: i64| terms.iter().all(|term| term.value(at).is_some());
    (!terms.is_empty() && is_there(-FAR) && is_there(FAR)).then_some(bound)
}
