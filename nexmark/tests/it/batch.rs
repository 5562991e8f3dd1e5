//! Batch answers: DataFusion evaluates a query over all events.
//!
//! Alluvium's planner takes no part in it. A query that DataFusion does not support, or that is not deterministic,
//! has a batch form, `qN.batch.sql`, which omits the columns that ties make nondeterministic.

use std::path::Path;
use std::sync::Arc;

use alluvium::unstable::{StatementKind, tree};
use alluvium_nexmark::query::Query;
use alluvium_nexmark::source::Input;
use alluvium_nexmark::{Stream, harness};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::datasource::MemTable;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use tokio::runtime::{Builder, Runtime};

/// A DataFusion session with all events.
pub struct Batch {
    runtime: Runtime,
    context: SessionContext,
}

impl Batch {
    pub fn new(input: &Input) -> Self {
        let config = SessionConfig::new()
            .with_target_partitions(1)
            .set_bool("datafusion.sql_parser.map_string_types_to_utf8view", false)
            .set_bool("datafusion.sql_parser.parse_float_as_decimal", true);
        let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
        let context = SessionContext::new_with_state(state);
        let mut tables = [Vec::new(), Vec::new(), Vec::new()];
        for events in input.epochs() {
            let batches = events.unwrap().arrive().unwrap();
            for (table, batch) in tables.iter_mut().zip(batches) {
                table.push(batch);
            }
        }
        let register = |name: &str, schema: SchemaRef, batches: Vec<RecordBatch>| {
            let table = MemTable::try_new(schema, vec![batches]).unwrap();
            context.register_table(name, Arc::new(table)).unwrap();
        };
        for (stream, batches) in Stream::ALL.into_iter().zip(tables) {
            register(stream.name(), stream.table_schema(), batches);
        }
        let side = harness::side_input().unwrap();
        register("side_input", side.schema(), vec![side]);
        Self { runtime: Builder::new_current_thread().build().unwrap(), context }
    }

    /// The expected contents of the query's view.
    pub fn answer(&self, query: &Query) -> Vec<RecordBatch> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("queries");
        let batch_form = std::fs::read_to_string(folder.join(format!("{}.batch.sql", query.name)));
        if let Ok(batch_form) = batch_form {
            return self.run(&batch_form);
        }
        for statement in alluvium::parse(query.sql) {
            let statement = statement.unwrap();
            let StatementKind::CreateView(view) = &tree(&statement).kind else {
                panic!("the file of a query defines views");
            };
            self.run(&format!("CREATE OR REPLACE VIEW {} AS {}", view.name, view.query));
        }
        self.run(&format!("SELECT * FROM {}", query.name))
    }

    /// The bids, with these columns.
    pub fn bids(&self, columns: &[String]) -> Vec<RecordBatch> {
        self.run(&format!("SELECT {} FROM bid", columns.join(", ")))
    }

    fn run(&self, sql: &str) -> Vec<RecordBatch> {
        self.runtime.block_on(async { self.context.sql(sql).await?.collect().await }).unwrap()
    }
}
