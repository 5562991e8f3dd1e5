//! The engine as its users meet it.

mod bank;
mod checkpoints;
mod copy;
mod deep;
mod definitions;
mod durable;
mod explosions;
mod failures;
mod interrupts;
mod large;
mod memory;
mod merges;
mod now;
mod parameters;
mod poison;
mod reach;
mod sessions;
mod sharing;
mod state;
mod streams;
mod subscriptions;
mod support;
mod time_windows;
mod transactions;
mod unchecked;
mod values;
