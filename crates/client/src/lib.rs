//! A client of Alluvium's server: a driver of Postgres's protocol, with results as Arrow, and streams of changes.
//!
//! ```no_run
//! # async fn example() -> alluvium_client::Result<()> {
//! use alluvium_client::{Client, SubscribeOptions};
//! use futures::TryStreamExt;
//!
//! let mut client = Client::connect("postgresql://127.0.0.1/alluvium").await?;
//! client.execute_batch(
//!     "CREATE TABLE bid (auction BIGINT, price BIGINT);
//!      CREATE MATERIALIZED VIEW best AS SELECT auction, MAX(price) AS price FROM bid GROUP BY auction",
//! ).await?;
//! client.execute("INSERT INTO bid VALUES ($1, $2)", &[&1_i64, &30_i64]).await?;
//! let rows = client.query("SELECT * FROM best WHERE price > $1", &[&10_i64]).await?.collect().await?;
//! assert_eq!(rows.num_rows(), 1);
//!
//! let mut changes = client.subscribe("best", SubscribeOptions::new()).await?;
//! let snapshot = changes.try_next().await?;
//! client.execute("INSERT INTO bid VALUES (1, 40)", &[]).await?;
//! let change = changes.try_next().await?;
//! # let _ = (snapshot, change);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Client`] is a connection. [`Address`] says how addresses look, and what is checked of a server's certificate. Values of parameters may be [`Parameter`]s of Arrow. Rows come as
//! [`Batches`], go into a table by [`CopyIn`], and are found by key by [`Lookup`]. A [`Subscription`] gives the changes of a view or a table, and survives its connection.
//!
//! The crate starts no runtime: its calls are made inside of tokio's.

#![warn(unreachable_pub, clippy::print_stderr, clippy::print_stdout)]

mod address;
mod batches;
mod client;
mod connection;
mod copy;
mod error;
mod link;
mod lookup;
mod name;
mod running;
mod session;
mod socket;
mod subscription;
mod tls;
mod transaction;
mod values;

pub use arrow;
pub use tokio_postgres::Statement;
pub use tokio_postgres::types::ToSql;

pub use self::address::Address;
pub use self::batches::Batches;
pub use self::client::Client;
pub use self::copy::CopyIn;
pub use self::error::{Error, Refusal, Result, RowError};
pub use self::lookup::Lookup;
pub use self::running::CancelToken;
pub use self::session::Parameters;
pub use self::subscription::{Change, SubscribeOptions, Subscription};
pub use self::transaction::Transaction;
pub use self::values::Parameter;
