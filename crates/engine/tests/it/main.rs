//! The engine as its users meet it.

mod copy;
mod definitions;
mod judge;
mod poison;
mod sessions;
mod sharing;
mod streams;
mod subscriptions;
mod support;
mod transactions;
