//! The door for clients of HTTP.
//!
//! ```text
//! connection ─► guard: host, origin, who ─► route ─► caller ─► pool ─► Session, Rows        a session for each request
//!   (task)                                    │                          │
//!                                             ▼                          ▼
//!                                  problem, or answer ◄──── encoder ◄── results, a chunk at a time
//! ```
//!
//! - [`listener`] accepts connections and gives them to hyper; [`stalled`] ends those whose peer takes nothing. A [`connection`] counts
//!   as a client once a request has shown who it is.
//! - [`guard`] lets requests pass that are for this [host and from a page that may](origin), from somebody whom [`authenticate`] knows by a
//!   [`token`]. [`routes`] says who answers what, and [`problem`] is how errors are answered.
//! - [`sql`] runs statements, [`relations`] reads the rows of one, [`mod@insert`] and [`row`] write them, [`changes`] streams what becomes of
//!   them, and [`pages`] are about the server, with those of browsers.
//! - [`answer`] sends what [`results`] pulls and [`encoder`] encodes. A body with rows is a [`spool`] before a statement reads it, and has
//!   its effect once by its [key](keys).

mod answer;
mod arrow_stream;
mod authenticate;
mod body;
mod caller;
mod changes;
mod connection;
mod encoder;
mod guard;
mod insert;
mod keys;
mod listener;
mod media;
mod origin;
mod pages;
mod problem;
mod relation;
mod relations;
mod request;
mod results;
mod routes;
mod row;
mod service;
mod settings;
mod spool;
mod sql;
mod stalled;
mod token;
mod tokens;

pub use self::origin::{NoOrigin, Origin};
pub(crate) use self::settings::{Served, Settings};
#[cfg(feature = "flight")]
pub(crate) use self::{
    insert::fitting, relation::quoted, results::rows_of, stalled::Stalled, token::Secret,
};
