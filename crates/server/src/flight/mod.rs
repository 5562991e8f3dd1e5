//! The door for clients of Flight SQL: rows as Arrow, over gRPC.
//!
//! ```text
//! connection ─► gate: who, by a token ─► door, service ─► session ─► pool ─► Session, Rows        a session for each login
//!   (task)                                                   │
//!                              stream ◄─ tickets ◄─ query    ├─► prepared, update, ingest ◄─ incoming
//!                                                            └─► metadata, options
//! ```
//!
//! - [`listener`] accepts connections. A [`connection`] is a stranger until a request over it has shown whose it is. [`gate`] lets requests
//!   pass before their messages are read, and checks logins.
//! - A [`session`] is one of the engine's, whose statements run one after the other, whatever connections its requests come over.
//!   [`sessions`] knows them by their tokens, and ends those that are idle. What belongs to one has a random [`id`].
//! - [`door`] and [`service`] dispatch calls, [`actions`] those that are Flight's own; [`calls`] has what they have in common. [`answer`] tells where rows are, [`status`] has errors.
//! - A [`query`] waits behind one of the [`tickets`] until its rows are read; [`stream`] sends them as the client reads.
//! - [`prepared`] statements run with [`parameters`]; [`update`] runs statements for their effect, and [`ingest`] inserts rows, into [`columns`] that it
//!   creates if need be. What is sent is decoded by [`incoming`], once it is [`sound`].
//! - [`metadata`] is what there is, [`options`] are the settings of a session.

mod actions;
mod answer;
mod calls;
mod columns;
mod connection;
mod door;
mod gate;
mod id;
mod incoming;
mod ingest;
mod listener;
mod metadata;
mod options;
mod parameters;
mod prepared;
mod query;
mod service;
mod session;
mod sessions;
mod settings;
mod sound;
mod status;
mod stream;
mod tickets;
mod update;

pub(crate) use self::settings::Settings;
