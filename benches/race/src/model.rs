//! The rows of the tables, for the programs in Rust. Times are microseconds since 1970.

use alluvium_nexmark::source::Events;
use alluvium_nexmark::source::revised::Revision;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
use feldera_macros::IsNone;
use rkyv::{Archive, Deserialize, Serialize};
use size_of::SizeOf;

use crate::Result;

macro_rules! rows {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
            #[derive(SizeOf, Archive, Serialize, Deserialize, IsNone)]
            #[derive(serde::Serialize, serde::Deserialize)]
            #[archive_attr(derive(Eq, Ord, PartialEq, PartialOrd))]
            #[archive(compare(PartialEq, PartialOrd))]
            #[expect(missing_docs, reason = "the columns of a table")]
            pub struct $name { $(pub $field: $type),* }
        )*
    };
}

rows! {
    /// A seller or bidder.
    Person {
        id: i64,
        name: String,
        email_address: String,
        credit_card: String,
        city: String,
        state: String,
        date_time: i64,
        extra: String,
    }

    /// An auction.
    Auction {
        id: i64,
        item_name: String,
        description: String,
        initial_bid: i64,
        reserve: i64,
        date_time: i64,
        expires: i64,
        seller: i64,
        category: i64,
        extra: String,
    }

    /// A bid.
    Bid {
        auction: i64,
        bidder: i64,
        price: i64,
        channel: String,
        url: String,
        date_time: i64,
        extra: String,
        p_time: i64,
    }
}

/// The rows of an epoch. Bids have weights: those that are deleted have -1.
pub struct Epoch {
    /// Sellers and bidders.
    pub persons: Vec<Person>,
    /// Auctions.
    pub auctions: Vec<Auction>,
    /// Bids.
    pub bids: Vec<(Bid, i64)>,
}

impl Epoch {
    /// The rows of some events.
    pub fn of(events: &Events) -> Result<Self> {
        let [person, auction, bid] = events.arrive()?;
        let mut bids: Vec<_> = read(&bid, Bid::read).map(|bid| (bid, 1)).collect();
        if let Some(Revision { deleted, inserted }) = &events.revision {
            bids.extend(read(deleted, Bid::read).map(|bid| (bid, -1)));
            bids.extend(read(inserted, Bid::read).map(|bid| (bid, 1)));
        }
        let persons = read(&person, Person::read).collect();
        let auctions = read(&auction, Auction::read).collect();
        Ok(Self { persons, auctions, bids })
    }
}

fn read<T>(rows: &RecordBatch, read: impl Fn(&Columns<'_>, usize) -> T) -> impl Iterator<Item = T> {
    (0..rows.num_rows()).map(move |row| read(&Columns(rows), row))
}

/// The columns of a batch, by their place.
struct Columns<'a>(&'a RecordBatch);

impl Columns<'_> {
    fn number(&self, column: usize, row: usize) -> i64 {
        self.0.column(column).as_primitive::<Int64Type>().value(row)
    }

    fn time(&self, column: usize, row: usize) -> i64 {
        self.0.column(column).as_primitive::<TimestampMicrosecondType>().value(row)
    }

    fn text(&self, column: usize, row: usize) -> String {
        self.0.column(column).as_string::<i32>().value(row).to_owned()
    }
}

impl Person {
    fn read(columns: &Columns<'_>, row: usize) -> Self {
        Self {
            id: columns.number(0, row),
            name: columns.text(1, row),
            email_address: columns.text(2, row),
            credit_card: columns.text(3, row),
            city: columns.text(4, row),
            state: columns.text(5, row),
            date_time: columns.time(6, row),
            extra: columns.text(7, row),
        }
    }
}

impl Auction {
    fn read(columns: &Columns<'_>, row: usize) -> Self {
        Self {
            id: columns.number(0, row),
            item_name: columns.text(1, row),
            description: columns.text(2, row),
            initial_bid: columns.number(3, row),
            reserve: columns.number(4, row),
            date_time: columns.time(5, row),
            expires: columns.time(6, row),
            seller: columns.number(7, row),
            category: columns.number(8, row),
            extra: columns.text(9, row),
        }
    }
}

impl Bid {
    fn read(columns: &Columns<'_>, row: usize) -> Self {
        Self {
            auction: columns.number(0, row),
            bidder: columns.number(1, row),
            price: columns.number(2, row),
            channel: columns.text(3, row),
            url: columns.text(4, row),
            date_time: columns.time(5, row),
            extra: columns.text(6, row),
            p_time: columns.time(7, row),
        }
    }
}
