//! The batch answer: DataFusion evaluates the text of a view over the contents of the tables.
//!
//! Alluvium's planner takes no part in it: a `SessionContext` receives the tables as read and the views as the text
//! of their queries.

use std::collections::HashMap;
use std::sync::Arc;

use alluvium::arrow::array::RecordBatch;
use alluvium::arrow::datatypes::SchemaRef;
use alluvium::name::{split, written};
use datafusion::catalog::MemorySchemaProvider;
use datafusion::datasource::MemTable;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};
use tokio::runtime::{Builder, Runtime};

use super::row::{Row, rows};

/// A DataFusion session with the tables and views of a file.
pub(crate) struct Batch {
    runtime: Runtime,
    context: SessionContext,
    tables: HashMap<String, Arc<MemTable>>,
}

impl Batch {
    pub(crate) fn new() -> Self {
        let mut rules = Optimizer::new().rules;
        // This rule confuses joins that treat NULLs as equal with joins that do not.
        rules.retain(|rule| rule.name() != "eliminate_cross_join");
        Self::with_rules(rules)
    }

    /// For queries that join many tables by conditions in WHERE, none of which treats NULLs as equal.
    pub(crate) fn with_many_joins() -> Self {
        Self::with_rules(Optimizer::new().rules)
    }

    fn with_rules(rules: Vec<Arc<dyn OptimizerRule + Send + Sync>>) -> Self {
        let config = SessionConfig::new()
            .with_target_partitions(1)
            .set_bool("datafusion.sql_parser.map_string_types_to_utf8view", false)
            .set_bool("datafusion.sql_parser.parse_float_as_decimal", true);
        // This rule pushes conditions below outer joins and does not keep them above.
        let mut physical_rules = PhysicalOptimizer::new().rules;
        physical_rules.retain(|rule| !rule.name().starts_with("FilterPushdown"));
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_default_features()
            .with_optimizer_rules(rules)
            .with_physical_optimizer_rules(physical_rules)
            .build();
        Self {
            runtime: Builder::new_current_thread()
                .build()
                .expect("a runtime without drivers can be built"),
            context: SessionContext::new_with_state(state),
            tables: HashMap::new(),
        }
    }

    pub(crate) fn create_table(&mut self, name: &str, schema: SchemaRef) -> Result<(), String> {
        let table = Arc::new(MemTable::try_new(schema, vec![Vec::new()]).map_err(text)?);
        let (schema, _) = split(name);
        if let Some(catalog) = self.context.catalog("datafusion")
            && catalog.schema(&schema).is_none()
        {
            catalog
                .register_schema(&schema, Arc::new(MemorySchemaProvider::new()))
                .map_err(text)?;
        }
        self.context.register_table(written(name), table.clone()).map_err(text)?;
        self.tables.insert(name.to_owned(), table);
        Ok(())
    }

    pub(crate) fn create_view(
        &mut self,
        name: &str,
        columns: &[String],
        query: &str,
    ) -> Result<(), String> {
        let sql = format!("CREATE VIEW {}{} AS {query}", written(name), column_list(columns));
        self.runtime.block_on(self.context.sql(&sql)).map_err(text)?;
        Ok(())
    }

    pub(crate) fn drop(&mut self, name: &str) -> Result<(), String> {
        self.tables.remove(name);
        self.context.deregister_table(written(name)).map_err(text)?;
        Ok(())
    }

    /// Replaces the rows of a table. Views see the new rows.
    pub(crate) fn fill(&mut self, name: &str, batches: Vec<RecordBatch>) {
        if let Some(table) = self.tables.get(name) {
            *self.runtime.block_on(table.batches[0].write()) = batches;
        }
    }

    /// How many columns a query has.
    pub(crate) fn width(&self, query: &str) -> Result<usize, String> {
        let plan = self.runtime.block_on(self.context.sql(query)).map_err(text)?;
        Ok(plan.schema().fields().len())
    }

    /// The result of a query.
    pub(crate) fn ask(&self, query: &str) -> Result<Vec<Row>, String> {
        let answer = async { self.context.sql(query).await?.collect().await };
        self.runtime.block_on(answer).map(|batches| rows(&batches)).map_err(text)
    }

    /// The result of a view's query.
    pub(crate) fn answer(&self, view: &str) -> Result<Vec<Row>, String> {
        let answer = async { self.context.table(written(view)).await?.collect().await };
        self.runtime.block_on(answer).map(|batches| rows(&batches)).map_err(text)
    }
}

/// A quoted name.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The column list of a view as SQL text; empty without one.
pub(crate) fn column_list(columns: &[String]) -> String {
    if columns.is_empty() {
        return String::new();
    }
    format!(" ({})", columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(", "))
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
