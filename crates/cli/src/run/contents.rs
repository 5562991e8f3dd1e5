//! Printing the first rows of each view.

use std::io::Write;

use alluvium::arrow::array::{AsArray, RecordBatch};
use alluvium::arrow::datatypes::{Int64Type, Schema};
use alluvium::name::written;
use alluvium::{RelationInfo, RelationKind};

use crate::shell::{Shell, Stop, stopped};

/// The number of rows shown per view.
const ROWS: usize = 40;

/// Prints the first rows of each materialized view, ordered by their columns from left to right.
pub(crate) fn show<W: Write>(shell: &mut Shell<W>) -> Result<(), Stop> {
    for view in materialized(shell)? {
        let count = count(shell, &view.name)?;
        let columns = sortable(&view.schema);
        let order = match columns.is_empty() {
            true => String::new(),
            false => format!(" ORDER BY {}", columns.join(", ")),
        };
        let rows =
            query(shell, &format!("SELECT * FROM {}{order} LIMIT {ROWS}", written(&view.name)))?;
        let of = match count > ROWS as u64 {
            true => format!("the first {ROWS} of {count} rows"),
            false if count == 1 => "1 row".to_string(),
            false => format!("{count} rows"),
        };
        shell.write_rows(&format!("{}: {of}", view.name), &view.schema, &rows)?;
    }
    Ok(())
}

/// The materialized views, by name.
pub(crate) fn materialized<W: Write>(shell: &Shell<W>) -> Result<Vec<RelationInfo>, Stop> {
    let mut relations = shell.engine().relations().map_err(stopped)?;
    relations.retain(|relation| relation.kind == RelationKind::MaterializedView);
    Ok(relations)
}

/// The number of rows of a relation.
pub(crate) fn count<W: Write>(shell: &Shell<W>, relation: &str) -> Result<u64, Stop> {
    let rows = query(shell, &format!("SELECT COUNT(*) FROM {}", written(relation)))?;
    let counts = rows.iter().filter(|batch| batch.num_rows() > 0);
    Ok(counts.map(|batch| batch.column(0).as_primitive::<Int64Type>().value(0) as u64).sum())
}

/// The result of a query.
pub(crate) fn query<W: Write>(shell: &Shell<W>, sql: &str) -> Result<Vec<RecordBatch>, Stop> {
    shell.engine().query(sql).map_err(stopped)
}

fn sortable(schema: &Schema) -> Vec<String> {
    let plain = schema.fields().iter().filter(|field| !field.data_type().is_nested());
    plain.map(|field| quote(field.name())).collect()
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
