//! Auction top 10: the ten highest bids of each auction, with their ranks.

use std::cmp::Ordering;

use dbsp::CmpFunc;
use dbsp::utils::Tup2;

use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;
use crate::model::Bid;

/// Higher bids are first; equally high ones are in any order that is total.
struct HighestFirst;

impl CmpFunc<Bid> for HighestFirst {
    fn cmp(left: &Bid, right: &Bid) -> Ordering {
        right.price.cmp(&left.price).then_with(|| left.cmp(right))
    }
}

pub(super) fn program(tables: &Tables) -> View {
    let bids = tables.bid.index(|bid| Some((bid.auction, bid.clone())));
    let top = bids
        .topk_row_number_custom_order::<HighestFirst, _, _>(10, |rank, bid| Tup2(rank, bid.clone()))
        .map(|(_, ranked)| ranked.clone());
    View::new(top, |row, Tup2(rank, bid)| {
        row.integer(bid.auction);
        row.open(|row| row.integer(bid.bidder));
        row.integer(bid.price);
        row.open(|row| {
            row.text(&bid.channel);
            row.text(&bid.url);
            row.integer(bid.date_time);
            row.text(&bid.extra);
        });
        row.integer(*rank);
    })
}
