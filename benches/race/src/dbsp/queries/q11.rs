//! User sessions: the number of bids per bidder and session. A session ends after 10 seconds without a bid.
//!
//! DBSP has no operator for sessions: all bids of a bidder are gone through when one of them comes or goes.

use dbsp::ZWeight;
use dbsp::algebra::UnimplementedSemigroup;
use dbsp::operator::Fold;
use dbsp::utils::{Tup3, Tup4};

use super::SECOND;
use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

/// The first time, the end, and the number of bids.
type Session = Tup3<i64, i64, i64>;

/// Adds bids of a time that is not before the others.
fn add(sessions: &mut Vec<Session>, time: &i64, weight: ZWeight) {
    match sessions.last_mut() {
        Some(Tup3(_, end, count)) if time < end => {
            *end = time + 10 * SECOND;
            *count += weight;
        }
        _ => sessions.push(Tup3(*time, time + 10 * SECOND, weight)),
    }
}

pub(super) fn program(tables: &Tables) -> View {
    let bids = tables.bid.index(|bid| Some((bid.bidder, bid.date_time)));
    let sessions = bids
        .aggregate(<Fold<i64, _, UnimplementedSemigroup<_>, _, _>>::new(Vec::new(), add))
        .flat_map(|(bidder, sessions): (&i64, &Vec<Session>)| {
            let bidder = *bidder;
            let rows = sessions.clone().into_iter();
            rows.map(move |Tup3(start, end, count)| Tup4(bidder, count, start, end))
        });
    View::new(sessions, |row, Tup4(bidder, count, start, end)| {
        row.integer(*bidder);
        row.integer(*count);
        row.integer(*start);
        row.integer(*end);
    })
}
