//! The contents of a relation as the engine itself reports them.

use alluvium::arrow::array::RecordBatch;
use alluvium::arrow::datatypes::SchemaRef;
use alluvium::name::written;
use alluvium::{Engine, Outcome};

/// The columns and the rows of a relation.
pub(crate) fn contents(
    engine: &Engine,
    relation: &str,
) -> Result<(SchemaRef, Vec<RecordBatch>), String> {
    let sql = format!("SELECT * FROM {}", written(relation));
    let outcomes = engine.execute(&sql).map_err(|error| error.to_string())?;
    match outcomes.into_iter().next() {
        Some(Outcome::Rows(rows)) => {
            let schema = rows.schema().clone();
            Ok((schema, rows.into_batches().map_err(|error| error.to_string())?))
        }
        other => Err(format!("{sql} returned {other:?} instead of rows")),
    }
}
