//! The engine as its users meet it.

#![allow(missing_docs)]

mod copy;
mod definitions;
mod judge;
mod poison;
mod sessions;
mod subscriptions;
mod support;
mod transactions;
