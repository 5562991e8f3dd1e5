//! How late changes of a view may come: `LATENESS` of its columns.

use arrow::datatypes::Schema;

use alluvium_sql_syntax::error::{self, Error};
use alluvium_sql_syntax::statement::{Lateness, ViewDefinition};

/// The lateness declared for the columns `schema` of a view, in their order.
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
