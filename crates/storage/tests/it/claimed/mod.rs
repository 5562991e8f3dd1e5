//! Tests of blobs that manifests claim. The behaviour of all storage is tested with the twins.

mod claims;
mod crashes;
mod runs;
mod state;

use std::sync::Arc;

use alluvium_storage::{ClaimedStorage, Storage};

/// A run over an inner storage, as a process has it.
fn open(inner: &Arc<dyn Storage>) -> Arc<ClaimedStorage> {
    Arc::new(ClaimedStorage::open(Arc::clone(inner)).unwrap())
}

/// Names as a claim takes them.
fn named(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Claims blobs of the first run by the names that were given to create them.
fn claim_first(storage: &ClaimedStorage, manifest: u64, names: &[&str]) {
    storage.claim(manifest, names.iter().map(|name| first(name)));
}

/// The name of a blob that the first run has created.
fn first(name: &str) -> String {
    format!("{name}.1.alluvium")
}
