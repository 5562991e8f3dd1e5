//! The last bid of each bidder on each auction.

use crate::differential::Tables;
use crate::differential::view::View;

pub(in crate::differential) fn program(tables: Tables<'_>) -> View<'_> {
    let bids = tables.bid.map(|bid| {
        ((bid.auction, bid.bidder), (bid.date_time, bid.price, bid.channel, bid.url, bid.extra))
    });
    let last = bids.reduce(|_, bids, last| {
        if let Some((bid, _)) = bids.last() {
            last.push(((*bid).clone(), 1_isize));
        }
    });
    View::new(last, |row, ((auction, bidder), (date_time, price, channel, url, extra))| {
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
