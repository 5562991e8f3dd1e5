//! Log to the file system: every bid, with its date and minute as text.

use chrono::DateTime;
use dbsp::utils::Tup7;

use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

pub(super) fn program(tables: &Tables) -> View {
    let bids = tables.bid.flat_map(|bid| {
        let time = DateTime::from_timestamp_micros(bid.date_time).unwrap_or_default();
        Some(Tup7(
            bid.auction,
            bid.bidder,
            bid.price,
            bid.date_time,
            bid.extra.clone(),
            time.format("%Y-%m-%d").to_string(),
            time.format("%H:%M").to_string(),
        ))
    });
    View::new(bids, |row, Tup7(auction, bidder, price, date_time, extra, day, minute)| {
        row.integer(*auction);
        row.integer(*bidder);
        row.integer(*price);
        row.integer(*date_time);
        row.text(extra);
        row.text(day);
        row.text(minute);
    })
}
