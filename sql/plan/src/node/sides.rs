//! The two sides of a join.

use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, plan_err};

use super::{Indexed, Node};
use crate::constructs::Clause;
use crate::{IncrementalPlan, Retention};

/// The burden of a join that has no keys to find rows by.
pub(super) const WITHOUT_EQUALITY: &str = "it has no equality, so each change meets all rows of the other side: compare columns of both sides by = in ON";

/// A side of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Refuses pairs of columns of different types.
pub(super) fn check_types(
    left: &IncrementalPlan,
    right: &IncrementalPlan,
    on: &[(usize, usize)],
) -> Result<()> {
    for &(l, r) in on {
        let (l, r) = (left.schema.field(l), right.schema.field(r));
        if l.data_type() != r.data_type() {
            return plan_err!(
                "\"{}\" is {} and \"{}\" is {}: they cannot be joined without a CAST",
                l.name(),
                l.data_type(),
                r.name(),
                r.data_type()
            );
        }
    }
    Ok(())
}

/// The clause of a join.
pub(super) fn clause(
    left: &IncrementalPlan,
    right: &IncrementalPlan,
    on: &[(usize, usize)],
) -> Clause {
    let name = |plan: &IncrementalPlan, column: usize| plan.schema.field(column).name().clone();
    Clause::Join(on.iter().map(|&(l, r)| (name(left, l), name(right, r))).collect())
}

/// Which rows of both sides are needed.
pub(super) fn retained<'a>(
    left: &'a IncrementalPlan,
    right: &'a IncrementalPlan,
    retention: &'a (Retention, Retention),
) -> Vec<(&'static str, &'a SchemaRef, &'a Retention)> {
    vec![("left rows", &left.schema, &retention.0), ("right rows", &right.schema, &retention.1)]
}

/// The sides that can be shared, with their keys: others need all of their rows. The pairs `on` are put into the order in
/// which a scanned table is stored, if a side is one. `may_be_wider` says whether the sides can have other columns besides, and
/// `keeps` which of them stay without a partner.
pub(super) fn keyed<'a>(
    left: &'a mut IncrementalPlan,
    right: &'a mut IncrementalPlan,
    on: &mut Vec<(usize, usize)>,
    retention: &(Retention, Retention),
    may_be_wider: bool,
    keeps: (bool, bool),
) -> Vec<Indexed<'a>> {
    if !order_as_stored(on, left, |pair| pair.0) {
        order_as_stored(on, right, |pair| pair.1);
    }
    let (left_keys, right_keys): (Vec<usize>, Vec<usize>) = on.iter().copied().unzip();
    // NULL meets NULL, unless one side has none.
    let nulls_left = !keeps.0 && never_null(right, &right_keys);
    let nulls_right = !keeps.1 && never_null(left, &left_keys);
    let sides = [
        (left, left_keys, &retention.0, nulls_left),
        (right, right_keys, &retention.1, nulls_right),
    ];
    let shared = sides.into_iter().filter(|(_, _, retention, _)| retention.column().is_none());
    shared
        .map(|(input, keys, _, may_have_nulls)| Indexed {
            input,
            keys,
            may_be_wider,
            may_have_nulls,
        })
        .collect()
}

/// Whether no row has NULL in one of these columns.
fn never_null(rows: &IncrementalPlan, columns: &[usize]) -> bool {
    let present = rows.columns_without_null();
    columns.iter().all(|key| !rows.schema.field(*key).is_nullable() || present.contains(key))
}

/// Puts the pairs `on` into the order in which a table that is scanned by its primary key is stored, and returns
/// whether `side` is such a scan. The order of the pairs means nothing to a join.
fn order_as_stored(
    on: &mut Vec<(usize, usize)>,
    side: &IncrementalPlan,
    column: impl Fn(&(usize, usize)) -> usize,
) -> bool {
    let (Node::Scan(_), [key]) = (&side.node, &side.properties.unique[..]) else { return false };
    let ordered: Option<Vec<_>> =
        key.iter().map(|kept| on.iter().find(|pair| column(pair) == *kept).copied()).collect();
    match ordered {
        Some(ordered) if ordered.len() == on.len() => {
            *on = ordered;
            true
        }
        _ => false,
    }
}
