//! Processing time windows: the number of bids per bidder that arrive in each 10 seconds.

use dbsp::utils::{Tup2, Tup3};

use super::{SECOND, window};
use crate::dbsp::tables::{Tables, forget};
use crate::dbsp::view::View;

/// Whether a window has not ended at the waterline.
fn is_open(Tup2(_, start): &Tup2<i64, i64>, now: &i64) -> bool {
    start.saturating_add(10 * SECOND) >= *now
}

pub(super) fn program(tables: &Tables) -> View {
    let waterline = tables.waterline_of_arrivals();
    let bids = tables.bid.index(|bid| Some((Tup2(bid.bidder, window(bid.p_time)), ())));
    let counts = match &waterline {
        None => bids.weighted_count(),
        Some(waterline) => bids.aggregate_linear_retain_keys(waterline, is_open, |()| 1),
    };
    forget(&counts, waterline.as_ref(), is_open);
    let rows = counts.map(|(Tup2(bidder, start), count)| Tup3(*bidder, *count, *start));
    View::new(rows, |row, Tup3(bidder, count, start)| {
        row.integer(*bidder);
        row.integer(*count);
        row.integer(*start);
        row.integer(start + 10 * SECOND);
    })
}
