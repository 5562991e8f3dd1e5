//! Temporal filters: conditions that compare rows with the time.

use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::rows::codec::CodecError;
use alluvium_dataflow::time::temporal_filter::{self, Comparison, temporal_filter};
use alluvium_sql_planner::{CLOCK, CLOCK_SCHEMA};
use alluvium_trace::Epoch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

use super::{Node, PlanNode};
use crate::clock_filter::time_bound;
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::names;
use crate::names::Names;
use crate::physical::Place;
use crate::physical::{CompileResult, Compiler, Operator, OperatorId, Rendering};
use crate::prune::{place, prune_with};
use crate::{IncrementalPlan, LowerBounds, Properties, Reason, Retention, bounds};

/// The rows that have a value before or after the time in a column.
#[derive(Clone, Debug)]
pub struct TemporalFilter {
    /// The rows, none of which has NULL in the column.
    pub input: Box<IncrementalPlan>,
    /// The column.
    pub column: usize,
    /// How it has to compare with the time.
    pub comparison: Comparison,
    /// The time, as an expression over the column of the clock, of the column's type. It never falls.
    pub time: Expression,
    /// Which rows are needed: those that the time has not passed.
    pub retention: Retention,
}

impl IncrementalPlan {
    /// The rows whose value in a column, which none has NULL in, compares so with a function of the time.
    pub(crate) fn temporal_filter(
        input: IncrementalPlan,
        column: usize,
        comparison: Comparison,
        time: Expression,
    ) -> IncrementalPlan {
        let append_only = input.properties.append_only && comparison.comes();
        let properties = Properties { append_only, ..input.properties.clone() };
        let schema = Arc::clone(&input.schema);
        let retention = match time_bound(&time) {
            Some(bound) => Retention::from(column, bound),
            None => Retention::default(),
        };
        let input = Box::new(input);
        let node =
            Node::TemporalFilter(TemporalFilter { input, column, comparison, time, retention });
        IncrementalPlan::new(node, schema, properties)
    }
}

impl PlanNode for TemporalFilter {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.input]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.input]
    }

    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        let (input, used, columns) = prune_with(*self.input, required, [self.column])?;
        let column = place(&used, self.column);
        let rows = IncrementalPlan::temporal_filter(input, column, self.comparison, self.time);
        IncrementalPlan::columns(rows, &columns)
    }

    /// Changes are those of rows, of which some are in view, and rows that the time passes: these have what it was before the
    /// epoch at least, and anything in the other columns.
    fn bound(&mut self, schema: &SchemaRef, conditions: &[Expression]) -> LowerBounds {
        let mut by_rows = self.input.bound(conditions);
        let passed =
            Reason::new("rows come into view or leave it as time goes on, long after they came")
                .with_remedy("use the column that is compared with NOW()");
        let mut by_time: LowerBounds = vec![Err(passed); by_rows.len()];
        if let Retention::From { bound, .. } = &self.retention {
            by_time[self.column] = Ok(bound.clone());
            if !self.comparison.comes() {
                by_rows[self.column] = Ok(bound.clone());
            }
        }
        bounds::infer(&mut by_rows, schema, conditions);
        bounds::infer(&mut by_time, schema, conditions);
        let pairs = by_rows.iter().zip(&by_time);
        pairs.map(|(rows, time)| bounds::least(rows, time)).collect()
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("temporal filter");
        canonical.text(self.operator());
        self.retention.encode(canonical);
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn compile(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        let Retention::From { .. } = &self.retention else {
            return Err(CodecError::Evaluation("a time that may fall".to_owned()));
        };
        let (schema, column) = (plan.schema.clone(), self.column);
        let spec = temporal_filter::Spec::compile(schema, column, self.comparison)?;
        let input = compiler.rows(&self.input)?;
        let id = compiler.next_id("temporal_filter");
        let layout = spec.layout().clone();
        let rows = compiler.add_stateful(plan, FilteredRows { input, spec }, Vec::new(), Some(id));
        compiler.prune(&self.retention, &layout);
        Ok(rows)
    }

    fn explain(&self, schema: &SchemaRef, line: &mut String) -> fmt::Result {
        let (column, operator) = (Names(schema).column(self.column), self.operator());
        let time = Names(&CLOCK_SCHEMA).expression(&self.time)?;
        write!(line, "temporal filter {column} {operator} {time}")
    }

    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        vec![(self.kept(), &self.input.schema, &self.retention)]
    }

    fn state(&self, places: &[Place]) -> Option<String> {
        Some(names::kept(self.kept(), places))
    }

    fn needs_state(&self) -> bool {
        true
    }

    fn relation(&self) -> Option<&str> {
        Some(CLOCK)
    }
}

impl TemporalFilter {
    fn operator(&self) -> &'static str {
        match self.comparison {
            Comparison::Before => "<",
            Comparison::BeforeOrAt => "<=",
            Comparison::After => ">",
            Comparison::AfterOrAt => ">=",
        }
    }

    fn kept(&self) -> &'static str {
        match self.comparison.comes() {
            true => "rows that come into view later",
            false => "rows in view",
        }
    }
}

/// A temporal filter, ready to be rendered.
#[derive(Debug)]
struct FilteredRows {
    input: OperatorId,
    spec: temporal_filter::Spec,
}

impl Operator for FilteredRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let ticks = rendering.sorted_scan(CLOCK).arranged.stream;
        temporal_filter(&self.spec, rendering.rows(self.input), ticks, &rendering.context())
    }
}
