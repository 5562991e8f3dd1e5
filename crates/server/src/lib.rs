//! A server: one [engine](alluvium::Engine) for many clients, who speak the wire protocol of Postgres, HTTP or, with the feature `flight`, Flight SQL.
//!
//! [`Server`] sets up what is served, and where; [`Running`] is one that serves. Inside, [`pg`] is the door for Postgres's clients, [`http`] that for HTTP's, `flight` that for Flight SQL's. What
//! a client of any protocol has is its [`client`], whose calls run on the threads of the [`pool`], and which others end by its [`cancel`].
//! [`registry`] knows all that are connected, within their [`limits`], and [`shared`] is what they share.
//! [`tls`] encrypts connections, [`password`] has verifiers, [`basic`] checks names with passwords, [`identity`] is who a client has turned out to be, [`lines`] are rows of texts, [`guesses`] slows down who
//! guesses, [`traffic`] counts what clients do, and [`log`] tells all of it.

#![warn(unreachable_pub, clippy::print_stderr, clippy::print_stdout)]

mod basic;
mod cancel;
mod catalog;
mod client;
#[cfg(feature = "flight")]
mod flight;
mod guesses;
mod http;
mod identity;
mod limits;
mod lines;
mod log;
mod password;
mod pg;
mod pool;
mod registry;
mod server;
mod shared;
mod tls;
mod traffic;

pub use catalog::with_catalog;
pub use http::{NoOrigin, Origin};
pub use limits::Limits;
pub use password::password_verifier;
pub use server::{Error, Running, Server};
pub use tls::{Tls, Unusable};
