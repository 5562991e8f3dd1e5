//! Currency conversion: every bid with its price in euros, in thousandths.

use dbsp::utils::Tup5;

use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

pub(super) fn program(tables: &Tables) -> View {
    let bids = tables.bid.flat_map(|bid| {
        Some(Tup5(bid.auction, bid.bidder, 908 * bid.price, bid.date_time, bid.extra.clone()))
    });
    View::new(bids, |row, Tup5(auction, bidder, price, date_time, extra)| {
        row.integer(*auction);
        row.integer(*bidder);
        row.decimal(i128::from(*price));
        row.integer(*date_time);
        row.text(extra);
    })
}
