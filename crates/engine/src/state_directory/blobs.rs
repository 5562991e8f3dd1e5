//! Reading the blobs of checkpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alluvium_storage::{Blob, BlobSlice, LocalStorage, Storage};
use alluvium_trace::memory::MemoryBudget;
use alluvium_trace::{Batch, Epoch};

use super::Finding;
use crate::durable::checkpoint::{Checkpoint, SavedBatch};

/// The batches that checkpoints name: of each blob the ranges that are batches.
#[derive(Debug, Default)]
pub(super) struct NamedBatches {
    blobs: BTreeMap<String, BTreeSet<(u64, u64)>>,
}

/// The findings about blobs.
#[derive(Debug, Default)]
pub(super) struct ReadBlobs {
    pub(super) batches: usize,
    pub(super) pages: u64,
    pub(super) bytes: u64,
    pub(super) findings: Vec<Finding>,
    /// The batches that are damaged or missing.
    damaged: BTreeSet<(String, (u64, u64))>,
}

/// All batches of a checkpoint.
pub(super) fn batches(checkpoint: &Checkpoint) -> impl Iterator<Item = &SavedBatch> {
    let shards = checkpoint.dataflows.iter().flat_map(|dataflow| &dataflow.shards);
    shards.flat_map(|shard| &shard.states).flat_map(|state| &state.batches)
}

/// The batches of a checkpoint, each with the name of its blob; `None` if there is none of its number.
fn named(checkpoint: &Checkpoint) -> impl Iterator<Item = (Option<&String>, (u64, u64))> {
    batches(checkpoint).map(|batch| (checkpoint.blobs.get(batch.blob as usize), batch.range))
}

impl NamedBatches {
    /// Adds those of a checkpoint. False if one is in a blob that the checkpoint does not name.
    pub(super) fn add(&mut self, checkpoint: &Checkpoint) -> bool {
        for name in &checkpoint.blobs {
            self.blobs.entry(name.clone()).or_default();
        }
        let mut all = true;
        for (blob, range) in named(checkpoint) {
            match blob.and_then(|blob| self.blobs.get_mut(blob)) {
                Some(ranges) => drop(ranges.insert(range)),
                None => all = false,
            }
        }
        all
    }

    /// Whether a checkpoint names a blob.
    pub(super) fn has(&self, blob: &str) -> bool {
        self.blobs.contains_key(blob)
    }

    /// How many blobs there are.
    pub(super) fn len(&self) -> usize {
        self.blobs.len()
    }

    /// Reads every page of all of them.
    pub(super) fn read(&self, storage: &LocalStorage) -> ReadBlobs {
        let mut read = ReadBlobs::default();
        for (name, ranges) in &self.blobs {
            let place = storage.directory().join(name).display().to_string();
            match storage.open(name) {
                Ok(blob) => ranges.iter().for_each(|range| read.batch(&blob, &place, *range)),
                Err(error) => {
                    read.findings.push(Finding::of_storage(&error, &place));
                    read.damaged.extend(ranges.iter().map(|range| (name.clone(), *range)));
                }
            }
        }
        read
    }
}

impl ReadBlobs {
    fn batch(&mut self, blob: &Arc<dyn Blob>, place: &str, (start, end): (u64, u64)) {
        let before = self.findings.len();
        let slice = BlobSlice::new(blob.clone(), start..end).map(Arc::new);
        match slice {
            Err(error) => self.findings.push(Finding::of_storage(&error, place)),
            Ok(slice) => match Batch::<Epoch>::open(slice, &MemoryBudget::unlimited()) {
                Err(error) => self.findings.push(Finding::of_file(&error, place)),
                Ok(batch) => {
                    self.batches += 1;
                    self.pages += batch.pages() as u64;
                    let damaged = batch.verify();
                    self.findings.extend(damaged.iter().map(|e| Finding::of_file(e, place)));
                }
            },
        }
        self.bytes += end - start.min(end);
        if self.findings.len() > before {
            self.damaged.insert((blob.name().to_owned(), (start, end)));
        }
    }

    /// Whether all that a checkpoint names is there and whole.
    pub(super) fn has_all(&self, checkpoint: &Checkpoint) -> bool {
        named(checkpoint).all(|(blob, range)| {
            blob.is_some_and(|blob| !self.damaged.contains(&(blob.clone(), range)))
        })
    }
}
