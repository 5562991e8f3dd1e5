//! Auction statistics: the number of bids per auction and day, in total and by price range, and statistics of their
//! prices.

use dbsp::algebra::F64;
use dbsp::operator::{Max, Min};
use dbsp::utils::{Tup2, Tup7};

use super::{DAY, statistics};
use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

pub(super) fn program(tables: &Tables) -> View {
    let prices =
        tables.bid.index(|bid| Some((Tup2(bid.auction, bid.date_time.div_euclid(DAY)), bid.price)));
    let sums = prices.aggregate_linear(|price| Tup2(statistics::one(*price), *price));
    let least = prices.aggregate(Min);
    let greatest = prices.aggregate(Max);
    let rows = sums.join_index(&least, |key, sums, least| Some((*key, Tup2(*sums, *least)))).join(
        &greatest,
        |Tup2(auction, day), Tup2(Tup2(counts, sum), least), greatest| {
            let average = F64::new(*sum as f64 / counts.0 as f64);
            Tup7(*auction, *day, *counts, *least, *greatest, average, *sum)
        },
    );
    View::new(rows, |row, Tup7(auction, day, counts, least, greatest, average, sum)| {
        row.integer(*auction);
        row.integer(*day);
        statistics::write(row, counts);
        row.integer(*least);
        row.integer(*greatest);
        row.double(average.into_inner());
        row.integer(*sum);
    })
}
