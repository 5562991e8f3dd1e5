//! The server as its clients see it.

mod arrow_statements;
mod cancel;
mod catalog;
mod catalog_roles;
mod connections;
mod copied;
mod cursors;
mod extended;
#[cfg(feature = "flight")]
mod flight;
mod http;
mod limited;
mod listen;
mod login;
mod malformed;
mod oids;
mod psql;
mod recorded;
mod secure;
mod served;
mod sessions;
mod simple;
mod subscribe;
mod subscribe_psql;
mod tls;
mod transactions;
