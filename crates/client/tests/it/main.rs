//! The client against a server in the same process.

mod cancelled;
mod connected;
mod copied;
mod encrypted;
mod example;
mod served;
mod subscribed;
mod transactions;
mod typed;
mod values;
