//! Highest bid: the highest bids of every 10 seconds, and those at the exact end that are as high.

use dbsp::operator::Max;
use dbsp::utils::{Tup2, Tup4, Tup5};

use super::{SECOND, window};
use crate::dbsp::tables::{Tables, forget};
use crate::dbsp::view::View;

pub(super) fn program(tables: &Tables) -> View {
    let waterline = tables.waterline_of_bids();
    let waterline = waterline.as_ref();
    let prices = tables.bid.index(|bid| Some((window(bid.date_time) + 10 * SECOND, bid.price)));
    forget(&prices, waterline, |end, now| end >= now);
    let highest = prices.aggregate(Max);
    forget(&highest, waterline, |end, now| end >= now);

    let bids = tables.bid.index(|bid| {
        let start = window(bid.date_time);
        let at_end = (bid.date_time == start).then_some(start);
        let (price, bid) =
            (bid.price, Tup4(bid.auction, bid.bidder, bid.date_time, bid.extra.clone()));
        let ends = [start + 10 * SECOND].into_iter().chain(at_end);
        ends.map(move |end| (Tup2(end, price), bid.clone()))
    });
    let highest = highest.map_index(|(end, price)| (Tup2(*end, *price), ()));
    forget(&highest, waterline, |Tup2(end, _), now| end >= now);
    forget(&bids, waterline, |Tup2(end, _), now| end >= now);
    let rows =
        highest.join(&bids, |Tup2(_, price), (), Tup4(auction, bidder, date_time, extra)| {
            Tup5(*auction, *price, *bidder, *date_time, extra.clone())
        });
    View::new(rows, |row, Tup5(auction, price, bidder, date_time, extra)| {
        row.integer(*auction);
        row.integer(*price);
        row.integer(*bidder);
        row.integer(*date_time);
        row.text(extra);
    })
}
