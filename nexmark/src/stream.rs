//! The three streams of the benchmark, and their columns.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

/// A stream of events of one kind, which is a table of the same name in SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Sellers and bidders.
    Person,
    /// Auctions of items.
    Auction,
    /// Bids on auctions.
    Bid,
}

/// The columns of the streams as generated. A bid gets another column, the time of its arrival, when it is
/// inserted.
static SCHEMAS: LazyLock<[SchemaRef; 3]> = LazyLock::new(|| {
    let number = |name: &str| Field::new(name, DataType::Int64, false);
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let person = vec![
        number("id"),
        text("name"),
        text("email_address"),
        text("credit_card"),
        text("city"),
        text("state"),
        instant("date_time"),
        text("extra"),
    ];
    let auction = vec![
        number("id"),
        text("item_name"),
        text("description"),
        number("initial_bid"),
        number("reserve"),
        instant("date_time"),
        instant("expires"),
        number("seller"),
        number("category"),
        text("extra"),
    ];
    let bid = vec![
        number("auction"),
        number("bidder"),
        number("price"),
        text("channel"),
        text("url"),
        instant("date_time"),
        text("extra"),
    ];
    [person, auction, bid].map(|fields| Arc::new(Schema::new(fields)))
});

/// The columns of the table of bids.
static ARRIVED: LazyLock<SchemaRef> = LazyLock::new(|| {
    let mut fields = Stream::Bid.schema().fields().to_vec();
    fields.push(Arc::new(instant("p_time")));
    Arc::new(Schema::new(fields))
});

fn instant(name: &str) -> Field {
    Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, None), false)
}

impl Stream {
    /// All streams.
    pub const ALL: [Self; 3] = [Self::Person, Self::Auction, Self::Bid];

    /// The name of its table and of its files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Auction => "auction",
            Self::Bid => "bid",
        }
    }

    /// How many of the first `events` events belong to it: of every fifty, the first is a person, three are
    /// auctions, and the others are bids.
    pub fn rows(self, events: u64) -> u64 {
        let (first, share) = match self {
            Self::Person => (0, 1),
            Self::Auction => (1, 3),
            Self::Bid => (4, 46),
        };
        events / 50 * share + (events % 50).saturating_sub(first).min(share)
    }

    /// The columns of its events.
    pub fn schema(self) -> SchemaRef {
        SCHEMAS[self as usize].clone()
    }

    /// The columns of its table.
    pub fn table_schema(self) -> SchemaRef {
        match self {
            Self::Person | Self::Auction => self.schema(),
            Self::Bid => ARRIVED.clone(),
        }
    }
}
