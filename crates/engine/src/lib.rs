//! Alluvium: an embeddable, incremental SQL engine whose views are always exactly right.
//!
//! An [`Engine`] holds tables and views. Programs change tables in SQL or with Arrow batches; every
//! transaction becomes an *epoch*, and once an epoch is complete every view is what its query would answer
//! over the tables as they then are. Keeping it so takes work in proportion to the change.
//!
//! ```
//! use std::sync::Arc;
//! use alluvium::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
//! use alluvium::arrow::datatypes::Int64Type;
//!
//! let db = alluvium::Engine::builder().workers(2).open_in_memory()?;
//! db.execute(
//!     "CREATE TABLE bid (auction BIGINT, price BIGINT);
//!      CREATE MATERIALIZED VIEW totals AS SELECT auction, SUM(price) AS total FROM bid GROUP BY auction",
//! )?;
//! let mut changes = db.subscribe("totals")?; // first what there is, then one change per epoch
//! assert_eq!(changes.next().unwrap()?.rows.num_rows(), 0);
//!
//! let auctions: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 2]));
//! let prices: ArrayRef = Arc::new(Int64Array::from(vec![10, 20, 5]));
//! let mut tx = db.begin()?;
//! tx.insert("bid", RecordBatch::try_from_iter([("auction", auctions), ("price", prices)])?)?;
//! let epoch = tx.commit()?; // dropping tx instead rolls it back
//! db.wait(epoch)?; // reads your writes
//!
//! let rows = db.query("SELECT total FROM totals WHERE auction = 1")?;
//! assert_eq!(rows[0].column(0).as_primitive::<Int64Type>().value(0), 30);
//! let change = changes.next().unwrap()?;
//! assert_eq!((change.epoch, change.rows.num_rows(), &change.weights[..]), (epoch, 2, &[1, 1][..]));
//! # Ok::<(), alluvium::Error>(())
//! ```
//!
//! Calls block, and handles can be shared by threads. [`Session`] is a client that speaks SQL statement by
//! statement, [`Transaction`] one that writes batches, [`View`] one that reads by key; a [`Source`] brings rows in from files, and a [`Sink`]
//! takes them out.
//!
//! State goes to temporary files where it is more than the [memory it may take](Builder::memory). Nothing is kept when the
//! engine ends, unless it has a [state directory](Builder::state). A panic inside of a view, or a file of its that cannot be
//! read or written, stops that view with [`Error::Failed`]; elsewhere it ends the engine with [`Error::Poisoned`].
//!
//! Inside, `builder` starts an `instance`, which has four parts: `definitions` (over the `catalog`), the `writer`, the reader
//! (`query`) and `connectors` (`source`s and `sink`s). A `session` runs statements on them. A `transaction` stages writes, the
//! `sequencer` makes epochs of them, `durable` records these (`state_directory` checks and copies what it has written), `worker`s run the dataflows, and queries and `subscription`s
//! read their results. `poison` ends the engine after a panic.

mod authorizer;
mod available;
mod builder;
mod catalog;
mod changes;
mod clock;
mod connectors;
mod definitions;
mod durable;
mod engine;
mod error;
mod fault;
mod file_access;
pub mod functions;
mod history;
mod instance;
mod interrupt;
mod log;
pub mod name;
mod poison;
mod query;
mod roles;
mod sequencer;
mod sequences;
mod session;
mod settings;
mod sink;
mod source;
mod state;
pub mod state_directory;
mod statement;
mod subscription;
mod transaction;
pub mod unstable;
mod value;
mod view;
mod wait;
mod worker;
mod writer;

pub use alluvium_sql::error::Position;
pub use arrow;

pub use crate::authorizer::{Access, Action, Authorizer, Object};
pub use crate::builder::Builder;
pub use crate::catalog::{FunctionInfo, IndexInfo, RelationInfo, RelationKind};
pub use crate::durable::flusher::Durability;
pub use crate::engine::Engine;
pub use crate::error::{Conflict, Error, Result, SqlState};
pub use crate::file_access::FileAccess;
pub use crate::interrupt::Interrupt;
pub use crate::query::{Metric, MetricFamily, MetricKind, MetricValue, Rows};
pub use crate::roles::{Role, Roles};
pub use crate::session::{Description, Outcome, Prepared, Session};
pub use crate::sink::{
    Delivery, DeliveryRequest, DeliveryWriter, OutputMode, Sink, SinkRequest, SinkWriter,
    Visibility,
};
pub use crate::source::{
    Absent, FilePosition, Inferred, Live, Portion, Progress, Refusal, Secret, Source, SourceFiles,
    SourcePosition, SourceProgress, SourceReader, SourceRequest, SourceState, System, Transport,
    TransportConnector, TransportRequest,
};
pub use crate::state::State;
pub use crate::state_directory::StateDirectory;
pub use crate::statement::{Statement, Statements, parse};
pub use crate::subscription::{Change, Policy, SubscribeOptions, Subscription};
pub use crate::transaction::Transaction;
pub use crate::value::Value;
pub use crate::view::View;

/// The README's program, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
