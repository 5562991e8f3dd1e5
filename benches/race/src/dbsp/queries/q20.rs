//! Expand bids with auctions: every bid on an auction in category 10, with the auction.

use dbsp::utils::Tup2;

use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

pub(super) fn program(tables: &Tables) -> View {
    let bids = tables.bid.index(|bid| Some((bid.auction, bid.clone())));
    let auctions = tables
        .auction
        .index(|auction| (auction.category == 10).then(|| (auction.id, auction.clone())));
    let rows = bids.join(&auctions, |_, bid, auction| Tup2(bid.clone(), auction.clone()));
    View::new(rows, |row, Tup2(bid, auction)| {
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
