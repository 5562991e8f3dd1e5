//! Hostile input: statements and files that are meant to do harm, to an engine that must survive them.
//!
//! A *case* is a number in the sequence for a seed: a statement mutated from the SQL files ([`mutation`]), one that is
//! generated deep, wide or long ([`deep`], [`wide`]), a damaged file ([`damage`] of [`valid`] files, and files that are
//! [`monstrous`]) with the statements that read it, or [`calls`] of the library. An engine may answer it or refuse it.
//! Anything else is a [`finding`].
//!
//! ```text
//!   seed, number ──► case ──► trial: an engine with 32 MiB ──► findings
//!                              ▲ in a child process, that the parent watches and starts again
//! ```
//!
//! In reading order: [`case`] says what a case is, [`statements`], [`files`] and [`calls`] number them, [`trial`] runs one,
//! [`child`] many, and [`watch`] watches over the process that does. Both measure time with a [`clock`] that a busy machine
//! does not change. Cases of a round share an engine.

mod calls;
mod case;
mod child;
mod clock;
mod corpus;
mod damage;
mod deep;
mod files;
mod finding;
mod memory;
mod monstrous;
mod mutation;
mod statements;
mod summary;
mod tokens;
mod trial;
mod valid;
mod watch;
mod wide;

pub use case::{Kind, Run, show};
pub use child::{child, here};
pub use finding::{Fault, Finding};
pub use summary::Summary;
pub use watch::watch;
