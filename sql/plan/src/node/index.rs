//! Index scans: the rows of an index that plans share.

use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_trace::Epoch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

use super::{Node, PlanNode};
use crate::Fingerprint;
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::names::Names;
use crate::physical::{CompileResult, Compiler, Operator, OperatorId, Rendering};
use crate::{IncrementalPlan, Index, LowerBounds, Properties, Reason};

/// The rows of an index.
#[derive(Clone, Debug)]
pub struct IndexScan {
    /// The index, which has a dataflow of its own.
    pub index: Arc<Index>,
    /// Which of its columns, in output order.
    pub columns: Vec<usize>,
    /// The fingerprint of the rows that are read so, which is that of the plan in whose place it is.
    pub rows: Fingerprint,
    /// An index of all columns of a relation that would be read instead, had it been there.
    pub wider: Option<Arc<Index>>,
}

impl IndexScan {
    /// Whether the rows are sorted by these of their columns.
    pub(crate) fn is_sorted_by(&self, keys: &[usize]) -> bool {
        keys.iter().map(|&key| self.columns[key]).eq(self.index.keys.iter().copied())
    }
}

impl PlanNode for IndexScan {
    /// Indexes take the place of plans that are pruned already, so this only happens to plans that are pruned
    /// again.
    fn prune(
        self,
        schema: &SchemaRef,
        properties: Properties,
        required: &[usize],
    ) -> Result<IncrementalPlan> {
        let plan = IncrementalPlan::new(Node::IndexScan(self), schema.clone(), properties);
        IncrementalPlan::columns(plan, required)
    }

    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        let reason = Reason::new("other views may read the index");
        vec![Err(reason); schema.fields().len()]
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("index");
        canonical.fingerprint(self.index.fingerprint());
    }

    fn compile(&self, _: &IncrementalPlan, compiler: &mut Compiler) -> CompileResult<OperatorId> {
        let (fingerprint, columns) = (self.index.fingerprint(), self.columns.clone());
        Ok(compiler.add(IndexRows { fingerprint, columns }))
    }

    fn explain(&self, schema: &SchemaRef, line: &mut String) -> fmt::Result {
        let Self { index, .. } = self;
        debug_assert_eq!(schema.fields().len(), self.columns.len());
        write!(line, "index {}", Names(&index.rows.schema).list(&index.keys))
    }

    fn index(&self) -> Option<&IndexScan> {
        Some(self)
    }
}

/// An index scan, ready to be rendered.
#[derive(Debug)]
struct IndexRows {
    fingerprint: Fingerprint,
    columns: Vec<usize>,
}

impl Operator for IndexRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let context = rendering.context();
        rendering.index(self.fingerprint).deltas(&self.columns, &context)
    }
}
