//! Auction statistics: the number of bids per auction and day, in total and by price range, and statistics of their
//! prices.

use differential_dataflow::operators::CountTotal;

use crate::differential::Tables;
use crate::differential::view::View;

/// A day in microseconds.
const DAY: i64 = 86_400_000_000;

/// A bid as a weight: one in total and in its range of prices, and the price.
fn weight(price: i64) -> ((isize, isize, isize, isize), isize) {
    let is_in = |range: std::ops::Range<i64>| isize::from(range.contains(&price));
    let ranges = (1, is_in(i64::MIN..10_000), is_in(10_000..1_000_000), is_in(1_000_000..i64::MAX));
    (ranges, price as isize)
}

pub(in crate::differential) fn program(tables: Tables<'_>) -> View<'_> {
    let prices = tables.bid.map(|it| ((it.auction, it.date_time.div_euclid(DAY)), it.price));
    let sums = prices.clone().explode(|(key, price)| Some((key, weight(price)))).count_total();
    let extremes = prices.reduce(|_, prices, extremes| {
        if let (Some((least, _)), Some((greatest, _))) = (prices.first(), prices.last()) {
            extremes.push(((**least, **greatest), 1_isize));
        }
    });
    let rows = sums.join_map(extremes, |key, sums, extremes| (*key, *sums, *extremes));
    View::new(rows, |row, ((auction, day), (counts, sum), (least, greatest))| {
        let (total, first, second, third) = counts;
        row.integer(*auction);
        row.integer(*day);
        for count in [total, first, second, third] {
            row.integer(*count as i64);
        }
        row.integer(*least);
        row.integer(*greatest);
        row.double(*sum as f64 / *total as f64);
        row.integer(*sum as i64);
    })
}
