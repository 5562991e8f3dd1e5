//! Alluvium: an embeddable, incremental SQL engine whose views are always exactly right.
mod builder;
mod catalog;
mod engine;
mod error;
mod instance;
mod poison;
mod query;
mod sequencer;
mod session;
mod source;
mod subscription;
mod transaction;
mod worker;

pub use alluvium_sql::error::Position;
pub use alluvium_sql::statement::{Statement, StatementKind, Statements, parse};
pub use arrow;

pub use crate::builder::Builder;
pub use crate::catalog::{RelationInfo, RelationKind};
pub use crate::engine::Engine;
pub use crate::error::{Error, Result};
pub use crate::session::{Outcome, Session};
pub use crate::source::{Portion, Refusal, Source, SourceReader, SourceRequest};
pub use crate::subscription::{Change, Subscription};
pub use crate::transaction::Transaction;
