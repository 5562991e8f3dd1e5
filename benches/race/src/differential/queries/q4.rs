//! Average price for a category: the mean of the highest bids of its auctions.

use differential_dataflow::operators::CountTotal;

use crate::differential::Tables;
use crate::differential::view::View;

pub(in crate::differential) fn program(tables: Tables<'_>) -> View<'_> {
    let auctions =
        tables.auction.map(|it| (it.id, (it.category, it.date_time, it.expires))).arrange_by_key();
    let bids = tables.bid.map(|it| (it.auction, (it.price, it.date_time))).arrange_by_key();
    let bids_in_time =
        auctions.join_core(bids, |auction, (category, begins, expires), (price, date_time)| {
            let is_in_time = (begins..=expires).contains(&date_time);
            is_in_time.then_some(((*auction, *category), *price))
        });
    let highest = bids_in_time.reduce(|_, prices, highest| {
        if let Some((price, _)) = prices.last() {
            highest.push((**price, 1_isize));
        }
    });
    let sums = highest
        .explode(|((_, category), price)| Some((category, (price as isize, 1_isize))))
        .count_total();
    View::new(sums, |row, (category, (sum, count))| {
        row.integer(*category);
        row.double(*sum as f64 / *count as f64);
    })
}
