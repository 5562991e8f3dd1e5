//! Lower bounds of rows that change with others of their group.

use arrow::datatypes::SchemaRef;

use super::{LowerBounds, Reason, Retention};
use crate::fault::{self, Fault};
use crate::plan::IncrementalPlan;

/// The lower bounds of the rows, with columns `schema`, of a node that keeps the rows of `input` in groups by `keys`, and
/// which of these are needed. The key by which they are pruned becomes the first.
pub(crate) fn of_groups(
    input: &mut IncrementalPlan,
    keys: &mut [usize],
    schema: &SchemaRef,
) -> (LowerBounds, Retention) {
    let below = input.bound(&[]);
    let retention = retention(&below, &input.schema, keys);
    let bounds = bounds(&below, keys, schema);
    (bounds, retention)
}

/// Which rows are needed of groups by `keys`. The key by which they are pruned becomes the first.
pub(super) fn retention(below: &LowerBounds, input: &SchemaRef, keys: &mut [usize]) -> Retention {
    let retention = match keys {
        [] => Retention::All(one_group()),
        _ if fault::armed(Fault::BoundOfMembers) => {
            Retention::by_first(below, 0..below.len(), input, no_time_in_key)
        }
        _ => Retention::by_first(below, keys.iter().copied(), input, no_time_in_key),
    };
    if let Some(place) = keys.iter().position(|key| Some(*key) == retention.column()) {
        keys[..=place].rotate_right(1);
    }
    retention
}

/// The lower bounds of rows, with columns `schema`, that change with others of their group.
pub(super) fn bounds(below: &LowerBounds, keys: &[usize], schema: &SchemaRef) -> LowerBounds {
    let bound = |(column, field): (usize, &arrow::datatypes::FieldRef)| match below.get(column) {
        Some(bound) if keys.contains(&column) => bound.clone(),
        _ => {
            // The name of what a window computes goes on with its whole definition.
            let name = field.name().split('(').next().unwrap_or_default();
            let sentence = format!("a row of any {name} can change with another row of its group");
            Err(Reason::new(sentence).with_remedy(
                "partition by a time that has LATENESS, or by DATE_TRUNC or DATE_BIN of it",
            ))
        }
    };
    schema.fields().iter().enumerate().map(bound).collect()
}

/// Why all rows of one group are kept.
pub(crate) fn one_group() -> Reason {
    Reason::new("all rows are one group, which any row can change")
        .with_remedy("group by a time that has LATENESS, or by DATE_TRUNC or DATE_BIN of it")
}

/// Why groups are kept whose key has no time.
pub(crate) fn no_time_in_key() -> Reason {
    Reason::new("the key has no time, so a later row can change any group")
        .with_remedy("add a time that has LATENESS to the key, or DATE_TRUNC or DATE_BIN of it")
}
