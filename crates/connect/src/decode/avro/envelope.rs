//! Changes of Debezium's, as rows with operations.

use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow::compute::{cast, interleave};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;

use super::super::json::{TRUNCATED, no_before, no_row};
use super::super::rows::Operation;

/// The members of a change that are looked at.
pub(super) const MEMBERS: [&str; 3] = ["before", "after", "op"];

/// The rows of changes.
pub(super) struct Changes {
    pub rows: RecordBatch,
    /// The change that each row is of, and its operation.
    pub of: Vec<(usize, Operation)>,
    /// The changes that delete their keys, and have no row.
    pub keys: Vec<usize>,
    /// The changes that are refused, with their problems.
    pub refused: BTreeMap<usize, String>,
}

/// The rows of changes, of which `put` adds one to the table.
pub(super) fn open(changes: &RecordBatch, put: Operation) -> Result<Changes, ArrowError> {
    let member = |name: &str| {
        let wrong = || {
            ArrowError::SchemaError(format!(
                "the schema is none of Debezium's changes: it has no \"{name}\""
            ))
        };
        changes.column_by_name(name).ok_or_else(wrong)
    };
    let row = |name: &str| {
        let wrong = || {
            ArrowError::SchemaError(format!(
                "the schema is none of Debezium's changes: \"{name}\" is no record"
            ))
        };
        member(name)?.as_struct_opt().ok_or_else(wrong)
    };
    let (before, after) = (row(MEMBERS[0])?, row(MEMBERS[1])?);
    let operations = cast(member(MEMBERS[2])?, &DataType::Utf8)?;
    let operations = operations.as_string::<i32>();
    let (mut picks, mut of) = (Vec::new(), Vec::new());
    let (mut keys, mut refused) = (Vec::new(), BTreeMap::new());
    let is_keyed = put == Operation::Upsert;
    for change in 0..changes.num_rows() {
        let mut pick = |which: usize, operation| {
            picks.push((which, change));
            of.push((change, operation));
        };
        let (was, is) = (before.is_valid(change), after.is_valid(change));
        let operation = if operations.is_valid(change) { operations.value(change) } else { "" };
        let problem = match (operation, was, is) {
            ("c" | "r", _, true) => {
                pick(1, put);
                continue;
            }
            ("u", false, true) if !is_keyed => no_before("an update"),
            ("u", _, true) => {
                if was {
                    pick(0, Operation::Delete);
                }
                pick(1, put);
                continue;
            }
            ("d", true, _) => {
                pick(0, Operation::Delete);
                continue;
            }
            ("d", false, _) if is_keyed => {
                keys.push(change);
                continue;
            }
            ("d", ..) => no_before("a deletion"),
            ("t", ..) => TRUNCATED.to_owned(),
            // A message of the application's own.
            ("m", ..) => continue,
            (operation, ..) => no_row(&format!("{operation:?}")),
        };
        refused.insert(change, problem);
    }
    Ok(Changes { rows: pick(before, after, &picks)?, of, keys, refused })
}

/// Rows before and after, in the order of `picks`.
fn pick(
    before: &StructArray,
    after: &StructArray,
    picks: &[(usize, usize)],
) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut columns): (Vec<Field>, Vec<ArrayRef>) = Default::default();
    for (field, column) in after.fields().iter().zip(after.columns()) {
        let earlier = before.column_by_name(field.name());
        let earlier = earlier.filter(|earlier| earlier.data_type() == column.data_type());
        let wrong =
            || ArrowError::SchemaError("the schema has other columns before than after".to_owned());
        let earlier = earlier.ok_or_else(wrong)?;
        columns.push(interleave(&[earlier, column], picks)?);
        fields.push(field.as_ref().clone().with_nullable(true));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(picks.len()));
    RecordBatch::try_new_with_options(Schema::new(fields).into(), columns, &options)
}
