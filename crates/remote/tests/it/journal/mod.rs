//! The tests of the behaviour of every journal, on one of a server.

#[path = "../../../../storage/tests/it/journal/concurrency.rs"]
mod concurrency;
#[path = "../../../../storage/tests/it/journal/conformance.rs"]
mod conformance;
#[path = "../../../../storage/tests/it/journal/records.rs"]
pub mod records;
pub mod twins;
