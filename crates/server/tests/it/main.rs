//! The server as its clients see it.

mod cancel;
mod catalog;
mod connections;
mod copied;
mod extended;
mod malformed;
mod psql;
mod recorded;
mod served;
mod simple;
mod subscribe;
mod transactions;
