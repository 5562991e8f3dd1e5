//! The door for Postgres's clients: its wire protocol, version 3.
//!
//! [`listener`] accepts connections. Each is a [`wire`] of messages, whose [`frame`]s are checked before they are decoded. [`startup`] encrypts
//! the connection if the client wishes it, finds out by [`authentication`] who the client is, and gives it a session, and a [`connection`] answers its messages: texts of statements in [`simple`], statements that are prepared in
//! [`extended`], which keeps them and their portals as [`statement`] has them, within limits, as what is [`kept`]; those that it has prepared [lately](recent) it need not prepare again. [`control`] begins and ends transactions,
//! [`deallocation`] removes prepared statements. [`answers`] makes messages of outcomes, [`results`] of rows, by the encoders of [`types`] or of an [`arrow_statement`], [`completion`] the last message of a statement, [`failure`]
//! those of errors. [`subscription`] sends changes, [`fetch`] those of a cursor, and [`listening`] tells that there are some. [`copy`] takes and sends rows as data, by its [options](copy_options). [`parameters`] are what a client is told of its session.

mod answers;
mod arrow_statement;
mod authentication;
mod completion;
mod connection;
mod control;
mod copy;
mod copy_options;
mod deallocation;
mod extended;
mod failure;
mod fetch;
mod frame;
mod kept;
pub(crate) mod listener;
mod listening;
mod parameters;
mod recent;
mod results;
mod simple;
mod startup;
mod statement;
mod subscription;
mod types;
mod wire;

pub(crate) use self::listening::Channels;
pub(crate) use self::parameters::SERVER_VERSION;
