//! The last bid of each bidder on each auction.

use dbsp::operator::Max;
use dbsp::utils::{Tup2, Tup5};

use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

pub(super) fn program(tables: &Tables) -> View {
    let bids = tables.bid.index(|bid| {
        let (price, channel, url, extra) =
            (bid.price, bid.channel.clone(), bid.url.clone(), bid.extra.clone());
        Some((Tup2(bid.auction, bid.bidder), Tup5(bid.date_time, price, channel, url, extra)))
    });
    let last = bids.aggregate(Max).map(|(key, bid)| Tup2(*key, bid.clone()));
    View::new(last, |row, Tup2(Tup2(auction, bidder), bid)| {
        let Tup5(date_time, price, channel, url, extra) = bid;
        row.integer(*auction);
        row.integer(*bidder);
        row.open(|row| {
            row.integer(*price);
            row.text(channel);
            row.text(url);
        });
        row.integer(*date_time);
        row.open(|row| row.text(extra));
    })
}
