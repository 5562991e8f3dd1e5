//! Bounded side input: every bid with a value from a small table.

use dbsp::utils::{Tup2, Tup4, Tup5};

use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

pub(super) fn program(tables: &Tables) -> View {
    let bids = tables.bid.index(|it| {
        Some((it.auction % 10_000, Tup4(it.auction, it.bidder, it.price, it.date_time)))
    });
    let side = tables.side_input.map_index(|Tup2(key, value)| (*key, value.clone()));
    let rows = bids.join(&side, |_, Tup4(auction, bidder, price, date_time), value| {
        Tup5(*auction, *bidder, *price, *date_time, value.clone())
    });
    View::new(rows, |row, Tup5(auction, bidder, price, date_time, value)| {
        row.integer(*auction);
        row.integer(*bidder);
        row.integer(*price);
        row.integer(*date_time);
        row.text(value);
    })
}
