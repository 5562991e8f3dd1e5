//! Inputs sorted by keys.

use alluvium_dataflow::KeyColumns;
use alluvium_dataflow::movement::exchange::{broadcast, exchange, exchange_by_value};
use alluvium_dataflow::rows::layout::{Layout, all_columns};
use alluvium_dataflow::state::arrangement::{Kept, keep};
use alluvium_dataflow::state::states::{self, Placement};
use arrow::datatypes::SchemaRef;

use super::compile::Compiler;
use super::pruning::PrunedBy;
use super::{CompileResult, OperatorId, Place, Rendering, State};
use crate::node::Scan;
use crate::{Fingerprint, IncrementalPlan, Node, Retention};

/// The rows of a plan, sorted by keys.
#[derive(Debug)]
pub(crate) struct Arranged {
    source: Source,
    /// The columns of the arranged rows.
    pub(crate) schema: SchemaRef,
    /// The columns of the plan among them.
    pub(crate) columns: Vec<usize>,
}

#[derive(Debug)]
enum Source {
    /// A table whose primary key the rows are sorted by.
    Table(String),
    Index(Fingerprint),
    /// An arrangement of the dataflow's own.
    Own(Box<Own>),
}

/// An arrangement that the dataflow makes.
#[derive(Debug)]
struct Own {
    rows: OperatorId,
    movement: Movement,
    layout: Layout,
    pruning: Option<PrunedBy>,
    state: State,
}

/// Where rows go before they are arranged.
#[derive(Debug)]
enum Movement {
    /// To the worker of their key.
    Exchange(KeyColumns),
    /// To all workers.
    Broadcast,
    /// They stay on their worker.
    Stay,
}

impl Arranged {
    /// The rows of a plan sorted by `keys`, and on the worker of their keys. `id` is the id of the state if it is the
    /// dataflow's own, which then has only the rows of `retention`.
    pub(super) fn by_keys(
        plan: &IncrementalPlan,
        keys: &[usize],
        retention: &Retention,
        id: &str,
        compiler: &mut Compiler,
    ) -> CompileResult<Self> {
        match &plan.node {
            Node::IndexScan(scan) if scan.is_sorted_by(keys) => {
                let source = Source::Index(scan.index.fingerprint());
                let (schema, columns) = (scan.index.rows.schema.clone(), scan.columns.clone());
                Ok(Self { source, schema, columns })
            }
            Node::Scan(Scan { relation, stored, columns, .. }) if plan.is_stored_by(keys) => {
                let source = Source::Table(relation.clone());
                Ok(Self { source, schema: stored.clone(), columns: columns.clone() })
            }
            _ => {
                let movement = Movement::Exchange(KeyColumns::new(&plan.schema, keys)?);
                Self::own(plan, keys, movement, retention, id, compiler)
            }
        }
    }

    /// As [`Arranged::by_keys`], without other columns than those of the plan.
    pub(super) fn whole(
        plan: &IncrementalPlan,
        keys: &[usize],
        retention: &Retention,
        id: &str,
        compiler: &mut Compiler,
    ) -> CompileResult<Self> {
        match &plan.node {
            Node::Scan(Scan { stored, columns, .. })
                if !columns.iter().copied().eq(0..stored.fields().len()) =>
            {
                let movement = Movement::Exchange(KeyColumns::new(&plan.schema, keys)?);
                Self::own(plan, keys, movement, retention, id, compiler)
            }
            _ => Self::by_keys(plan, keys, retention, id, compiler),
        }
    }

    /// The rows of a plan under one key, on all workers if they are broadcast and else where they are.
    pub(crate) fn without_keys(
        plan: &IncrementalPlan,
        is_broadcast: bool,
        retention: &Retention,
        id: &str,
        compiler: &mut Compiler,
    ) -> CompileResult<Self> {
        let movement = if is_broadcast { Movement::Broadcast } else { Movement::Stay };
        Self::own(plan, &[], movement, retention, id, compiler)
    }

    fn own(
        plan: &IncrementalPlan,
        keys: &[usize],
        movement: Movement,
        retention: &Retention,
        id: &str,
        compiler: &mut Compiler,
    ) -> CompileResult<Self> {
        let layout = Layout::keyed(plan.schema.clone(), keys)?;
        let rows = compiler.rows(plan)?;
        let kind = match movement {
            Movement::Exchange(_) => "exchanged",
            Movement::Broadcast => "broadcast",
            Movement::Stay => "stay",
        };
        let state = State::of(id.to_owned(), kind, plan.fingerprint(), keys, retention);
        let column = retention.column().and_then(|column| layout.bound_column(column));
        let pruning = compiler.pruning(id, retention, column);
        Ok(Self {
            source: Source::Own(Box::new(Own { rows, movement, layout, pruning, state })),
            schema: plan.schema.clone(),
            columns: all_columns(&plan.schema),
        })
    }

    /// The arrangement, on a worker.
    pub(crate) fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> Kept<'scope> {
        match &self.source {
            Source::Table(relation) => rendering.sorted_scan(relation),
            Source::Index(fingerprint) => rendering.index(*fingerprint),
            Source::Own(own) => {
                let rows = rendering.rows(own.rows);
                let context = rendering.context_of(&own.state);
                let context = rendering.pruned(context, own.pruning.as_ref());
                let (rows, placement) = match &own.movement {
                    Movement::Exchange(key) => (exchange(rows, key, &context), Placement::Key),
                    Movement::Broadcast => (broadcast(rows, &context), Placement::All),
                    Movement::Stay if states::is_dealt() => {
                        (exchange_by_value(rows, &own.layout, &context), Placement::Value)
                    }
                    Movement::Stay => (rows, Placement::Value),
                };
                states::placed(placement, || keep(rows, own.layout.clone(), "Arrange", &context))
            }
        }
    }

    /// The pruning of the rows, if they are pruned.
    pub(crate) fn pruning(&self) -> Option<&PrunedBy> {
        match &self.source {
            Source::Own(own) => own.pruning.as_ref(),
            Source::Table(_) | Source::Index(_) => None,
        }
    }

    /// Where the rows are kept.
    pub(crate) fn place(&self) -> Place {
        match &self.source {
            Source::Table(relation) => Place::Table(relation.clone()),
            Source::Index(fingerprint) => Place::Index(*fingerprint),
            Source::Own(own) => Place::Own(own.state.clone()),
        }
    }
}
