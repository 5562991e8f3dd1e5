//! The server as its clients see it.

mod cancel;
mod catalog;
mod connections;
mod copied;
mod extended;
mod http;
mod limited;
mod login;
mod malformed;
mod oids;
mod psql;
mod recorded;
mod secure;
mod served;
mod simple;
mod subscribe;
mod tls;
mod transactions;
