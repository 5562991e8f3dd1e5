//! The counts of q15 to q17: bids, bidders and auctions, in total and in three ranges of prices.

use dbsp::DBData;
use dbsp::utils::{Tup2, Tup3, Tup4};

use crate::answer::Row;
use crate::dbsp::tables::{Indexed, Tables};
use crate::model::Bid;

/// A number in total, and in each range.
pub(super) type Counts = Tup4<i64, i64, i64, i64>;

/// The range of a price, from one to three.
fn range(price: i64) -> i64 {
    match price {
        ..10_000 => 1,
        10_000..1_000_000 => 2,
        _ => 3,
    }
}

/// One bid at a price.
pub(super) fn one(price: i64) -> Counts {
    let range = range(price);
    let of = |number| i64::from(range == number);
    Tup4(1, of(1), of(2), of(3))
}

/// The numbers of bids, of their bidders and of their auctions for each key.
pub(super) fn counts<K: DBData>(
    tables: &Tables,
    key: fn(&Bid) -> K,
) -> Indexed<K, Tup3<Counts, Counts, Counts>> {
    let bids = tables.bid.index(move |bid| Some((key(bid), bid.price)));
    let bids = bids.aggregate_linear(|price| one(*price));
    let bidders = distinct(tables, key, |bid| bid.bidder);
    let auctions = distinct(tables, key, |bid| bid.auction);
    bids.join_index(&bidders, |key, bids, bidders| Some((key.clone(), Tup2(*bids, *bidders))))
        .join_index(&auctions, |key, Tup2(bids, bidders), auctions| {
            Some((key.clone(), Tup3(*bids, *bidders, *auctions)))
        })
}

/// The numbers of distinct values for each key. A value counts in total, the range 0, and in each range that it is in.
fn distinct<K: DBData>(
    tables: &Tables,
    key: fn(&Bid) -> K,
    value: fn(&Bid) -> i64,
) -> Indexed<K, Counts> {
    let values = tables.bid.flat_map(move |bid| {
        let (key, value) = (key(bid), value(bid));
        [0, range(bid.price)].map(|range| Tup3(key.clone(), value, range))
    });
    let ranges = values.distinct().map_index(|Tup3(key, _, range)| (key.clone(), *range));
    ranges.aggregate_linear(|range| {
        let of = |number| i64::from(*range == number);
        Tup4(of(0), of(1), of(2), of(3))
    })
}

/// Writes some of them.
pub(super) fn write(row: &mut Row, Tup4(total, first, second, third): &Counts) {
    for count in [total, first, second, third] {
        row.integer(*count);
    }
}
