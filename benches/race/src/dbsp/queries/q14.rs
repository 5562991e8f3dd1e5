//! Calculation: bids in a price range, with the time of day in words and the number of occurrences of a letter.

use dbsp::utils::Tup7;

use super::{DAY, SECOND};
use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

pub(super) fn program(tables: &Tables) -> View {
    let bids = tables.bid.flat_map(|bid| {
        // In thousandths.
        let price = 908 * bid.price;
        let is_in_range = price > 1_000_000_000 && price < 50_000_000_000;
        is_in_range.then(|| {
            let time_of_day = match bid.date_time.rem_euclid(DAY) / (3_600 * SECOND) {
                8..=18 => "dayTime",
                ..=6 | 20.. => "nightTime",
                _ => "otherTime",
            };
            Tup7(
                bid.auction,
                bid.bidder,
                price,
                time_of_day.to_owned(),
                bid.date_time,
                bid.extra.clone(),
                bid.extra.matches('c').count() as i64,
            )
        })
    });
    View::new(bids, |row, Tup7(auction, bidder, price, time_of_day, date_time, extra, count)| {
        row.integer(*auction);
        row.integer(*bidder);
        row.decimal(i128::from(*price));
        row.text(time_of_day);
        row.integer(*date_time);
        row.text(extra);
        row.integer(*count);
    })
}
