//! Hot items: which auctions had the most bids in the last 10 seconds, every 2 seconds?

use dbsp::operator::Max;
use dbsp::utils::Tup2;

use super::SECOND;
use crate::dbsp::tables::{Tables, forget};
use crate::dbsp::view::View;

/// Whether a window has not ended at the waterline.
fn is_open(start: i64, now: i64) -> bool {
    start.saturating_add(10 * SECOND) >= now
}

pub(super) fn program(tables: &Tables) -> View {
    let waterline = tables.waterline_of_bids();
    let waterline = waterline.as_ref();
    let windows = tables.bid.index(|bid| {
        let last = bid.date_time - bid.date_time.rem_euclid(2 * SECOND);
        let auction = bid.auction;
        (0..5).map(move |number| (Tup2(last - number * 2 * SECOND, auction), ()))
    });
    let counts = match waterline {
        None => windows.weighted_count(),
        Some(waterline) => windows.aggregate_linear_retain_keys(
            waterline,
            |Tup2(start, _), now: &i64| is_open(*start, *now),
            |()| 1,
        ),
    };
    forget(&counts, waterline, |Tup2(start, _), now| is_open(*start, *now));

    let by_window = counts.map_index(|(Tup2(start, _), count)| (*start, *count));
    forget(&by_window, waterline, |start, now| is_open(*start, *now));
    let most = by_window.aggregate(Max);
    forget(&most, waterline, |start, now| is_open(*start, *now));

    let most = most.map_index(|(start, count)| (Tup2(*start, *count), ()));
    let by_count =
        counts.map_index(|(Tup2(start, auction), count)| (Tup2(*start, *count), *auction));
    forget(&most, waterline, |Tup2(start, _), now| is_open(*start, *now));
    forget(&by_count, waterline, |Tup2(start, _), now| is_open(*start, *now));
    let hot = most.join(&by_count, |Tup2(_, count), (), auction| Tup2(*auction, *count));
    View::new(hot, |row, Tup2(auction, count)| {
        row.integer(*auction);
        row.integer(*count);
    })
}
