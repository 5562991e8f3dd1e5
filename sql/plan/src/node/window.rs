//! Window functions.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::reductions::window;
use alluvium_dataflow::reductions::window::{
    Definition, Extent, WindowFunction, is_sliding, keeps_results,
};
use alluvium_dataflow::rows::layout::Layout;
use alluvium_trace::Epoch;
use arrow::compute::SortOptions;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::Result;

use super::{Node, PlanNode, session};
use crate::bounds::of_windows;
use crate::constructs::Clause;
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::names;
use crate::names::Names;
use crate::physical::Place;
use crate::physical::{CompileResult, Compiler, Operator, OperatorId, Rendering};
use crate::prune::{place, place_in_two, prune, prune_to};
use crate::{IncrementalPlan, LowerBounds, Properties, Retention};

/// All input columns, then the results of window functions over the row's partition.
#[derive(Clone, Debug)]
pub struct Window {
    /// The rows.
    pub input: Box<IncrementalPlan>,
    /// The columns that identify the partition.
    pub keys: Vec<usize>,
    /// The order of the rows of a partition, as the functions see it.
    pub order: Vec<(usize, SortOptions)>,
    /// Columns that order the rows equal in that, so that no two are equal; `None` if that takes all columns.
    pub ties: Option<Vec<usize>>,
    /// The functions, all over the same partitions and order.
    pub functions: Vec<WindowFunction>,
    /// Which rows are needed.
    pub retention: Retention,
}

impl IncrementalPlan {
    /// All columns of the input, then those of window functions.
    pub(crate) fn window(
        input: IncrementalPlan,
        keys: Vec<usize>,
        order: Vec<(usize, SortOptions)>,
        ties: Option<Vec<usize>>,
        functions: Vec<WindowFunction>,
    ) -> IncrementalPlan {
        if let Some(sessions) = session::from_window(&input, &keys, &order, &functions) {
            return sessions;
        }
        let results = functions.iter().map(|function| &function.result);
        let fields: Vec<_> = input.schema.fields().iter().chain(results).cloned().collect();
        let properties = Properties { append_only: false, ..input.properties.clone() };
        let schema = Arc::new(Schema::new(fields));
        let node = Node::Window(Window {
            input: Box::new(input),
            keys,
            order,
            ties,
            functions,
            retention: Retention::default(),
        });
        IncrementalPlan::new(node, schema, properties)
    }
}

impl PlanNode for Window {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.input]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.input]
    }

    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        let Window { input, keys, order, ties, functions, .. } = self;
        let width = input.width();
        let kept: Vec<usize> =
            (0..functions.len()).filter(|number| required.contains(&(width + number))).collect();
        if kept.is_empty() {
            return prune(*input, required);
        }
        let mut used: BTreeSet<usize> =
            required.iter().copied().filter(|&column| column < width).collect();
        used.extend(keys.iter().copied().chain(order.iter().map(|&(column, _)| column)));
        match &ties {
            // Peers have equal results in any order.
            _ if kept.iter().all(|&number| functions[number].is_same_for_peers()) => {}
            Some(ties) => used.extend(ties),
            // All columns break the ties: dropping one could change the order of peers.
            None => used.extend(0..width),
        }
        for &number in &kept {
            used.extend(functions[number].columns());
        }
        let (input, used) = prune_to(*input, used)?;
        let renumber = |column: usize| place(&used, column);
        let keys = keys.into_iter().map(renumber).collect();
        let order =
            order.into_iter().map(|(column, options)| (renumber(column), options)).collect();
        let has = |ties: &Vec<usize>| ties.iter().all(|column| used.contains(column));
        let ties = ties.filter(has).map(|ties| ties.into_iter().map(renumber).collect());
        let functions = kept.iter().map(|&number| functions[number].renumbered(renumber)).collect();
        let window = IncrementalPlan::window(input, keys, order, ties, functions);
        let place = |&column: &usize| place_in_two((&used, &kept), width, column);
        let columns: Vec<usize> = required.iter().map(place).collect();
        IncrementalPlan::columns(window, &columns)
    }

    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        let extent = Extent::of(&self.functions, &self.input.schema, &self.order);
        let order = self.order.first().map(|&(column, _)| column);
        let (bounds, retention) =
            of_windows(&mut self.input, &mut self.keys, order, &extent, schema);
        self.retention = retention;
        bounds
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text(match is_sliding(&self.functions, &self.input.schema, &self.order) {
            true => "sliding window",
            false => "window",
        });
        self.retention.encode(canonical);
        canonical.columns(&self.keys);
        canonical.order(&self.order);
        canonical.columns(self.ties.as_deref().unwrap_or_default());
        canonical.number(self.functions.len());
        for function in &self.functions {
            canonical.text(function.function.name());
            canonical.arguments(&function.arguments);
            canonical.text(&function.frame.to_string());
            canonical.optional(function.filter);
            canonical.flag(function.distinct);
            canonical.flag(function.ignore_nulls);
            canonical.data_type(function.result.data_type());
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
        let spec = window::Spec::compile(&Definition {
            input: &self.input.schema,
            keys: &self.keys,
            order: &self.order,
            ties: self.ties.as_deref().unwrap_or_default(),
            functions: &self.functions,
            output: &plan.schema,
        })?;
        let bound = match self.retention.column() {
            Some(column) if self.keys.contains(&column) => {
                Layout::keyed(self.input.schema.clone(), &self.keys)?.bound_column(column)
            }
            _ => spec.bound_of_order(),
        };
        let input = compiler.rows(&self.input)?;
        let id = compiler.next_id("window");
        let rows = compiler.add_stateful(plan, WindowRows { input, spec }, Vec::new(), Some(id));
        compiler.prune_by(&self.retention, bound);
        Ok(rows)
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        let below = Names(&self.input.schema);
        let shown: Vec<String> =
            self.functions.iter().map(|function| below.window(function)).collect();
        write!(line, "window {}", shown.join(", "))?;
        if !self.order.is_empty() {
            write!(line, " in order of {}", below.order(&self.order))?;
        }
        if !self.keys.is_empty() {
            write!(line, " by {}", below.plain(&self.keys))?;
        }
        if !is_sliding(&self.functions, &self.input.schema, &self.order) {
            line.push_str(" (re-evaluated)");
        }
        Ok(())
    }

    fn burden(&self) -> Option<&'static str> {
        let is_sliding = is_sliding(&self.functions, &self.input.schema, &self.order);
        (!is_sliding).then_some(
            "each change evaluates all rows of its partition again: add columns to PARTITION BY, or use functions that need not (reference, \"Window functions\")",
        )
    }

    fn clause(&self) -> Option<Clause> {
        Some(Clause::Partition(Names(&self.input.schema).each(&self.keys)))
    }

    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        vec![("rows", &self.input.schema, &self.retention)]
    }

    fn state(&self, places: &[Place]) -> Option<String> {
        let mut kept = "rows in order".to_string();
        if keeps_results(&self.functions, &self.input.schema, &self.order) {
            kept += " and results";
        }
        if !self.keys.is_empty() {
            kept += &format!(" by {}", Names(&self.input.schema).list(&self.keys));
        }
        Some(names::kept(&kept, places))
    }

    fn needs_state(&self) -> bool {
        true
    }
}

/// Window functions, ready to be rendered.
#[derive(Debug)]
struct WindowRows {
    input: OperatorId,
    spec: window::Spec,
}

impl Operator for WindowRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let rows = rendering.rows(self.input);
        let windowed = window::window(&self.spec, rows, &rendering.context());
        rendering.report(windowed.errors);
        windowed.rows
    }
}
