//! Manifests in files of a directory.
//!
//! # Design
//!
//! A manifest is written under a temporary name, synced, renamed to its number, and the directory is synced; then the file
//! `current`, which has its number and checksum, is replaced in the same way. `current` exists from the time when
//! the directory is first opened. So a directory with manifests and without it is damaged, and a manifest with a
//! higher number than it says was never published.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::disk::{Disk, LocalDisk};
use crate::error::{Error, Failure, Result};
use crate::manifests::format::{
    CURRENT, Pointer, VERSION, Wrong, encode_trailer, is_nascent, manifest_name, nascent_name,
    parse_manifest, parse_name,
};
use crate::manifests::{Manifest, Manifests, Published};

/// The largest manifest. A longer file is damaged: it is not read to memory.
const LARGEST: u64 = 1 << 32;

/// Manifests in files of a directory, which have no other writer. Files whose names are not those of its own are
/// ignored.
#[derive(Debug)]
pub struct FileManifests {
    disk: Arc<dyn Disk>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    current: Pointer,
    /// Set when it is unknown what is on the disk.
    failure: Option<Failure>,
}

impl FileManifests {
    /// Opens the manifests in a directory, which is created if it does not exist. The rest of an unfinished publication
    /// is deleted.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the file `current` is missing though there are manifests, or the manifest it names;
    /// [`Error::Corrupt`] and [`Error::Newer`] if either is damaged or of a later version. Nothing is changed then.
    pub fn open(directory: impl AsRef<Path>) -> Result<FileManifests> {
        FileManifests::open_on(Arc::new(LocalDisk::open(directory)?))
    }

    /// As [`open`](FileManifests::open), on any disk.
    pub fn open_on(disk: Arc<dyn Disk>) -> Result<FileManifests> {
        let failed = |operation| {
            let place = disk.place("");
            move |cause| Error::io(operation, place, cause)
        };
        let names = disk.list().map_err(failed("list"))?;
        let numbers: Vec<u64> = names.iter().filter_map(|name| parse_name(name)).collect();
        let current = match names.iter().any(|name| name == CURRENT) {
            true => read_pointer(&*disk)?,
            false => match numbers.last() {
                None => Pointer { number: 0, checksum: 0 },
                Some(last) => {
                    let (place, needed_by) =
                        (disk.place(CURRENT), disk.place(&manifest_name(*last)));
                    return Err(Error::Lost { place, needed_by });
                }
            },
        };
        if current.number > 0 {
            read_current(&*disk, current)?;
        }
        let unpublished = numbers.iter().filter(|number| **number > current.number);
        let unpublished = unpublished.map(|number| manifest_name(*number));
        for name in names.into_iter().filter(|name| is_nascent(name)).chain(unpublished) {
            disk.remove(&name).map_err(|cause| Error::io("delete", disk.place(&name), cause))?;
        }
        // Also if it is there: a sync may have failed since it was replaced.
        replace(&*disk, CURRENT, &[&current.encode()]).map_err(|broken| broken.failure.error())?;
        Ok(FileManifests { disk, state: Mutex::new(State { current, failure: None }) })
    }

    /// The state, also after a panic: no change is ever half done.
    fn locked(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &state.failure {
            Some(failure) => Err(failure.final_error()),
            None => Ok(state),
        }
    }

    fn numbers(&self) -> Result<Vec<u64>> {
        let names = self.disk.list();
        let names = names.map_err(|cause| Error::io("list", self.disk.place(""), cause))?;
        Ok(names.iter().filter_map(|name| parse_name(name)).collect())
    }
}

impl State {
    /// The error of a file that could not be replaced.
    fn fail(&mut self, broken: Broken) -> Error {
        match broken.is_final {
            true => self.failure.insert(broken.failure).final_error(),
            false => broken.failure.error(),
        }
    }
}

impl Manifests for FileManifests {
    fn publish(&self, next: u64, manifest: &[u8]) -> Result<Published> {
        let mut state = self.locked()?;
        if Some(next) != state.current.number.checked_add(1) {
            return Ok(Published::Conflict { current: state.current.number });
        }
        let (trailer, checksum) = encode_trailer(next, manifest);
        replace(&*self.disk, &manifest_name(next), &[manifest, &trailer])
            .map_err(|broken| state.fail(broken))?;
        let current = Pointer { number: next, checksum };
        replace(&*self.disk, CURRENT, &[&current.encode()]).map_err(|broken| state.fail(broken))?;
        state.current = current;
        Ok(Published::Done)
    }

    fn current(&self) -> Result<Option<Manifest>> {
        let state = self.locked()?;
        let number = state.current.number;
        if number == 0 {
            return Ok(None);
        }
        let bytes = read_current(&*self.disk, state.current)?;
        Ok(Some(Manifest { number, bytes }))
    }

    fn list(&self) -> Result<Vec<u64>> {
        let state = self.locked()?;
        let mut numbers = self.numbers()?;
        // The next one is there before it is current.
        numbers.retain(|number| *number <= state.current.number);
        Ok(numbers)
    }

    fn read(&self, number: u64) -> Result<Bytes> {
        let (bytes, _) = read_manifest(&*self.disk, number)?;
        Ok(bytes)
    }

    fn retain(&self, count: usize) -> Result<()> {
        let mut state = self.locked()?;
        let mut numbers = self.numbers()?;
        numbers.retain(|number| *number <= state.current.number);
        let deleted = &numbers[..numbers.len().saturating_sub(count.max(1))];
        for number in deleted {
            let name = manifest_name(*number);
            let removed = self.disk.remove(&name);
            removed.map_err(|cause| Error::io("delete", self.disk.place(&name), cause))?;
        }
        if !deleted.is_empty()
            && let Err(cause) = self.disk.sync_directory()
        {
            let failure = Failure::new("sync", self.disk.place(""), cause);
            return Err(state.fail(Broken { failure, is_final: true }));
        }
        Ok(())
    }

    fn place(&self, number: u64) -> String {
        self.disk.place(&manifest_name(number))
    }
}

/// Why a file could not be replaced.
pub(super) struct Broken {
    pub(super) failure: Failure,
    /// Whether it is unknown if the file was replaced.
    is_final: bool,
}

/// Replaces a file, durably: after a crash it is the old one or the new one.
pub(super) fn replace(disk: &dyn Disk, name: &str, parts: &[&[u8]]) -> Result<(), Broken> {
    let nascent = nascent_name(name);
    let write = || {
        // A new file each time: a sync that has failed says nothing about this one.
        let file = disk.create(&nascent)?;
        let mut offset = 0;
        for part in parts {
            file.write_at(part, offset)?;
            offset += part.len() as u64;
        }
        file.sync()
    };
    let broken = |is_final| {
        let place = disk.place(name);
        move |cause| Broken { failure: Failure::new("write", place, cause), is_final }
    };
    if let Err(cause) = write() {
        // It only takes up space.
        let _ = disk.remove(&nascent);
        return Err(broken(false)(cause));
    }
    let rename = || {
        disk.rename(&nascent, name)?;
        disk.sync_directory()
    };
    rename().map_err(broken(true))
}

pub(super) fn read_pointer(disk: &dyn Disk) -> Result<Pointer> {
    let bytes = read_file(disk, CURRENT)?;
    Pointer::parse(&bytes).map_err(|wrong| wrong_file(disk, CURRENT, wrong))
}

/// The manifest that `current` names.
pub(super) fn read_current(disk: &dyn Disk, current: Pointer) -> Result<Bytes> {
    let (bytes, checksum) = match read_manifest(disk, current.number) {
        Err(Error::Missing { place, .. }) => {
            return Err(Error::Lost { place, needed_by: disk.place(CURRENT) });
        }
        read => read?,
    };
    match checksum == current.checksum {
        true => Ok(bytes),
        false => {
            let what = "it is not the manifest that was published";
            let wrong = Wrong::Damaged { offset: bytes.len() as u64, what };
            Err(wrong_file(disk, &manifest_name(current.number), wrong))
        }
    }
}

/// A manifest, and its checksum.
pub(super) fn read_manifest(disk: &dyn Disk, number: u64) -> Result<(Bytes, u64)> {
    let name = manifest_name(number);
    let bytes = read_file(disk, &name)?;
    let parsed = parse_manifest(number, &bytes);
    let (length, checksum) = parsed.map_err(|wrong| wrong_file(disk, &name, wrong))?;
    Ok((Bytes::from(bytes).slice(..length), checksum))
}

fn read_file(disk: &dyn Disk, name: &str) -> Result<Vec<u8>> {
    let failed = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound => Error::Missing { place: disk.place(name), operation: "open" },
        _ => Error::io("read", disk.place(name), cause),
    };
    let file = disk.open(name).map_err(failed)?;
    let size = file.size().map_err(failed)?;
    if size > LARGEST {
        let wrong = Wrong::Damaged { offset: LARGEST, what: "no manifest is as long" };
        return Err(wrong_file(disk, name, wrong));
    }
    let mut bytes = vec![0; size as usize];
    file.read_at(&mut bytes, 0).map_err(failed)?;
    Ok(bytes)
}

fn wrong_file(disk: &dyn Disk, name: &str, wrong: Wrong) -> Error {
    let place = disk.place(name);
    match wrong {
        Wrong::Damaged { offset, what } => Error::Corrupt { place, offset, what: what.to_owned() },
        Wrong::Newer(found) => Error::Newer { place, found, known: VERSION },
    }
}
