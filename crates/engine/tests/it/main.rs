//! The engine as its users meet it.

mod copy;
mod definitions;
mod now;
mod parameters;
mod poison;
mod sessions;
mod sharing;
mod streams;
mod subscriptions;
mod support;
mod time_windows;
mod transactions;
