//! Lower bounds of rows of windows, which change with rows that are near them in the order.

use alluvium_dataflow::reductions::window::{Distance, Extent};
use arrow::datatypes::SchemaRef;

use super::groups;
use super::{LowerBound, LowerBounds, Reason, Retention, is_time};
use crate::IncrementalPlan;
use crate::expression;

/// The lower bounds of the rows, with columns `schema`, of a window over partitions by `keys`, the first column of whose order
/// is `order`, and which rows of `input` are needed. The key by which they are pruned becomes the first.
pub(crate) fn of_windows(
    input: &mut IncrementalPlan,
    keys: &mut [usize],
    order: Option<usize>,
    extent: &Extent,
    schema: &SchemaRef,
) -> (LowerBounds, Retention) {
    let below = input.bound(&[]);
    let mut retention = groups::retention(&below, &input.schema, keys);
    groups::rotate(&retention, keys);
    let mut bounds = groups::bounds(&below, keys, schema);
    let Some(order) = order else { return (bounds, retention) };
    if bounds[order].is_err()
        && let Ok(bound) = &below[order]
        && let Some(results) = less(bound, &extent.results)
    {
        bounds[order] = Ok(results);
    }
    if retention.column().is_none() {
        let counted = extent.counted.filter(|_| input.properties.append_only);
        retention = match (&below[order], &extent.rows) {
            (Ok(_), Distance::Any) if let Some(rows) = counted => {
                Retention::by(&below, order, &input.schema).with_last(rows)
            }
            (Ok(bound), Distance::Any) if !bound.terms().is_empty() => {
                Retention::All(far_away(extent.counted.is_some()))
            }
            (Ok(bound), rows) => match less(bound, rows) {
                Some(bound) => {
                    let mut by = below.clone();
                    by[order] = Ok(bound);
                    Retention::by_first(&by, [order], &input.schema, groups::no_time_in_key)
                }
                None => retention,
            },
            // A bound of the order would do as well.
            (Err(lost), Distance::Zero | Distance::By(_)) if is_time(&input.schema, order) => {
                Retention::All(lost.clone())
            }
            _ => retention,
        };
    }
    (bounds, retention)
}

/// The bound less a distance; `None` if there is none.
fn less(bound: &LowerBound, distance: &Distance) -> Option<LowerBound> {
    match distance {
        Distance::Any => None,
        Distance::Zero => Some(bound.clone()),
        Distance::By(by) => bound.map(|value| Some(expression::less(value, by.clone()))),
    }
}

/// Why rows of a window are kept whose order has a bound. Fewer would be needed of those that are `counted` from row to row if
/// none was ever deleted.
fn far_away(counted: bool) -> Reason {
    if counted {
        return Reason::new(
            "rows are counted from row to row, and a row that is deleted moves all of them",
        )
        .with_remedy(
                "declare the table WITH ('append_only' = 'true') if nothing is deleted, or use RANGE frames of fixed length, or \
                 partition by DATE_TRUNC or DATE_BIN of a time that has LATENESS",
            );
    }
    Reason::new("a function of the window sees rows however old they are").with_remedy(
        "use RANGE frames of fixed length, or partition by DATE_TRUNC or DATE_BIN of a time that has LATENESS",
    )
}
