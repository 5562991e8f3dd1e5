//! The rows of the tables. Times are microseconds since 1970.

use feldera_macros::IsNone;
use rkyv::{Archive, Deserialize, Serialize};
use size_of::SizeOf;

macro_rules! rows {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
            #[derive(SizeOf, Archive, Serialize, Deserialize, IsNone)]
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
