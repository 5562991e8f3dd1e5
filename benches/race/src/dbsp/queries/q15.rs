//! Bidding statistics: the number of bids, bidders and auctions per day, in total and by price range.

use dbsp::utils::{Tup2, Tup3};

use super::{DAY, statistics};
use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

pub(super) fn program(tables: &Tables) -> View {
    let counts = statistics::counts(tables, |bid| bid.date_time.div_euclid(DAY));
    let rows = counts.map(|(day, counts)| Tup2(*day, *counts));
    View::new(rows, |row, Tup2(day, Tup3(bids, bidders, auctions))| {
        row.integer(*day);
        for counts in [bids, bidders, auctions] {
            statistics::write(row, counts);
        }
    })
}
