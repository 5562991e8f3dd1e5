//! Pass-through: every bid unchanged.

use dbsp::utils::Tup5;

use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

pub(super) fn program(tables: &Tables) -> View {
    let bids = tables.bid.flat_map(|bid| {
        Some(Tup5(bid.auction, bid.bidder, bid.price, bid.date_time, bid.extra.clone()))
    });
    View::new(bids, |row, Tup5(auction, bidder, price, date_time, extra)| {
        row.integer(*auction);
        row.integer(*bidder);
        row.integer(*price);
        row.integer(*date_time);
        row.text(extra);
    })
}
