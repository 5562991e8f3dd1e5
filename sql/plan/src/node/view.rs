//! Plain views, expanded in place.

use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::KeyColumns;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

use super::{Indexed, Node, PlanNode};
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::names::Names;
use crate::physical::{CompileResult, Compiler, OperatorId, Place};
use crate::prune::prune;
use crate::{IncrementalPlan, LowerBounds, Properties};

/// A view that is not materialized, expanded in place.
///
/// Its rows are its input's; its errors are reported by the view itself.
#[derive(Clone, Debug)]
pub struct View {
    /// The view's name.
    pub name: String,
    /// The rows that it selects.
    pub input: Box<IncrementalPlan>,
}

impl IncrementalPlan {
    /// A view that is not materialized, expanded in place.
    pub(crate) fn view(name: String, input: IncrementalPlan) -> IncrementalPlan {
        let schema = Arc::clone(&input.schema);
        let properties = input.properties.clone();
        let node = Node::View(View { name, input: Box::new(input) });
        IncrementalPlan::new(node, schema, properties)
    }
}

impl PlanNode for View {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.input]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.input]
    }

    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        Ok(IncrementalPlan::view(self.name, prune(*self.input, required)?))
    }

    /// Its state can be shared with plans to which other rows matter.
    fn bound(&mut self, _: &SchemaRef, _: &[Expression]) -> LowerBounds {
        self.input.bound(&[])
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("view");
        canonical.relation(&self.name);
    }

    fn compile(&self, _: &IncrementalPlan, compiler: &mut Compiler) -> CompileResult<OperatorId> {
        compiler.rows_in_views(1, &self.input)
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        write!(line, "view {}", self.name)
    }

    fn state(&self, _: &[Place]) -> Option<String> {
        let index = &self.input.node.as_node().index()?.index;
        let keys = Names(&self.input.schema).list(&index.keys);
        Some(format!("rows by {keys} {}", Place::Index(index.fingerprint())))
    }

    /// The rows of a view that takes state are indexed by a unique key if there is one, and else by all columns,
    /// unless these have no order.
    fn indexed(&mut self) -> Vec<Indexed<'_>> {
        if !self.input.needs_state() {
            return Vec::new();
        }
        let all = || (0..self.input.width()).collect();
        let keys = self.input.properties.unique.first().cloned().unwrap_or_else(all);
        match KeyColumns::new(&self.input.schema, &keys) {
            Ok(_) => {
                let input = &mut self.input;
                vec![Indexed { input, keys, may_be_wider: false, may_have_nulls: false }]
            }
            Err(_) => Vec::new(),
        }
    }
}
