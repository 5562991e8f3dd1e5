//! Winning bids: for each auction, the highest bid that was made while the auction was open, and the earliest of equally
//! high ones.

use crate::differential::Tables;
use crate::differential::view::View;

pub(in crate::differential) fn program(tables: Tables<'_>) -> View<'_> {
    let auctions = tables.auction.map(|auction| (auction.id, auction)).arrange_by_key();
    let bids = tables
        .bid
        .map(|it| (it.auction, (it.price, it.date_time, it.bidder, it.extra)))
        .arrange_by_key();
    let bids_in_time =
        auctions.clone().join_core(bids, |id, auction, (price, date_time, bidder, extra)| {
            let is_in_time = (auction.date_time..=auction.expires).contains(date_time);
            // The least is the highest bid, and of equally high ones the earliest.
            is_in_time.then(|| (*id, (-price, *date_time, *bidder, extra.clone())))
        });
    let winning = bids_in_time.reduce(|_, bids, winning| {
        if let Some((bid, _)) = bids.first() {
            winning.push(((*bid).clone(), 1_isize));
        }
    });
    let rows = winning
        .arrange_by_key()
        .join_core(auctions, |_, bid, auction| Some((auction.clone(), bid.clone())));
    View::new(rows, |row, (auction, (negated, date_time, bidder, extra))| {
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
