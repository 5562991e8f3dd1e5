//! Blobs of a state that lasts: each is kept for as long as a manifest names it.
//!
//! # Design
//!
//! A blob has readers, of which the last deletes it ([`TemporaryBlob`](crate::TemporaryBlob)), and it may have *claims*, of
//! the manifests that name it. A blob that is deleted while it is claimed stays until its last claim is released. So
//! readers need not know of manifests, nor the publisher of manifests of readers.
//!
//! Callers number their blobs from 0 in every process. Therefore the blob that is created as `batch-3` gets the name
//! `batch-3.7.alluvium`, where 7 is the number of the *run*: one more than the highest in any name that is there when the
//! directory is opened. Files with names of another form are not ours and stay.
//!
//! The next run cleans up after the one before. It deletes the manifests that it does not retain, as a crash may
//! have brought back some whose blobs are gone; it claims what the others name, opens the blobs that it needs, and
//! then sweeps. Before that nothing of an earlier run is deleted.
//!
//! The names that a manifest claims are collected before the lock is taken, and those that it gives up are dropped after,
//! so a claim of many names does not hold up readers that delete. No lock is held while the inner storage works.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use crate::blob::Blob;
use crate::error::{Error, Result};
use crate::local::sealed;
use crate::name;
use crate::storage::{BlobWriter, Storage};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The end of the names of all blobs.
const SUFFIX: &str = ".alluvium";

/// Storage whose blobs last for as long as manifests name them. It has no other user.
///
/// [`create`](Storage::create) appends to the name, as the [chapter](self) says.
///
/// A blob that was deleted while it was claimed is gone for its users: they can neither delete it again nor claim it.
/// It can still be opened, for instance to copy it, until the last claim is released.
pub struct ClaimedStorage {
    inner: Arc<dyn Storage>,
    /// Follows the names that callers give.
    suffix: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The blobs that manifests name, by the number of the manifest: one set for each call.
    claims: BTreeMap<u64, Vec<HashSet<String>>>,
    /// Blobs that were deleted, and stay because they are claimed.
    unused: BTreeSet<String>,
    /// Blobs of earlier runs that have not been opened in this one.
    unopened: BTreeSet<String>,
    /// Whether unopened blobs are deleted when no manifest claims them.
    is_swept: bool,
}

impl ClaimedStorage {
    /// Begins a new run with the blobs that are there. All of them are kept until [`sweep`](ClaimedStorage::sweep).
    ///
    /// Unsealed blobs of killed processes must be gone: see [`LocalStorage::open_exclusive`].
    ///
    /// [`LocalStorage::open_exclusive`]: crate::LocalStorage::open_exclusive
    pub fn open(inner: Arc<dyn Storage>) -> Result<ClaimedStorage> {
        let (mut unopened, mut last) = (BTreeSet::new(), 0);
        for name in inner.list("")? {
            if let Some(run) = run(&name) {
                last = last.max(run);
                unopened.insert(name);
            }
        }
        let suffix = format!(".{}{SUFFIX}", last.saturating_add(1));
        let state = State { unopened, ..State::default() };
        Ok(ClaimedStorage { inner, suffix, state: Mutex::new(state) })
    }

    /// Whether a file of this name is a blob of such storage, sealed or not.
    pub fn is_own(file: &str) -> bool {
        run(sealed(file).unwrap_or(file)).is_some()
    }

    /// Claims blobs for a manifest: they stay until it is [released](ClaimedStorage::release), also if they are deleted. Several
    /// calls for one manifest add to each other.
    ///
    /// A manifest's blobs must be claimed before it is published, and those of all retained manifests before the first
    /// [`sweep`](ClaimedStorage::sweep). The caller must hold a claimed blob open or have another claim on it: one that its
    /// last user deletes at the same time may already be gone.
    pub fn claim(&self, manifest: u64, names: impl IntoIterator<Item = String>) {
        let names: HashSet<String> = names.into_iter().collect();
        self.locked().claims.entry(manifest).or_default().push(names);
    }

    /// Releases the claims of a manifest that was not published after all, and deletes the blobs that are neither claimed by
    /// another nor in use.
    ///
    /// If it is unknown whether it was published, it must stay claimed.
    ///
    /// # Errors
    ///
    /// That of the first blob that could not be deleted; the others are deleted all the same. The next call tries again.
    pub fn release(&self, manifest: u64) -> Result<()> {
        let released = self.locked().claims.remove(&manifest);
        drop(released);
        self.delete_unclaimed().map(drop)
    }

    /// Releases the claims of all manifests with lower numbers, which must be gone for good: after a crash they must not be
    /// back. Deletes the blobs that are neither claimed by others nor in use.
    ///
    /// # Errors
    ///
    /// As those of [`release`](ClaimedStorage::release).
    pub fn release_before(&self, manifest: u64) -> Result<()> {
        let released = {
            let claims = &mut self.locked().claims;
            let kept = claims.split_off(&manifest);
            std::mem::replace(claims, kept)
        };
        drop(released);
        self.delete_unclaimed().map(drop)
    }

    /// Deletes all blobs of earlier runs that no manifest claims and that have not been opened, and returns how many it has deleted.
    /// From now on those that are claimed are deleted when the last claim is released, unless they are opened before.
    /// One that is opened at the same time may be deleted.
    ///
    /// # Errors
    ///
    /// As those of [`release`](ClaimedStorage::release).
    pub fn sweep(&self) -> Result<usize> {
        self.locked().is_swept = true;
        self.delete_unclaimed()
    }

    fn delete_unclaimed(&self) -> Result<usize> {
        let (unused, unopened) = self.locked().take_unclaimed();
        let unused = self.delete_all(unused, |state| &mut state.unused);
        let unopened = self.delete_all(unopened, |state| &mut state.unopened);
        Ok(unused? + unopened?)
    }

    /// Deletes blobs, puts back the names of those that it cannot delete, and returns how many it has deleted.
    fn delete_all(
        &self,
        names: Vec<String>,
        taken_from: fn(&mut State) -> &mut BTreeSet<String>,
    ) -> Result<usize> {
        let (mut deleted, mut failure) = (0, Ok(()));
        for name in names {
            match self.inner.delete(&name) {
                Ok(()) => deleted += 1,
                Err(Error::Missing { .. }) => {}
                Err(error) => {
                    taken_from(&mut self.locked()).insert(name);
                    failure = failure.and(Err(error));
                }
            }
        }
        failure.map(|()| deleted)
    }

    /// The state, also after a panic: no change is ever half done.
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes the names of the blobs that can be deleted: unused ones, and unopened ones.
    fn take_unclaimed(&mut self) -> (Vec<String>, Vec<String>) {
        let State { claims, unused, unopened, is_swept } = self;
        let unused = unused.extract_if(.., |name| !is_claimed(claims, name)).collect();
        let unopened = match *is_swept {
            true => unopened.extract_if(.., |name| !is_claimed(claims, name)).collect(),
            false => Vec::new(),
        };
        (unused, unopened)
    }
}

fn is_claimed(claims: &BTreeMap<u64, Vec<HashSet<String>>>, name: &str) -> bool {
    claims.values().flatten().any(|names| names.contains(name))
}

/// The run that has created the blob of this name, if it is one of ours.
fn run(name: &str) -> Option<u64> {
    let (given, run) = name.strip_suffix(SUFFIX)?.rsplit_once('.')?;
    let is_ours = name::is_valid(given) && !run.starts_with('0');
    is_ours.then(|| run.parse().ok()).flatten()
}

/// The numbers of the manifests, without the names.
impl Debug for ClaimedStorage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let manifests: Vec<u64> = self.locked().claims.keys().copied().collect();
        f.debug_struct("ClaimedStorage")
            .field("inner", &self.inner)
            .field("suffix", &self.suffix)
            .field("manifests", &manifests)
            .finish_non_exhaustive()
    }
}

impl Storage for ClaimedStorage {
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>> {
        self.inner.create(&format!("{name}{}", self.suffix))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Blob>> {
        // Before it is opened, so that it is not deleted after.
        self.locked().unopened.remove(name);
        self.inner.open(name)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.inner.list(prefix)
    }

    fn delete(&self, name: &str) -> Result<()> {
        {
            let mut state = self.locked();
            if is_claimed(&state.claims, name) {
                return match state.unused.insert(name.to_owned()) {
                    true => Ok(()),
                    false => Err(Error::Missing { place: name.to_owned(), operation: "delete" }),
                };
            }
        }
        self.inner.delete(name)
    }

    fn barrier(&self, names: &[&str]) -> Result<()> {
        self.inner.barrier(names)
    }
}
