//! Expand bids with auctions: every bid on an auction in category 10, with the auction.

use crate::differential::Tables;
use crate::differential::view::View;

pub(in crate::differential) fn program(tables: Tables<'_>) -> View<'_> {
    let bids = tables.bid.map(|bid| (bid.auction, bid));
    let auctions = tables
        .auction
        .flat_map(|auction| (auction.category == 10).then_some((auction.id, auction)));
    let rows = bids.join_map(auctions, |_, bid, auction| (bid.clone(), auction.clone()));
    View::new(rows, |row, (bid, auction)| {
        row.integer(bid.auction);
        row.integer(bid.bidder);
        row.integer(bid.price);
        row.text(&bid.channel);
        row.text(&bid.url);
        row.integer(bid.date_time);
        row.text(&bid.extra);
        row.text(&auction.item_name);
        row.text(&auction.description);
        row.integer(auction.initial_bid);
        row.integer(auction.reserve);
        row.integer(auction.date_time);
        row.integer(auction.expires);
        row.integer(auction.seller);
        row.integer(auction.category);
        row.text(&auction.extra);
    })
}
