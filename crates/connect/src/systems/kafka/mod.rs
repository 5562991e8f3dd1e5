//! Topics of Kafka: read from positions that can be read again, and written exactly once.
//!
//! [`Settings`] are the options of a topic. A [`Reader`] reads all of its partitions, which it assigns to itself: no other
//! member of a group takes one away, so that a [`Position`], the offset of the next message of each partition, says all
//! there is to know. It gives [`Messages`](crate::decode::Messages) in portions. Messages of several partitions arrive in any order; a portion has
//! them in the order of their partitions and offsets, and [`Reader::again`] gives the same portion from its two ends.
//!
//! [`Kafka`] is the transport that tables name, and the delivery that views do.
//!
//! A [`Writer`] writes an epoch in a transaction, with a mark that names it. After a restart the mark tells which epoch the
//! topic has, and a writer that another one has replaced can no longer write.
//!
//! - Reading waits for brokers as long as it takes. What waiting does not mend, such as wrong credentials, ends it with a
//!   sentence.
//! - Only messages of committed transactions are read.
//! - Values of options that are secrets are in no message, and in no [`Debug`](std::fmt::Debug).

mod admin;
mod client;
mod dead_letters;
mod delivery;
mod partitions;
mod position;
mod reader;
mod settings;
mod start;
mod transport;
mod writer;

pub use position::Position;
pub use reader::{Limits, Reader};
pub use settings::Settings;
pub use start::{Gap, OnGap, Start};
pub use transport::Kafka;
pub use writer::Writer;
