//! EXPLAIN of a query: DataFusion's operators, and what they have done.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use alluvium_sql::name;
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};

use super::create_index::create_index;
use super::explanation::{
    Explanation, Figures, Kind, LEAST, Measured as MeasuredRun, Node, Totals, percent, rows,
    seconds,
};
use super::measured::Measured;
use crate::query::scan::Scan;

/// How many times as many rows as it leaves a condition meets, for an index to be worth it.
const SELECTIVE: u64 = 10;

/// The operators of a physical plan.
pub(in crate::query) fn explain(plan: &Arc<dyn ExecutionPlan>) -> Explanation {
    let mut explanation = Explanation::new(Kind::Query, None);
    let mut tree = explanation.tree();
    let mut left = vec![(0, plan)];
    while let Some((depth, plan)) = left.pop() {
        tree.add(depth, None, Node::new(Shown(plan.as_ref()).to_string(), Vec::new()));
        left.extend(plan.children().into_iter().rev().map(|input| (depth + 1, input)));
    }
    explanation
}

/// The operators of a query that has run, which gave so many rows.
pub(in crate::query) fn explain_run(
    operators: &[Measured],
    waited: Duration,
    count: u64,
) -> Explanation {
    let own = |operator: &Measured| {
        let inputs: Duration = operator.inputs.iter().map(|input| operators[*input].whole()).sum();
        operator.whole().saturating_sub(inputs)
    };
    let busy = operators.iter().map(own).sum();
    let mut explanation = Explanation::new(Kind::Query, None);
    explanation.totals = Some(Totals { busy, of: MeasuredRun::Query { rows: count, waited } });
    if waited >= LEAST && waited >= busy {
        explanation.notes.push(format!(
            "it waited {} for its relations to be complete, longer than it ran: a view that is late says why in EXPLAIN ANALYZE of it, and SET alluvium.stale_reads = on reads what is complete",
            seconds(waited)
        ));
    }
    // The last one is read by none.
    let mut left: Vec<(usize, usize)> =
        operators.len().checked_sub(1).into_iter().map(|last| (0, last)).collect();
    let mut places = Vec::with_capacity(operators.len());
    let mut tree = explanation.tree();
    while let Some((depth, place)) = left.pop() {
        let operator = &operators[place];
        let (spill_files, spilled_bytes) = operator.spilled();
        let spilled = |number| (spill_files > 0).then_some(number);
        let figures = Figures {
            busy: own(operator),
            busy_percent: percent(own(operator), busy),
            rows_out: operator.rows(),
            bytes_out: operator.bytes(),
            spill_files: spilled(spill_files),
            spilled_bytes: spilled(spilled_bytes),
            ..Figures::default()
        };
        let node = Node::new(Shown(operator.operator.as_ref()).to_string(), Vec::new());
        tree.add(depth, None, Node { figures: Some(figures), ..node });
        places.push(place);
        left.extend(operator.inputs.iter().rev().map(|input| (depth + 1, *input)));
    }
    explanation.add_inputs(|_| true);
    for id in explanation.rank() {
        explanation.nodes[id].sentences =
            advice(places[id], operators, own(&operators[places[id]]));
    }
    explanation
}

/// What dominates the time of an operator, and what would help.
fn advice(place: usize, operators: &[Measured], busy: Duration) -> Vec<String> {
    let measured = &operators[place];
    let operator = &measured.operator;
    let mut sentences = Vec::new();
    if operator.is::<NestedLoopJoinExec>() || operator.is::<CrossJoinExec>() {
        sentences.push("it has no equality, so each row meets all rows of the other side: a condition with = of a column of each side is looked up instead".to_owned());
    }
    sentences.extend(index_for(place, operators));
    if let (files @ 1.., bytes) = measured.spilled() {
        let files = if files == 1 { "a file".to_owned() } else { format!("{files} files") };
        sentences.push(format!("there was no memory for its rows: it wrote {bytes} bytes to {files} and read them again; fewer rows or columns before it, or a larger memory budget, spare that"));
    }
    if sentences.is_empty() {
        let each = busy.as_nanos().checked_div(u128::from(measured.rows()));
        sentences.push(match each {
            Some(each) => format!("it took {each} ns for each row that it gave: fewer rows, by a condition before it, take less"),
            None => "it gave no row: fewer rows before it, by a condition there, take less".to_owned(),
        });
    }
    sentences
}

/// The index that would make a seek of a scan and the condition on its rows, of which either is this operator.
fn index_for(place: usize, operators: &[Measured]) -> Option<String> {
    let (filter, scan) = operators.iter().enumerate().find_map(|(at, filter)| {
        let mut input = *filter.inputs.first()?;
        while operators[input].operator.is::<CooperativeExec>() {
            input = *operators[input].inputs.first()?;
        }
        let is_this = filter.operator.is::<FilterExec>() && (at == place || input == place);
        is_this.then(|| (filter, &operators[input]))
    })?;
    let source = scan.operator.downcast_ref::<DataSourceExec>()?.data_source();
    let Scan { relation, seek, .. } = source.downcast_ref::<Scan>()?;
    let (read, left) = (scan.rows(), filter.rows());
    let may_have_index = seek.is_none() && !name::is_temporary(relation);
    if !may_have_index || read < SELECTIVE * left.max(1) {
        return None;
    }
    let predicate = filter.operator.downcast_ref::<FilterExec>()?.predicate();
    let compared: BTreeSet<&str> =
        split_conjunction(predicate).into_iter().filter_map(compared).collect();
    let columns: Vec<&str> = compared.into_iter().collect();
    (!columns.is_empty()).then(|| {
        let (read, create_index) = (rows(read), create_index(relation, &columns));
        format!(
            "it reads {read}, of which the condition leaves {left}: {create_index} makes it a seek"
        )
    })
}

/// The column that a condition compares with values.
fn compared(condition: &Arc<dyn PhysicalExpr>) -> Option<&str> {
    let column = |side: &Arc<dyn PhysicalExpr>| side.is::<Column>();
    let side = if let Some(binary) = condition.downcast_ref::<BinaryExpr>() {
        let is_order = matches!(
            binary.op(),
            Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq
        );
        match (binary.left(), binary.right()) {
            _ if !is_order => return None,
            (side, value) if column(side) && value.is::<Literal>() => side,
            (value, side) if column(side) && value.is::<Literal>() => side,
            _ => return None,
        }
    } else {
        let list = condition.downcast_ref::<InListExpr>()?;
        let is_values = !list.negated() && list.list().iter().all(|value| value.is::<Literal>());
        Some(list.expr()).filter(|_| is_values)?
    };
    Some(side.downcast_ref::<Column>()?.name())
}

/// An operator on a line.
struct Shown<'a>(&'a dyn ExecutionPlan);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(DisplayFormatType::Default, formatter)
    }
}

#[cfg(test)]
mod tests {
    use alluvium_sql::statement::ExplainFormat;
    use datafusion::physical_plan::displayable;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::limit::GlobalLimitExec;
    use datafusion::physical_plan::union::UnionExec;

    use super::*;

    #[test]
    fn the_text_is_that_of_datafusion() {
        let schema = Arc::new(arrow::datatypes::Schema::empty());
        let empty = || Arc::new(EmptyExec::new(schema.clone()));
        let limited: Arc<dyn ExecutionPlan> = Arc::new(GlobalLimitExec::new(empty(), 1, Some(2)));
        let plan = UnionExec::try_new(vec![limited, empty()]).expect("they have the same columns");
        let expected = displayable(plan.as_ref()).indent(false).to_string();
        assert_eq!(expected.lines().count(), 4);
        assert_eq!(explain(&plan).written(ExplainFormat::Text), expected);
    }

    #[test]
    fn a_query_that_waits_longer_than_it_runs_says_so() {
        let text = |waited| explain_run(&[], waited, 1).written(ExplainFormat::Text);
        let summary = "the query took 0.000 s, gave 1 row, and waited 0.020 s for its relations\n";
        let waited = text(Duration::from_millis(20));
        let note = waited.strip_prefix(summary).expect("it is said first");
        assert!(note.starts_with("it waited 0.020 s for its relations to be complete"), "{note}");
        assert_eq!(text(Duration::ZERO).lines().count(), 1);
    }
}
