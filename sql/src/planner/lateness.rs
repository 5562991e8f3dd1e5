//! How late changes of a view may come: `LATENESS` of its columns.

use arrow::datatypes::Schema;
use datafusion_common::{Result, plan_err};

use crate::error::{self, Error};
use crate::statement::{Lateness, ViewDefinition};

/// What is said of the columns `schema` of a view, in their order.
pub(super) fn columns(view: &ViewDefinition, schema: &Schema) -> error::Result<Vec<Lateness>> {
    let mut read: Vec<Lateness> = Vec::with_capacity(view.lateness.len());
    for declared in &view.lateness {
        let lateness = declared.read(schema)?;
        if read.iter().any(|other| other.column == lateness.column) {
            let (name, column) = (&view.name, schema.field(lateness.column).name());
            let message = format!("LATENESS of \"{name}\".\"{column}\" is declared twice");
            return Err(Error::new(message, declared.position));
        }
        read.push(lateness);
    }
    read.sort_by_key(|lateness| lateness.column);
    Ok(read)
}

/// Refuses to evaluate a view with lateness as a query: only its dataflow knows which rows came too late.
pub(super) fn refuse<T>(view: &str) -> Result<T> {
    plan_err!(
        "rows of \"{view}\" that come too late are dropped, so it can be queried if it keeps the others: CREATE MATERIALIZED VIEW"
    )
}
