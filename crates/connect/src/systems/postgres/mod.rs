//! Tables of Postgres: read without a gap, as a snapshot and the changes that were committed after it, and written exactly once.
//!
//! ```text
//! CREATE_REPLICATION_SLOT ─► snapshot (COPY, one transaction) ─► START_REPLICATION ─► transactions ─► feedback
//!            L0                        as of L0                          L0            L1, L2, …     durable here
//! ```
//!
//! [`Postgres`] is the transport that tables name, and [`Settings`] are its options. A [`connection`] speaks the protocol, and [`upstream`]
//! asks what there is: a publication, a table, a slot. A [`session`] reads a snapshot and a slot, whose messages are those of [`pgoutput`];
//! [`rows`] turns texts into the columns of a table, and [`reader`] hands them on, over one connection after the other.
//!
//! A view is kept in a table by its primary key: a [`writer`] makes the changes of epochs in one transaction, with a row of the table
//! `alluvium_progress` that names the last of them.
//!
//! - The snapshot is one transaction, and so is each one of the database: whoever reads a table sees all of one or nothing. Those that
//!   have arrived together may be one epoch.
//! - A slot cannot be read twice: rows are recorded, with the [`Position`] after them. The database is told of a position, and forgets what
//!   comes before it, once it is durable here.
//! - A connection that is lost is made again, for ever. What waiting does not mend ends the table with a sentence.
//! - The password is in no message, and in no [`Debug`](std::fmt::Debug).

mod connection;
mod delivery;
mod failure;
mod pgoutput;
mod position;
mod reader;
mod rows;
mod session;
mod settings;
mod socket;
mod spelling;
mod transport;
mod upstream;
mod writer;

pub use position::Position;
pub use settings::Settings;
pub use transport::Postgres;
