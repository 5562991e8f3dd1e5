//! Lower bounds of rows that change with others of their group.

use arrow::datatypes::SchemaRef;

use super::{LowerBounds, Reason, Retention};
use crate::IncrementalPlan;
use crate::fault::{self, Fault};
use crate::properties::Dependency;

/// The lower bounds of the rows, with columns `schema`, of a node that keeps the rows of `input` in groups by `keys`, and
/// which of these are needed. The key by which they are pruned becomes the first.
pub(crate) fn of_groups(
    input: &mut IncrementalPlan,
    keys: &mut [usize],
    schema: &SchemaRef,
) -> (LowerBounds, Retention) {
    let (below, retention) = by_keys(input, keys);
    let retention = of_members(&below, &input.schema, keys).unwrap_or(retention);
    rotate(&retention, keys);
    let groups: Vec<usize> = keys.iter().copied().chain(final_by(&retention, keys)).collect();
    let bounds = bounds(&below, &groups, schema);
    (bounds, retention)
}

/// The lower bounds of the rows of `input`, and which of them are needed in groups by `keys`. If no key says when a group is
/// final, a column can that follows from the keys: then `input` has it as its last column, unless it has it anyway.
pub(crate) fn by_keys(input: &mut IncrementalPlan, keys: &[usize]) -> (LowerBounds, Retention) {
    let width = input.width();
    let promised = input.properties.relies_on_promise(keys, width);
    let determined = input.properties.determined(keys, width, promised);
    input.pass_determined(keys, promised);
    let mut below = input.bound(&[]);
    let mut found = of_keys(&below, &input.schema, keys);
    if found.column().is_none() && !keys.is_empty() {
        let follows = |column: &usize| determined.get(*column).is_none_or(|follows| *follows);
        let columns = (0..below.len()).filter(follows);
        let of_all = Retention::by_first(&below, columns, &input.schema, no_time_in_key);
        found = if of_all.column().is_some() { of_all } else { found };
    }
    let kept = found.column().filter(|column| *column >= width);
    let dependency = Dependency { by: keys.to_vec(), columns: vec![width], promised };
    input.pass_one(width, kept.map(|column| (column, dependency)));
    if let (Some(kept), Retention::From { column, .. }) = (kept, &mut found) {
        below.swap(width, kept);
        *column = width;
    }
    below.truncate(input.width());
    (below, found)
}

/// Which rows are needed of partitions by `keys`.
pub(super) fn retention(below: &LowerBounds, input: &SchemaRef, keys: &[usize]) -> Retention {
    of_members(below, input, keys).unwrap_or_else(|| of_keys(below, input, keys))
}

/// Which rows are needed of groups by `keys`, as these say.
fn of_keys(below: &LowerBounds, input: &SchemaRef, keys: &[usize]) -> Retention {
    match keys {
        [] => Retention::All(one_group()),
        _ => Retention::by_first(below, keys.iter().copied(), input, no_time_in_key),
    }
}

/// Which rows are needed, as any column says, with [`Fault::BoundOfMembers`].
fn of_members(below: &LowerBounds, input: &SchemaRef, keys: &[usize]) -> Option<Retention> {
    let is_armed = fault::armed(Fault::BoundOfMembers) && !keys.is_empty();
    is_armed.then(|| Retention::by_first(below, 0..below.len(), input, no_time_in_key))
}

/// The column by which groups are pruned, if it follows from their `keys` and is none of them.
pub(crate) fn final_by(retention: &Retention, keys: &[usize]) -> Option<usize> {
    let is_other = |column: &usize| !keys.contains(column) && !fault::armed(Fault::BoundOfMembers);
    retention.column().filter(is_other)
}

/// Makes the key by which groups are pruned the first.
pub(super) fn rotate(retention: &Retention, keys: &mut [usize]) {
    if let Some(place) = keys.iter().position(|key| Some(*key) == retention.column()) {
        keys[..=place].rotate_right(1);
    }
}

/// The lower bounds of rows, with columns `schema`, that change with others of their group.
pub(super) fn bounds(below: &LowerBounds, keys: &[usize], schema: &SchemaRef) -> LowerBounds {
    let bound = |(column, field): (usize, &arrow::datatypes::FieldRef)| match below.get(column) {
        Some(bound) if keys.contains(&column) => bound.clone(),
        _ => {
            // The name of a window function is followed by its whole definition.
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
fn one_group() -> Reason {
    Reason::new("all rows are one group, which any row can change")
        .with_remedy("group by a time that has LATENESS, or by DATE_TRUNC or DATE_BIN of it")
}

/// Why groups are kept whose key has no time.
pub(super) fn no_time_in_key() -> Reason {
    Reason::new("the key has no time, so a later row can change any group")
        .with_remedy("add a time that has LATENESS to the key, or DATE_TRUNC or DATE_BIN of it")
}
