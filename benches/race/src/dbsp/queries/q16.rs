//! Channel statistics: the same as q15 for each channel, with the last minute that had a bid.

use dbsp::operator::Max;
use dbsp::utils::{Tup2, Tup3, Tup4};

use super::{DAY, SECOND, statistics};
use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;
use crate::model::Bid;

fn key(bid: &Bid) -> Tup2<String, i64> {
    Tup2(bid.channel.clone(), bid.date_time.div_euclid(DAY))
}

pub(super) fn program(tables: &Tables) -> View {
    let minutes = tables
        .bid
        .index(|bid| Some((key(bid), bid.date_time.rem_euclid(DAY) / (60 * SECOND))))
        .aggregate(Max);
    let rows =
        statistics::counts(tables, key).join(&minutes, |Tup2(channel, day), counts, minute| {
            let minute = format!("{:02}:{:02}", minute / 60, minute % 60);
            Tup4(channel.clone(), *day, minute, *counts)
        });
    View::new(rows, |row, Tup4(channel, day, minute, Tup3(bids, bidders, auctions))| {
        row.text(channel);
        row.integer(*day);
        row.text(minute);
        for counts in [bids, bidders, auctions] {
            statistics::write(row, counts);
        }
    })
}
