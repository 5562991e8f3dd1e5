//! Average price for a category: the mean of the highest bids of its auctions.

use dbsp::algebra::F64;
use dbsp::operator::Max;
use dbsp::utils::{Tup2, Tup3};

use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

pub(super) fn program(tables: &Tables) -> View {
    let auctions =
        tables.auction.index(|it| Some((it.id, Tup3(it.category, it.date_time, it.expires))));
    let bids = tables.bid.index(|it| Some((it.auction, Tup2(it.price, it.date_time))));
    let bids_in_time = auctions.join_index(
        &bids,
        |auction, Tup3(category, begins, expires), Tup2(price, date_time)| {
            let is_in_time = (begins..=expires).contains(&date_time);
            is_in_time.then_some((Tup2(*auction, *category), *price))
        },
    );
    let highest = bids_in_time.aggregate(Max);
    let averages = highest
        .map_index(|(Tup2(_, category), price)| (*category, *price))
        .aggregate_linear_postprocess(
            |price| Tup2(*price, 1_i64),
            |Tup2(sum, count)| F64::new(sum as f64 / count as f64),
        );
    let averages = averages.map(|(category, average)| Tup2(*category, *average));
    View::new(averages, |row, Tup2(category, average)| {
        row.integer(*category);
        row.double(average.into_inner());
    })
}
