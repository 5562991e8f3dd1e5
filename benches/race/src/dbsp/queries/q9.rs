//! Winning bids: for each auction, the highest bid that was made while the auction was open, and the earliest of equally
//! high ones.

use dbsp::operator::Min;
use dbsp::utils::{Tup2, Tup4};

use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

pub(super) fn program(tables: &Tables) -> View {
    let auctions = tables.auction.index(|auction| Some((auction.id, auction.clone())));
    let bids = tables
        .bid
        .index(|it| Some((it.auction, Tup4(it.price, it.date_time, it.bidder, it.extra.clone()))));
    let bids_in_time =
        auctions.join_index(&bids, |_, auction, Tup4(price, date_time, bidder, extra)| {
            let is_in_time = (auction.date_time..=auction.expires).contains(date_time);
            // The least is the highest bid, and of equally high ones the earliest.
            let bid = || Tup4(-price, *date_time, *bidder, extra.clone());
            is_in_time.then(|| (auction.clone(), bid()))
        });
    let winning =
        bids_in_time.aggregate(Min).map(|(auction, bid)| Tup2(auction.clone(), bid.clone()));
    View::new(winning, |row, Tup2(auction, Tup4(negated, date_time, bidder, extra))| {
        row.integer(auction.id);
        row.text(&auction.item_name);
        row.text(&auction.description);
        row.integer(auction.initial_bid);
        row.integer(auction.reserve);
        row.integer(auction.date_time);
        row.integer(auction.expires);
        row.integer(auction.seller);
        row.integer(auction.category);
        row.text(&auction.extra);
        row.integer(auction.id);
        row.integer(*bidder);
        row.integer(-negated);
        row.integer(*date_time);
        row.text(extra);
    })
}
