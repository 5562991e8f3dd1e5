//! The first rows of each group: LIMIT, DISTINCT ON, filtered row numbers.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::reductions::ranked::top;
use alluvium_dataflow::reductions::ranked::{self, Numbering};
use alluvium_dataflow::rows::layout::Layout;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::Result;

use super::{Node, PlanNode, RowMap};
use crate::bounds::{final_by, of_groups};
use crate::constructs::Clause;
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::names;
use crate::names::Names;
use crate::physical::Place;
use crate::physical::{CompileResult, Compiler, Operator, OperatorId, Rendering};
use crate::properties::ASCENDING;
use crate::prune::{place, prune_to};
use crate::{IncrementalPlan, LowerBounds, Properties, Retention};

/// The first rows of each group: all input columns, then the row's number if it is wanted.
#[derive(Clone, Debug)]
pub struct Top {
    /// The rows to choose from.
    pub input: Box<IncrementalPlan>,
    /// The columns that identify the group; without any, all rows are one group.
    pub keys: Vec<usize>,
    /// A column that follows from them and says when a group is final, if none of them does.
    pub final_by: Option<usize>,
    /// The order of the rows of a group; rows equal in it are ordered by all of their columns.
    pub order: Vec<(usize, SortOptions)>,
    /// Which of them.
    pub which: ranked::Top,
    /// Which rows are needed.
    pub retention: Retention,
}

impl IncrementalPlan {
    /// The rows of each group that `which` chooses.
    ///
    /// Where each row has a number of its own, rows equal in `order` are ordered by a unique key, if there is
    /// one. Then the result does not depend on which other columns the plan keeps.
    pub(crate) fn top(
        input: IncrementalPlan,
        keys: Vec<usize>,
        mut order: Vec<(usize, SortOptions)>,
        which: ranked::Top,
    ) -> Result<IncrementalPlan> {
        if which.take == Some(0) {
            let mut fields: Vec<Arc<Field>> = input.schema.fields().iter().cloned().collect();
            fields.extend(which.numbered.then(number_field));
            let rows = RecordBatch::new_empty(Arc::new(Schema::new(fields)));
            return Ok(IncrementalPlan::constant(rows));
        }
        order.retain(|(column, _)| !keys.contains(column));
        if which.numbering == Numbering::Row {
            let ties = input.properties.tie_breakers(&keys, &order).unwrap_or_default();
            order.extend(ties.into_iter().map(|column| (column, ASCENDING)));
        }
        let mut fields: Vec<Arc<Field>> = input.schema.fields().iter().cloned().collect();
        let mut unique = input.properties.unique.clone();
        // A broken promise can make several groups of one.
        let promised = input.properties.relies_on_promise(&keys, input.width());
        let has_own_number = which.numbering == Numbering::Row && !promised;
        if has_own_number && which.take == Some(1) {
            unique.push(keys.clone());
        }
        if which.numbered {
            if has_own_number {
                unique.push(keys.iter().copied().chain([fields.len()]).collect());
            }
            fields.push(number_field());
        }
        let dependencies = input.properties.dependencies.clone();
        let properties = Properties::new(unique, false).with(dependencies);
        let schema = Arc::new(Schema::new(fields));
        let node = Node::Top(Top {
            input: Box::new(input),
            keys,
            final_by: None,
            order,
            which,
            retention: Retention::default(),
        });
        Ok(IncrementalPlan::new(node, schema, properties))
    }
}

fn number_field() -> Arc<Field> {
    Arc::new(Field::new("number", DataType::UInt64, false))
}

impl PlanNode for Top {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.input]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.input]
    }

    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        let Top { input, keys, order, which, .. } = self;
        let width = input.width();
        let numbered = which.numbered && required.contains(&width);
        let mut used: BTreeSet<usize> =
            keys.iter().copied().chain(order.iter().map(|&(column, _)| column)).collect();
        let read = required.iter().copied().filter(|&column| column < width);
        let others: Vec<usize> = read.filter(|column| !used.contains(column)).collect();
        if which.numbering == Numbering::Row
            && !others.is_empty()
            && input.properties.tie_breakers(&keys, &order).is_none()
        {
            // All columns break the ties: dropping one could change which rows are first. Where rows that tie are equal in
            // all that is read of them, it does not matter which is.
            used.extend(0..width);
        }
        used.extend(others);
        let (input, used) = prune_to(*input, used)?;
        let keys = keys.iter().map(|&key| place(&used, key)).collect();
        let order =
            order.iter().map(|&(column, options)| (place(&used, column), options)).collect();
        let which = ranked::Top { numbered, ..which };
        let top = IncrementalPlan::top(input, keys, order, which)?;
        let columns: Vec<usize> = required
            .iter()
            .map(|&column| if column < width { place(&used, column) } else { used.len() })
            .collect();
        IncrementalPlan::columns(top, &columns)
    }

    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        let (bounds, retention) = of_groups(&mut self.input, &mut self.keys, schema);
        self.final_by = final_by(&retention, &self.keys);
        self.retention = retention;
        bounds
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("top");
        self.retention.encode(canonical);
        canonical.columns(&self.keys);
        canonical.order(&self.order);
        canonical.text(&chosen(self.which));
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn compile(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        let (input, append_only) = (&self.input.schema, self.input.properties.append_only);
        let keys: Vec<usize> = self.final_by.into_iter().chain(self.keys.clone()).collect();
        let number = self.which.numbered.then(number_field);
        let fields: Vec<_> = input.fields().iter().cloned().chain(number).collect();
        let chosen: SchemaRef = Arc::new(Schema::new(fields));
        let (order, schema) = (&self.order, Arc::clone(&chosen));
        let spec = top::Spec::compile(input, &keys, order, self.which, append_only, schema)?;
        let input = compiler.rows(&self.input)?;
        let id = compiler.next_id("top");
        let rows = compiler.add_stateful(plan, TopRows { input, spec }, Vec::new(), Some(id));
        compiler.prune(&self.retention, &Layout::keyed(self.input.schema.clone(), &keys)?);
        if plan.width() == chosen.fields().len() {
            return Ok(rows);
        }
        // The input has the column after the others for this alone.
        let width = self.input.width();
        let columns: Vec<usize> = (0..width - 1).chain(width..chosen.fields().len()).collect();
        Ok(compiler.add(RowMap::columns(rows, &chosen, &columns)))
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        let below = Names(&self.input.schema);
        line.push_str(&chosen(self.which));
        if !self.order.is_empty() {
            write!(line, " in order of {}", below.order(&self.order))?;
        }
        if !self.keys.is_empty() {
            write!(line, " by {}", below.plain(&self.keys))?;
        }
        Ok(())
    }

    fn clause(&self) -> Option<Clause> {
        Some(Clause::Partition(Names(&self.input.schema).each(&self.keys)))
    }

    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        vec![("rows", &self.input.schema, &self.retention)]
    }

    fn state(&self, places: &[Place]) -> Option<String> {
        let kept = match self.keys.is_empty() {
            true => "rows in order".to_string(),
            false => format!("rows in order by {}", Names(&self.input.schema).list(&self.keys)),
        };
        Some(names::kept(&kept, places))
    }

    fn needs_state(&self) -> bool {
        true
    }
}

/// Which rows of a group.
fn chosen(which: ranked::Top) -> String {
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

/// A top-k, ready to be rendered.
#[derive(Debug)]
struct TopRows {
    input: OperatorId,
    spec: top::Spec,
}

impl Operator for TopRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        top::top(&self.spec, rendering.rows(self.input), &rendering.context())
    }
}
