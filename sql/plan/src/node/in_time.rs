//! Rows in time: the rows of a view whose columns have `LATENESS`.

use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::time::in_time::{self, in_time};
use alluvium_sql_syntax::statement::Lateness;
use alluvium_trace::Epoch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

use super::{Node, PlanNode};
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::names;
use crate::names::Names;
use crate::physical::Place;
use crate::physical::{CompileResult, Compiler, Operator, OperatorId, Rendering};
use crate::prune::{place, prune_with};
use crate::{IncrementalPlan, LowerBound, LowerBounds, Properties, Reason, Retention};

/// The rows of a view without the changes that come too late.
#[derive(Clone, Debug)]
pub struct InTime {
    /// The rows.
    pub input: Box<IncrementalPlan>,
    /// The view.
    pub view: String,
    /// Its columns with a waterline; at least one.
    pub columns: Vec<LateColumn>,
    /// The state that is kept: the waterlines.
    pub retention: Retention,
}

/// A column of a view that has a waterline.
#[derive(Clone, Copy, Debug)]
pub struct LateColumn {
    /// Its number in the rows.
    pub number: usize,
    /// The lateness that the view declares.
    pub lateness: Lateness,
}

impl IncrementalPlan {
    /// The rows of a view, all columns of which these are, without the changes that come too late.
    pub(crate) fn in_time(
        input: IncrementalPlan,
        view: String,
        lateness: &[Lateness],
    ) -> IncrementalPlan {
        let column =
            |lateness: &Lateness| LateColumn { number: lateness.column, lateness: *lateness };
        IncrementalPlan::sifted(input, view, lateness.iter().map(column).collect())
    }

    fn sifted(input: IncrementalPlan, view: String, columns: Vec<LateColumn>) -> IncrementalPlan {
        let schema = Arc::clone(&input.schema);
        let Properties { mut unique, append_only, .. } = input.properties.clone();
        // Of a row that replaces another, one may come in time and the other too late, unless they have the same times. So two
        // rows can be there of which only one should: nothing else follows from anything.
        unique.retain(|key| columns.iter().all(|column| key.contains(&column.number)));
        let retention =
            Retention::All(Reason::new("there is one row for each column with LATENESS"));
        let node = Node::InTime(InTime { input: Box::new(input), view, columns, retention });
        IncrementalPlan::new(
            node,
            schema,
            Properties { unique, append_only, ..Properties::default() },
        )
    }

    /// Whether it drops late changes itself, so that it has waterlines that other dataflows do not have.
    pub(crate) fn has_own_waterlines(&self) -> bool {
        matches!(self.node, Node::InTime(_))
            || self.inputs().into_iter().any(IncrementalPlan::has_own_waterlines)
    }
}

impl PlanNode for InTime {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.input]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.input]
    }

    /// Which rows come too late, and the waterlines, do not depend on the other columns: what is deleted in one of them was
    /// inserted with the same times.
    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        let Self { input, view, columns: late, .. } = self;
        let read = late.iter().map(|column| column.number);
        let (input, used, columns) = prune_with(*input, required, read)?;
        let renumbered = late
            .into_iter()
            .map(|column| LateColumn { number: place(&used, column.number), ..column });
        let rows = IncrementalPlan::sifted(input, view, renumbered.collect());
        IncrementalPlan::columns(rows, &columns)
    }

    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        let mut bounds = self.input.bound(&[]);
        for LateColumn { number, lateness } in &self.columns {
            let field = schema.field(*number);
            bounds[*number] = Ok(LowerBound::own_waterline(&self.view, lateness.column, field));
        }
        bounds
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("in time");
        canonical.relation(&self.view);
        canonical.number(self.columns.len());
        for LateColumn { number, lateness } in &self.columns {
            canonical.number(*number);
            canonical.number(lateness.column);
            canonical.text(&lateness.by.to_string());
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn compile(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        let columns = self.columns.iter();
        let columns: Vec<_> = columns
            .map(|LateColumn { number, lateness }| (*number, lateness.column, lateness.by))
            .collect();
        let spec = in_time::Spec::compile(plan.schema.clone(), &self.view, &columns)?;
        let input = compiler.rows(&self.input)?;
        let id = compiler.next_id("in_time");
        let sifted = SiftedRows { input, view: self.view.clone(), spec };
        Ok(compiler.add_stateful(plan, sifted, Vec::new(), Some(id)))
    }

    fn explain(&self, schema: &SchemaRef, line: &mut String) -> fmt::Result {
        let columns: Vec<usize> = self.columns.iter().map(|column| column.number).collect();
        write!(line, "rows of {} in time by {}", self.view, Names(schema).list(&columns))
    }

    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        vec![("waterlines", &self.input.schema, &self.retention)]
    }

    fn state(&self, places: &[Place]) -> Option<String> {
        Some(names::kept("waterlines", places))
    }

    fn needs_state(&self) -> bool {
        true
    }
}

/// The rows in time, ready to be rendered.
#[derive(Debug)]
struct SiftedRows {
    input: OperatorId,
    view: String,
    spec: in_time::Spec,
}

impl Operator for SiftedRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let late = rendering.late_rows(&self.view);
        let waterlines = rendering.own_waterlines().clone();
        let rows = rendering.rows(self.input);
        in_time(&self.spec, rows, &waterlines, late, &rendering.context())
    }
}
