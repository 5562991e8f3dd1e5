//! Tables: changes in, contents out.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use alluvium_dataflow::rows::layout::Layout;
use alluvium_dataflow::state::contents::Contents;
use alluvium_dataflow::state::table::{self, TableInput};
use alluvium_dataflow::time::late::Late;
use alluvium_dataflow::time::waterlines::Waterlines;
use alluvium_sql_syntax::error::{Error, Result};
use alluvium_sql_syntax::statement::Lateness;
use alluvium_trace::memory::StateContext;
use alluvium_trace::metrics::OperatorLabel;
use alluvium_trace::{Epoch, Origin};
use arrow::datatypes::SchemaRef;
use timely::dataflow::operators::probe::{Handle as Probe, Probe as _};
use timely::worker::Worker;

use super::State;
use crate::{Canonical, Fingerprint};

/// A table, ready to be rendered.
#[derive(Debug)]
pub struct Table {
    spec: table::Spec,
    state: State,
    /// The columns that have waterlines.
    lateness: Vec<usize>,
}

/// A table as a worker runs it.
pub struct TableDataflow {
    /// Where its changes enter.
    pub input: TableInput,
    /// Its rows.
    pub contents: Contents,
    /// How far it has come.
    pub probe: Probe<Epoch>,
    /// The deleted copies of absent rows; only tables without a primary key refuse deletions.
    pub refused: Arc<AtomicU64>,
    /// The writes to rows below a waterline; only tables with a primary key drop them.
    pub late: Arc<AtomicU64>,
}

impl Table {
    /// A table of `schema`; `primary_key` is empty for a table without one. Rows are only inserted if it is `append_only`.
    ///
    /// # Errors
    /// If a column has a type that cannot be stored, or a key column one that cannot be a key.
    pub fn compile(schema: &SchemaRef, primary_key: &[usize], append_only: bool) -> Result<Self> {
        let spec = table::Spec::compile(schema.clone(), primary_key, append_only)
            .map_err(|error| Error::new(error.to_string(), None))?;
        let mut canonical = Canonical::new("table");
        canonical.schema(schema);
        canonical.columns(primary_key);
        if append_only && primary_key.is_empty() {
            canonical.text("append-only");
        }
        let state = State { id: "rows".to_owned(), fingerprint: canonical.finish() };
        Ok(Self { spec, state, lateness: Vec::new() })
    }

    /// The same table, whose rows may come late by these columns. The meaning of its rows does not depend on it.
    #[must_use]
    pub fn with_lateness(mut self, lateness: &[Lateness]) -> Self {
        self.lateness = lateness.iter().map(|lateness| lateness.column).collect();
        self
    }

    /// Identifies the meaning of its rows' bytes.
    pub fn fingerprint(&self) -> Fingerprint {
        self.state.fingerprint
    }

    /// How its rows lie in keys and values.
    pub fn layout(&self) -> &Layout {
        self.spec.layout()
    }

    /// Builds the table, which changes from `start` on; `waterlines` are the worker's.
    pub fn render(
        &self,
        worker: &mut Worker,
        name: &str,
        start: Epoch,
        waterlines: &Waterlines,
        context: &StateContext,
    ) -> TableDataflow {
        let (refused, late) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let rows_behind = Late::new(name, &self.lateness, waterlines, Arc::clone(&late));
        let probe = Probe::new();
        let (id, fingerprint) = (&self.state.id, self.state.fingerprint.to_string());
        let context = context.for_relation(name).for_state(id, &fingerprint);
        let label = OperatorLabel {
            relation: name.to_owned(),
            name: format!("table {name}"),
            fingerprint,
            ..Default::default()
        };
        let operator = Origin::here().operator(label, context.metrics());
        let (input, contents) = worker.dataflow_named::<Epoch, _, _>(name, |scope| {
            operator.build(|| {
                let refused = Arc::clone(&refused);
                let (mut input, rows, publication) =
                    table::table(&self.spec, scope, name, refused, rows_behind, &context);
                input.advance_to(start);
                rows.arranged.stream.clone().probe_with(&probe);
                (input, Contents::new(&rows, &context).published(publication))
            })
        });
        TableDataflow { input, contents, probe, refused, late }
    }
}
