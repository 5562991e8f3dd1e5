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
    let retention = match keys {
        [] => Retention::All(Reason::new("it is one group, of all rows")),
        _ if fault::armed(Fault::BoundOfMembers) => {
            Retention::by_first(&below, 0..below.len(), &input.schema)
        }
        _ => Retention::by_first(&below, keys.iter().copied(), &input.schema),
    };
    if let Some(place) = keys.iter().position(|key| Some(*key) == retention.column()) {
        keys[..=place].rotate_right(1);
    }
    let bound = |(column, field): (usize, &arrow::datatypes::FieldRef)| match below.get(column) {
        Some(bound) if keys.contains(&column) => bound.clone(),
        _ => Err(Reason::new(format!(
            "a row of any \"{}\" can change with another row of its group",
            field.name()
        ))),
    };
    (schema.fields().iter().enumerate().map(bound).collect(), retention)
}
