//! What a writer and a server send each other.
//!
//! They are Protocol Buffers, written here as the types that prost would generate: the generator needs a compiler of its own at each build, and
//! shares crates with the procedural macros of everything else, which would be built again. As a `.proto` file:
//!
//! ```text
//! service Journal {
//!   // The writer. One answer for each Open, Settle and Release, in their order.
//!   rpc Write(stream ToServer) returns (stream ToWriter);
//!   rpc Replay(From) returns (stream Records);
//!   // A follower: what it needs is kept for it, and what comes is sent to it.
//!   rpc Attend(Attend) returns (Attending);
//!   rpc Follow(From) returns (stream Records);
//! }
//! message ToServer { oneof request { Open open = 1; Piece piece = 2; Settle settle = 3; Release release = 4; } }
//! message ToWriter { oneof answer { Opened opened = 1; Settled settled = 2; Released released = 3; } }
//! ```

use alluvium_storage::journal::Group;
use bytes::Bytes;
use prost::{Message, Oneof};

/// The path of the call of a writer.
pub(crate) const WRITE: &str = "/alluvium.journal.v1.Journal/Write";

/// The path of the call that replays.
pub(crate) const REPLAY: &str = "/alluvium.journal.v1.Journal/Replay";

/// The path of the call that says what a follower needs.
pub(crate) const ATTEND: &str = "/alluvium.journal.v1.Journal/Attend";

/// The path of the call that sends records as they become durable.
pub(crate) const FOLLOW: &str = "/alluvium.journal.v1.Journal/Follow";

/// The most bytes of records in a message.
pub(crate) const PIECE: usize = 1 << 20;

/// The most bytes of a message: a piece and what is around it.
pub(crate) const MESSAGE: usize = PIECE + 1024;

/// The most bytes of a group of records.
pub(crate) const GROUP: u64 = 1 << 30;

/// A message of a writer.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ToServer {
    #[prost(oneof = "Request", tags = "1, 2, 3, 4")]
    pub(crate) request: Option<Request>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Request {
    #[prost(message, tag = "1")]
    Open(Open),
    #[prost(message, tag = "2")]
    Piece(Piece),
    #[prost(message, tag = "3")]
    Settle(Settle),
    #[prost(message, tag = "4")]
    Release(Release),
}

/// Opens a journal: the first message of a writer.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Open {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    /// The journal that the writer expects under this name. Without it one that does not exist is made.
    #[prost(string, optional, tag = "2")]
    pub(crate) identity: Option<String>,
    /// The records that the writer expects.
    #[prost(message, optional, tag = "4")]
    pub(crate) records: Option<Range>,
    /// The term of a writer whose connection was lost. Without it the next term is taken.
    #[prost(uint64, optional, tag = "3")]
    pub(crate) term: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Range {
    #[prost(uint64, tag = "1")]
    pub(crate) start: u64,
    /// The position after the last one.
    #[prost(uint64, tag = "2")]
    pub(crate) end: u64,
}

/// A part of a group of records, which come in order. The first one of a group has its header.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Piece {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<Header>,
    /// Records as in [`Group::records`](alluvium_storage::journal::Group::records).
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) bytes: Bytes,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Header {
    /// The position of the first record.
    #[prost(uint64, tag = "1")]
    pub(crate) first: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) count: u64,
    /// The bytes of all pieces.
    #[prost(uint64, tag = "3")]
    pub(crate) length: u64,
    /// The seed of the checksums of records.
    #[prost(fixed64, tag = "4")]
    pub(crate) salt: u64,
}

/// Asks for an answer once all records are durable, or only written.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Settle {
    #[prost(bool, tag = "1")]
    pub(crate) durable: bool,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Release {
    #[prost(uint64, tag = "1")]
    pub(crate) before: u64,
}

/// A message to a writer.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ToWriter {
    #[prost(oneof = "Answer", tags = "1, 2, 3")]
    pub(crate) answer: Option<Answer>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Answer {
    #[prost(message, tag = "1")]
    Opened(Opened),
    #[prost(message, tag = "2")]
    Settled(Settled),
    #[prost(message, tag = "3")]
    Released(Released),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Opened {
    #[prost(string, tag = "1")]
    pub(crate) identity: String,
    #[prost(uint64, tag = "2")]
    pub(crate) term: u64,
    /// The positions of the records it has.
    #[prost(uint64, tag = "3")]
    pub(crate) start: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) end: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Settled {
    /// The position after the last record.
    #[prost(uint64, tag = "1")]
    pub(crate) end: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Released {
    /// The position of the first record that is left.
    #[prost(uint64, tag = "1")]
    pub(crate) start: u64,
}

/// Asks for the durable records of a journal.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct From {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) identity: String,
    #[prost(uint64, tag = "3")]
    pub(crate) first: u64,
    /// Where to end, if the journal has more. Not for those that follow.
    #[prost(uint64, tag = "4")]
    pub(crate) end: u64,
}

/// Says what a follower needs of a journal.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Attend {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    /// The journal that the follower expects under this name.
    #[prost(string, optional, tag = "2")]
    pub(crate) identity: Option<String>,
    /// The records that the follower expects.
    #[prost(message, optional, tag = "3")]
    pub(crate) records: Option<Range>,
    #[prost(string, tag = "4")]
    pub(crate) follower: String,
    /// The first record that it needs. Without it the follower follows no more.
    #[prost(uint64, optional, tag = "5")]
    pub(crate) needed: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Attending {
    #[prost(string, tag = "1")]
    pub(crate) identity: String,
    /// The position of the first record that the journal has.
    #[prost(uint64, tag = "2")]
    pub(crate) start: u64,
    #[prost(message, optional, tag = "3")]
    pub(crate) news: Option<News>,
}

/// How far a journal is, for those who follow.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct News {
    /// The term of the last writer.
    #[prost(uint64, tag = "1")]
    pub(crate) term: u64,
    /// The position after the last durable record.
    #[prost(uint64, tag = "2")]
    pub(crate) end: u64,
    /// The writer needs no record before this position.
    #[prost(uint64, tag = "3")]
    pub(crate) released: u64,
}

/// Durable records, in pieces as those of a writer.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Records {
    #[prost(message, optional, tag = "1")]
    pub(crate) piece: Option<Piece>,
    /// For those who follow. Then there may be no piece.
    #[prost(message, optional, tag = "2")]
    pub(crate) news: Option<News>,
}

/// The header of a group of records whose checksums have no salt, and the bytes of these.
pub(crate) fn framed(group: &Group) -> (Header, Bytes) {
    let bytes = Bytes::copy_from_slice(group.records());
    let (first, count) = (group.first(), group.end() - group.first());
    (Header { first, count, length: bytes.len() as u64, salt: 0 }, bytes)
}

/// Cuts the bytes of a group into pieces.
pub(crate) fn pieces(header: Header, mut bytes: Bytes) -> impl Iterator<Item = Piece> {
    let mut header = Some(header);
    std::iter::from_fn(move || {
        if bytes.is_empty() && header.is_none() {
            return None;
        }
        let piece = bytes.split_to(bytes.len().min(PIECE));
        Some(Piece { header: header.take(), bytes: piece })
    })
}

/// Puts the pieces of groups together again.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    header: Option<Header>,
    bytes: Vec<u8>,
}

impl Pieces {
    /// Adds a piece, and returns the group if it is whole.
    pub(crate) fn add(&mut self, piece: Piece) -> Result<Option<(Header, Bytes)>, &'static str> {
        match (piece.header, self.header) {
            (Some(header), None) => self.header = Some(header),
            (None, Some(_)) => {}
            (Some(_), Some(_)) => return Err("a group of records begins within another"),
            (None, None) => return Err("a piece has no group of records"),
        }
        let length = self.header.map_or(0, |header| header.length);
        let end = self.bytes.len() as u64 + piece.bytes.len() as u64;
        if length > GROUP {
            return Err("a group of records has more than 1 GiB");
        }
        if end > length {
            return Err("a group of records is longer than its header says");
        }
        // The most usual group is one piece.
        if self.bytes.is_empty() && end == length {
            return Ok(self.header.take().map(|header| (header, piece.bytes)));
        }
        self.bytes.extend_from_slice(&piece.bytes);
        if end < length {
            return Ok(None);
        }
        let bytes = std::mem::take(&mut self.bytes);
        Ok(self.header.take().map(|header| (header, bytes.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(length: usize) -> (Bytes, Vec<Piece>) {
        let bytes: Bytes = (0..length).map(|at| (at % 251) as u8).collect();
        let header = Header { first: 5, count: 1, length: length as u64, salt: 9 };
        (bytes.clone(), pieces(header, bytes).collect())
    }

    #[test]
    fn a_group_of_any_length_is_the_same_in_pieces() {
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 7] {
            let (bytes, pieces) = cut(length);
            assert_eq!(pieces.len(), length.div_ceil(PIECE).max(1), "{length} bytes");
            let mut together = Pieces::default();
            // Not `assert_eq`, which would print megabytes.
            for (number, piece) in pieces.iter().enumerate() {
                let whole = together.add(piece.clone());
                let is_last = number + 1 == pieces.len();
                assert!(whole.is_ok_and(|whole| whole.is_some() == is_last));
            }
            let whole = pieces.into_iter().filter_map(|piece| together.add(piece).ok().flatten());
            assert!(whole.last().is_some_and(|(_, found)| found == bytes));
        }
    }

    #[test]
    fn pieces_that_do_not_follow_on_one_another_are_refused() {
        let (_, pieces) = cut(2 * PIECE);
        assert!(Pieces::default().add(pieces[1].clone()).is_err());
        let mut together = Pieces::default();
        assert!(together.add(pieces[0].clone()).is_ok());
        assert!(together.add(pieces[0].clone()).is_err());
        let long = Piece {
            header: Some(Header { length: 3, ..Header::default() }),
            bytes: Bytes::from_static(b"four"),
        };
        assert!(Pieces::default().add(long).is_err());
        let header = Header { length: GROUP + 1, ..Header::default() };
        assert!(
            Pieces::default().add(Piece { header: Some(header), bytes: Bytes::new() }).is_err()
        );
    }
}
