//! Average selling price by seller: for each auction of a seller, in the order of winning bids, the mean of its price
//! and those of the 10 auctions before it.

use dbsp::algebra::{F64, UnimplementedSemigroup};
use dbsp::operator::{Fold, Max};
use dbsp::utils::{Tup2, Tup3};

use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

/// The auction itself and 10 before it.
const FRAME: usize = 11;

fn averages(prices: Vec<i64>) -> Vec<F64> {
    let average = |last: usize| {
        let frame = &prices[(last + 1).saturating_sub(FRAME)..=last];
        F64::new(frame.iter().sum::<i64>() as f64 / frame.len() as f64)
    };
    (0..prices.len()).map(average).collect()
}

pub(super) fn program(tables: &Tables) -> View {
    let auctions =
        tables.auction.index(|it| Some((it.id, Tup3(it.seller, it.date_time, it.expires))));
    let bids = tables.bid.index(|it| Some((it.auction, Tup2(it.price, it.date_time))));
    let bids_in_time = auctions.join_index(
        &bids,
        |auction, Tup3(seller, begins, expires), Tup2(price, date_time)| {
            let is_in_time = (begins..=expires).contains(&date_time);
            // The greatest is the highest bid, and the earliest of equally high ones.
            is_in_time.then_some((Tup2(*auction, *seller), Tup2(*price, -date_time)))
        },
    );
    // In the order of their times, then of their prices.
    let by_seller = bids_in_time.aggregate(Max).map_index(|(Tup2(auction, seller), winning)| {
        let Tup2(price, negated) = winning;
        (*seller, Tup3(-negated, *price, *auction))
    });
    let add = |prices: &mut Vec<i64>, Tup3(_, price, _): &Tup3<i64, i64, i64>, _weight| {
        prices.push(*price);
    };
    let windows = by_seller.aggregate(<Fold<_, _, UnimplementedSemigroup<_>, _, _>>::with_output(
        Vec::new(),
        add,
        averages,
    ));
    let rows = windows.flat_map(|(seller, averages)| {
        let seller = *seller;
        averages.clone().into_iter().map(move |average| Tup2(seller, average))
    });
    View::new(rows, |row, Tup2(seller, average)| {
        row.integer(*seller);
        row.double(average.into_inner());
    })
}
