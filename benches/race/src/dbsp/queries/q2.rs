//! Selection: the bids on every 123rd auction.

use dbsp::utils::Tup2;

use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

pub(super) fn program(tables: &Tables) -> View {
    let bids =
        tables.bid.flat_map(|bid| (bid.auction % 123 == 0).then_some(Tup2(bid.auction, bid.price)));
    View::new(bids, |row, Tup2(auction, price)| {
        row.integer(*auction);
        row.integer(*price);
    })
}
