//! Tables: changes in, contents out.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use alluvium_dataflow::contents::Contents;
use alluvium_dataflow::layout::Layout;
use alluvium_dataflow::table::{self, TableInput};
use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;
use arrow::datatypes::SchemaRef;
use timely::dataflow::operators::probe::{Handle as Probe, Probe as _};
use timely::worker::Worker;

use super::State;
use crate::error::{Error, Result};
use crate::plan::{Canonical, Fingerprint};

/// A table, ready to be rendered.
#[derive(Debug)]
pub struct Table {
    spec: table::Spec,
    state: State,
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
}

impl Table {
    /// A table of `schema`; `primary_key` is empty for a table without one.
    ///
    /// # Errors
    /// If a column has a type that cannot be stored, or a key column one that cannot be a key.
    pub fn compile(schema: &SchemaRef, primary_key: &[usize]) -> Result<Self> {
        let spec = table::Spec::compile(schema.clone(), primary_key)
            .map_err(|error| Error::new(error.to_string(), None))?;
        let mut canonical = Canonical::new("table");
        canonical.schema(schema);
        canonical.columns(primary_key);
        let state = State { id: "rows".to_owned(), fingerprint: canonical.finish() };
        Ok(Self { spec, state })
    }

    /// What the bytes of its rows mean.
    pub fn fingerprint(&self) -> Fingerprint {
        self.state.fingerprint
    }

    /// How its rows lie in keys and values.
    pub fn layout(&self) -> &Layout {
        self.spec.layout()
    }

    /// Builds the table, which changes from `start` on.
    pub fn render(
        &self,
        worker: &mut Worker,
        name: &str,
        start: Epoch,
        context: &StateContext,
    ) -> TableDataflow {
        let refused = Arc::new(AtomicU64::new(0));
        let probe = Probe::new();
        let (id, fingerprint) = (&self.state.id, self.state.fingerprint.to_string());
        let context = context.for_relation(name).for_state(id, &fingerprint);
        let (input, contents) = worker.dataflow_named::<Epoch, _, _>(name, |scope| {
            let refused = Arc::clone(&refused);
            let (mut input, rows) = table::table(&self.spec, scope, name, refused, &context);
            input.advance_to(start);
            rows.arranged.stream.clone().probe_with(&probe);
            (input, Contents::new(&rows, &context))
        });
        TableDataflow { input, contents, probe, refused }
    }
}
