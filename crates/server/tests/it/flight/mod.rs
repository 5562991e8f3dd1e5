//! The server as clients of Flight SQL see it.

mod client;
mod faults;
mod ingested;
mod listed;
mod prepared;
mod sessions;
mod statements;
mod transactions;
