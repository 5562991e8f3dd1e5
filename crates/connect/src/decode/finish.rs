//! Rows of all formats, put together.

use std::collections::BTreeMap;

use alluvium::{Absent, Portion, Refusal};
use arrow::array::{Array, AsArray, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::compute::filter;
use arrow::datatypes::{FieldRef, Schema};
use arrow::error::ArrowError;

use super::messages::Messages;
use super::metadata::Metadata;
use super::rows::{Candidates, Decoded, Operation, Shape};

/// The problems of messages, by their numbers.
type Problems = BTreeMap<usize, String>;

/// The rows of the messages that are right in all their parts, with columns of metadata.
pub(super) fn finish(
    candidates: Candidates,
    messages: &Messages,
    (topic, shape, metadata): (&str, &Shape, &[(FieldRef, Metadata)]),
) -> Result<Decoded, ArrowError> {
    let Candidates { of, mut portion, refused } = candidates;
    let mut problems: Problems = refused.into_iter().collect();
    let mut is_row = vec![true; of.len()];
    for refusal in std::mem::take(&mut portion.refused) {
        let candidate = usize::try_from(refusal.line).unwrap_or(usize::MAX);
        is_row[candidate] = false;
        problems.entry(of[candidate].0).or_insert(refusal.message);
    }
    let rows = of.into_iter().zip(is_row).filter_map(|(row, is_row)| is_row.then_some(row));
    let mut rows: Vec<(usize, Operation)> = rows.collect();
    find_nulls(&portion, &rows, shape, &mut problems);
    for (field, what) in metadata {
        for (message, _) in &rows {
            if let Some(problem) = what.problem(field, messages, *message) {
                problems.entry(*message).or_insert(problem);
            }
        }
    }
    if rows.iter().any(|(message, _)| problems.contains_key(message)) {
        keep(&mut portion, &mut rows, &problems)?;
    }
    let (of, operations): (Vec<usize>, Vec<Operation>) = rows.into_iter().unzip();
    portion.rows = with_metadata(&portion.rows, messages, (topic, metadata), &of)?;
    portion.bytes = messages.bytes() as u64;
    let refusal = |(message, problem)| {
        let message = messages.get(message);
        let place = format!("{topic}/{}:{}", message.partition, message.offset);
        Refusal::new(place, 0, problem)
    };
    let refused = problems.keys().copied().collect();
    portion.refused = problems.into_iter().map(refusal).collect();
    Ok(Decoded { portion, operations, refused })
}

/// Finds rows without a value in a NOT NULL column that is not of the key: only deletions may have none.
fn find_nulls(
    portion: &Portion,
    rows: &[(usize, Operation)],
    shape: &Shape,
    problems: &mut Problems,
) {
    let schema = portion.rows.schema();
    for (column, field) in schema.fields().iter().enumerate() {
        let is_needed = shape
            .schema
            .field_with_name(field.name())
            .is_ok_and(|field| !field.is_nullable() && !shape.is_key(field.name()));
        let values = portion.rows.column(column);
        if !is_needed || values.null_count() == 0 {
            continue;
        }
        let absent = portion.absent.iter().find(|absent| absent.column == column);
        for (row, (message, operation)) in rows.iter().enumerate() {
            let is_absent = absent.is_some_and(|absent| absent.rows.value(row));
            if *operation != Operation::Delete && values.is_null(row) && !is_absent {
                let problem = format!("there is no value (column {} is NOT NULL)", field.name());
                problems.entry(*message).or_insert(problem);
            }
        }
    }
}

/// Keeps the rows of messages without problems.
fn keep(
    portion: &mut Portion,
    rows: &mut Vec<(usize, Operation)>,
    problems: &Problems,
) -> Result<(), ArrowError> {
    let kept = rows.iter().map(|(message, _)| Some(!problems.contains_key(message)));
    let kept = kept.collect::<BooleanArray>();
    portion.rows = arrow::compute::filter_record_batch(&portion.rows, &kept)?;
    for Absent { rows, .. } in &mut portion.absent {
        *rows = filter(rows, &kept)?.as_boolean().clone();
    }
    rows.retain(|(message, _)| !problems.contains_key(message));
    Ok(())
}

fn with_metadata(
    rows: &RecordBatch,
    messages: &Messages,
    (topic, metadata): (&str, &[(FieldRef, Metadata)]),
    of: &[usize],
) -> Result<RecordBatch, ArrowError> {
    if metadata.is_empty() {
        return Ok(rows.clone());
    }
    let mut fields: Vec<FieldRef> = rows.schema().fields().iter().cloned().collect();
    let mut columns = rows.columns().to_vec();
    for (field, what) in metadata {
        columns.push(what.column(field, topic, messages, of)?);
        fields.push(field.as_ref().clone().with_nullable(true).into());
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(Schema::new(fields).into(), columns, &options)
}
