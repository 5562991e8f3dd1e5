//! Alluvium's storage on other machines.
//!
//! A [`JournalServer`] keeps journals in a directory, by their names. A [`RemoteJournal`] is one of them, as its writer has it: a
//! [`Journal`](alluvium_storage::Journal) that passes the same tests as those in files. [`JournalPlace`] names it before it is opened.
//!
//! ```text
//!  commit ─▶ queue of the writer ─▶ group ─▶ gRPC ─▶ queue of the server ─▶ segment, fsync
//!            (many threads)                          (a FileJournal)
//! ```
//!
//! Each opening of a journal takes the next *term*, which the server has on its disk before it answers. A writer of an earlier term is
//! refused from then on, and told so: at most one process writes, and it is the last that asked to. Others may follow: they get records once
//! these are durable.
//!
//! Read the files in this order:
//!
//! - [`messages`]: what is sent, and [`refusal`]: what cannot be done by sending it again;
//! - [`mod@connection`]: addresses, certificates and encrypted connections;
//! - [`server`]: the journals of a directory, and who may write to them;
//! - [`client`]: the twin of a journal in a process, which survives lost connections and restarts of the server.
//!
//! # Known limitations
//!
//! Whoever has a certificate of the authority, or is a process of the same machine if connections are not encrypted, may open any journal
//! of a server.

pub mod client;
pub mod connection;
mod messages;
mod refusal;
pub mod server;

pub use client::{JournalPlace, RemoteJournal};
pub use connection::tls::{Identity, Unusable};
pub use server::{JournalServer, Running};
