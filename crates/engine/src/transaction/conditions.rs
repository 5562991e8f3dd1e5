//! Whether rows meet the conditions of their table: its CHECKs.

use alluvium_sql::planner::{Checks, Violation};
use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::{Error, Result, SqlState};

/// So many characters of a value are shown.
const SHOWN: usize = 60;

/// Fails if one of these rows does not meet a condition of the table of this name.
pub(super) fn meet(checks: &Checks, table: &str, rows: &RecordBatch) -> Result<()> {
    let Some(Violation { name, condition, columns, row }) = checks.violation(rows)? else {
        return Ok(());
    };
    let shown = columns.iter().map(|&column| {
        let value = ArrayFormatter::try_new(
            rows.column(column),
            &FormatOptions::default().with_null("NULL"),
        );
        let value = value.map(|value| value.value(row).to_string()).unwrap_or_default();
        let value: String = value.chars().take(SHOWN).collect();
        format!("{} = {value}", rows.schema_ref().field(column).name())
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    let of = if shown.is_empty() { String::new() } else { format!(" with {shown}") };
    let message = |of: &str| {
        format!("a row of \"{table}\"{of} does not meet its CHECK \"{name}\": {condition}")
    };
    Err(Error::data(message(&of)).or_bare(message("")).with_sqlstate(SqlState::CHECK))
}
