//! Dropping columns that nothing needs, so that no state holds them.

use std::collections::BTreeSet;

use datafusion_common::Result;

use super::IncrementalPlan;

/// The plan reduced to the columns `required`, in this order; `required` has at least one column.
pub(crate) fn prune(plan: IncrementalPlan, required: &[usize]) -> Result<IncrementalPlan> {
    let IncrementalPlan { node, schema, properties, .. } = plan;
    node.prune(&schema, properties, required)
}

/// Prunes below a node that needs all columns.
pub(super) fn prune_nothing(plan: IncrementalPlan) -> Result<IncrementalPlan> {
    let all: Vec<usize> = (0..plan.width()).collect();
    prune(plan, &all)
}

/// Prunes to the used columns in their order, and to one column where none is used: a batch needs one. Also
/// returns the columns that are left.
pub(super) fn prune_to(
    plan: IncrementalPlan,
    mut used: BTreeSet<usize>,
) -> Result<(IncrementalPlan, Vec<usize>)> {
    if used.is_empty() {
        let widths = plan
            .schema
            .fields()
            .iter()
            .map(|field| field.data_type().primitive_width().unwrap_or(usize::MAX));
        used.extend(widths.enumerate().min_by_key(|(_, width)| *width).map(|(column, _)| column));
    }
    let used: Vec<usize> = used.into_iter().collect();
    Ok((prune(plan, &used)?, used))
}

/// Prunes below a node that passes the columns of its input on, to those that are required and those that it reads itself. Also
/// returns the columns that are left, and which of them are the required ones.
pub(super) fn prune_with(
    plan: IncrementalPlan,
    required: &[usize],
    read: impl IntoIterator<Item = usize>,
) -> Result<(IncrementalPlan, Vec<usize>, Vec<usize>)> {
    let (plan, used) = prune_to(plan, required.iter().copied().chain(read).collect())?;
    let columns = required.iter().map(|&column| place(&used, column)).collect();
    Ok((plan, used, columns))
}

/// The new number of a column where there are two lists of them, one after the other, and the first had `width`; `kept` are
/// those that were kept of both.
pub(super) fn place_in_two(kept: (&[usize], &[usize]), width: usize, column: usize) -> usize {
    match column < width {
        true => place(kept.0, column),
        false => kept.0.len() + place(kept.1, column - width),
    }
}

/// The new number of a column that was kept.
pub(super) fn place(used: &[usize], column: usize) -> usize {
    used.iter().position(|used| *used == column).expect("a column that is used is kept")
}
