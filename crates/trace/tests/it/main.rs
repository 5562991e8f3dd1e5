//! Tests of state against one reference: a sorted map from key, value and time to weight.

#![allow(missing_docs, clippy::unwrap_used)]

mod batch;
mod buffer;
mod cursor;
mod cursors;
mod merge;
mod nothing;
mod page;
mod reference;
mod spine;
