//! Consecutive maps, as one operator.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_physical_expr::PhysicalExpr;

use super::evaluate::{Evaluation, Work};
use crate::movement::delta::Delta;
use crate::movement::fuel::Produced;

/// One of several consecutive maps.
#[derive(Clone, Debug)]
pub struct MapStep {
    /// Over the columns of the step before; the rows for which it is true are kept.
    pub filter: Option<Arc<dyn PhysicalExpr>>,
    /// Over the columns of the step before, for the rows that are kept.
    pub project: Vec<Arc<dyn PhysicalExpr>>,
    /// The columns of the step.
    pub schema: SchemaRef,
    /// Whether rows for which an expression fails are errors; they are left out in any case.
    pub reports: bool,
}

/// Consecutive maps.
pub(super) struct Chain {
    steps: Vec<(Evaluation, bool)>,
}

/// The remaining work for one delta: that of the first steps.
pub(super) struct Rest<T> {
    works: Vec<Work<T>>,
}

impl<T: Clone> Rest<T> {
    /// All steps of `delta`.
    pub(super) fn new(delta: Delta<T>) -> Self {
        Self { works: vec![Work::new(delta)] }
    }
}

impl Chain {
    pub(super) fn new(steps: Vec<MapStep>) -> Self {
        let steps = steps
            .into_iter()
            .map(|step| (Evaluation::new(step.filter, step.project, step.schema), step.reports));
        Self { steps: steps.collect() }
    }

    /// Maps some rows: the rows one step makes of them pass all later steps before that step continues. `None` if none are
    /// left.
    pub(super) fn advance<T: Clone>(&self, rest: &mut Rest<T>) -> Option<Produced<T>> {
        loop {
            let place = rest.works.len().checked_sub(1)?;
            let (evaluation, reports) = &self.steps[place];
            let Some(produced) = evaluation.advance(&mut rest.works[place]) else {
                rest.works.pop();
                continue;
            };
            let Produced { rows, errors } = produced;
            let errors = errors.filter(|_| *reports);
            if place + 1 == self.steps.len() {
                return Some(Produced { rows, errors });
            }
            let none = errors.is_some().then(|| rows.slice(0, 0));
            if !rows.is_empty() {
                rest.works.push(Work::new(rows));
            }
            if let Some(rows) = none {
                return Some(Produced { rows, errors });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion_expr::Operator;
    use datafusion_physical_expr::expressions::{BinaryExpr, Column, lit};

    use super::*;

    /// Subtracts `number` from a quotient by the column, for the rows above `least`.
    fn step(least: i64, number: i64, reports: bool) -> MapStep {
        let column = || Arc::new(Column::new("x", 0)) as Arc<dyn PhysicalExpr>;
        let binary = |left, operator, right| {
            let binary = BinaryExpr::new(left, operator, right).with_fail_on_overflow(true);
            Arc::new(binary) as Arc<dyn PhysicalExpr>
        };
        // Fails where the column is `number`.
        let rest = binary(column(), Operator::Minus, lit(number));
        let one = binary(rest.clone(), Operator::Divide, rest);
        MapStep {
            filter: Some(binary(column(), Operator::Gt, lit(least))),
            project: vec![binary(
                binary(column(), Operator::Minus, lit(1_i64)),
                Operator::Multiply,
                one,
            )],
            schema: Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, true)])),
            reports,
        }
    }

    /// The numbers that steps make of 0 to 9, and how many errors.
    fn mapped(steps: Vec<MapStep>) -> (Vec<i64>, usize) {
        let numbers: Int64Array = (0..10).collect();
        let rows = RecordBatch::try_from_iter_with_nullable([("x", Arc::new(numbers) as _, true)]);
        let chain = Chain::new(steps);
        let mut rest = Rest::new(Delta::insertions(rows.unwrap(), 0_u64));
        let (mut values, mut errors) = (Vec::new(), 0);
        while let Some(produced) = chain.advance(&mut rest) {
            let rows = &produced.rows.rows;
            values.extend(rows.column(0).as_primitive::<Int64Type>().values());
            errors += produced.errors.map_or(0, |errors| errors.len());
        }
        (values, errors)
    }

    #[test]
    fn each_step_takes_what_the_one_before_leaves() {
        // 3 to 9, less one; of these 4 to 8, less one.
        assert_eq!(mapped(vec![step(2, 0, true), step(3, 0, true)]), (vec![3, 4, 5, 6, 7], 0));
    }

    #[test]
    fn only_steps_that_report_have_errors() {
        // The first fails for 5, and the second for the 7 that was 8.
        for (first, second, errors) in
            [(true, true, 2), (true, false, 1), (false, true, 1), (false, false, 0)]
        {
            let steps = vec![step(2, 5, first), step(3, 7, second)];
            assert_eq!(mapped(steps), (vec![4, 5, 7], errors));
        }
    }
}
