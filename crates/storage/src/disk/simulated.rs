//! A disk in memory that crashes, fails and fills up on command, for tests.
//!
//! # Design
//!
//! A file has the bytes that are on the disk for certain, and the changes since its last sync. A program sees both; a
//! crash decides for each write, by a seed, whether it survives, vanishes, or survives in some sectors of 512 bytes,
//! and, apart from that, whether the size it gave the file survives. Likewise the directory: names on the disk, and what
//! was done to them since it was synced, each of which survives or not.
//!
//! A sync that fails decides in the same way, and forgets: lost bytes are still seen until the crash, but no later
//! sync brings them to the disk. So do Linux and most other systems.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fastrand::Rng;

use crate::disk::{Disk, DiskFile};

/// The unit that survives or vanishes as a whole.
const SECTOR: usize = 512;

/// A directory of a simulated computer. Clones are the same directory.
#[derive(Clone)]
pub struct SimulatedDisk {
    computer: Arc<Mutex<Computer>>,
    /// Precedes the names of the directory's files.
    prefix: String,
}

#[derive(Debug)]
struct Computer {
    random: Rng,
    /// All files, by a number. Those without a name stay until the crash.
    files: BTreeMap<u64, Contents>,
    next: u64,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    renamed: Vec<Change>,
    /// Counts crashes: files that were opened before one cannot be used after it.
    boot: u64,
    /// The number of mutating calls, including failed ones.
    calls: u64,
    failures: Failures,
    capacity: Option<u64>,
}

/// Which mutating calls fail, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failures {
    None,
    /// This one.
    At(u64),
    /// This one and all later ones.
    From(u64),
}

/// A file's bytes.
#[derive(Debug, Default)]
struct Contents {
    durable: Vec<u8>,
    seen: Vec<u8>,
    unsynced: Vec<Write>,
}

/// A change of a file.
#[derive(Debug)]
enum Write {
    Bytes { offset: usize, bytes: Vec<u8> },
    Size(usize),
}

/// A change of a name.
#[derive(Debug)]
enum Change {
    Create { name: String, file: u64 },
    Rename { from: String, to: String, file: u64 },
    Remove { name: String },
}

impl SimulatedDisk {
    /// An empty directory of a new computer. The seed decides the outcome of its crashes.
    pub fn new(seed: u64) -> SimulatedDisk {
        let computer = Computer {
            random: Rng::with_seed(seed),
            files: BTreeMap::new(),
            next: 0,
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            renamed: Vec::new(),
            boot: 0,
            calls: 0,
            failures: Failures::None,
            capacity: None,
        };
        SimulatedDisk { computer: Arc::new(Mutex::new(computer)), prefix: String::new() }
    }

    /// Another directory of the same computer, which crashes and fails with it.
    pub fn directory(&self, name: &str) -> SimulatedDisk {
        let prefix = format!("{}{name}/", self.prefix);
        SimulatedDisk { computer: Arc::clone(&self.computer), prefix }
    }

    /// Crashes the computer and starts it again, without faults. Files that are open cannot be used any more.
    pub fn crash(&self) {
        self.computer().crash();
    }

    /// Makes the `call`-th mutating call, counted from 1, and all later ones fail. Mutating are all calls but `open`,
    /// `list`, `size` and `read_at`. A write that fails may have written a part.
    pub fn fail_from(&self, call: u64) {
        self.computer().failures = Failures::From(call);
    }

    /// Makes the `call`-th mutating call fail, counted from 1, and no other.
    pub fn fail_at(&self, call: u64) {
        self.computer().failures = Failures::At(call);
    }

    /// The number of mutating calls so far, including failed ones.
    pub fn calls(&self) -> u64 {
        self.computer().calls
    }

    /// Makes writes fail as on a full disk when all files together would have more than `capacity` bytes.
    pub fn limit(&self, capacity: u64) {
        self.computer().capacity = Some(capacity);
    }

    /// Ends all failures, and the limit.
    pub fn mend(&self) {
        let mut computer = self.computer();
        computer.failures = Failures::None;
        computer.capacity = None;
    }

    /// The bytes of a file as a program sees them.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let computer = self.computer();
        let file = computer.names.get(&self.path(name))?;
        Some(computer.files[file].seen.clone())
    }

    /// Replaces a file, durably and past all faults: for damage.
    pub fn replace(&self, name: &str, bytes: &[u8]) {
        let mut computer = self.computer();
        let file = computer.new_file();
        let contents = Contents { durable: bytes.into(), seen: bytes.into(), unsynced: Vec::new() };
        computer.files.insert(file, contents);
        computer.names.insert(self.path(name), file);
        computer.durable_names.insert(self.path(name), file);
    }

    /// Removes a file, durably and past all faults: for damage.
    pub fn lose(&self, name: &str) {
        let mut computer = self.computer();
        computer.names.remove(&self.path(name));
        computer.durable_names.remove(&self.path(name));
    }

    fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn computer(&self) -> MutexGuard<'_, Computer> {
        locked(&self.computer)
    }

    fn file(&self, file: u64, boot: u64) -> Box<dyn DiskFile> {
        Box::new(SimulatedFile { computer: Arc::clone(&self.computer), file, boot })
    }
}

/// The state of a computer, also after a panic: no change is ever half done.
fn locked(computer: &Mutex<Computer>) -> MutexGuard<'_, Computer> {
    computer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The names and sizes of the files.
impl Debug for SimulatedDisk {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let computer = self.computer();
        let names = computer.names.iter().filter(|(path, _)| path.starts_with(&self.prefix));
        f.debug_map()
            .entries(names.map(|(path, file)| (path, computer.files[file].seen.len())))
            .finish()
    }
}

impl Computer {
    /// Counts a mutating call, and fails if its time has come.
    fn call(&mut self) -> io::Result<()> {
        self.calls += 1;
        let fails = match self.failures {
            Failures::None => false,
            Failures::At(call) => call == self.calls,
            Failures::From(call) => call <= self.calls,
        };
        match fails {
            true => Err(io::Error::other(format!("call {} fails on command", self.calls))),
            false => Ok(()),
        }
    }

    fn new_file(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The bytes of all files but this one.
    fn used_without(&self, file: u64) -> u64 {
        let others = self.names.values().filter(|other| **other != file);
        others.map(|other| self.files[other].seen.len() as u64).sum()
    }

    fn crash(&mut self) {
        self.boot += 1;
        self.failures = Failures::None;
        self.capacity = None;
        for change in std::mem::take(&mut self.renamed) {
            if self.random.bool() {
                change.apply(&mut self.durable_names);
            }
        }
        self.names = self.durable_names.clone();
        for contents in self.files.values_mut() {
            contents.decide(&mut self.random);
            contents.seen.clone_from(&contents.durable);
        }
        let named: Vec<_> = self.names.values().copied().collect();
        self.files.retain(|file, _| named.contains(file));
    }
}

impl Change {
    fn apply(self, names: &mut BTreeMap<String, u64>) {
        match self {
            Change::Create { name, file } => drop(names.insert(name, file)),
            Change::Rename { from, to, file } => {
                if names.get(&from) == Some(&file) {
                    names.remove(&from);
                }
                names.insert(to, file);
            }
            Change::Remove { name } => drop(names.remove(&name)),
        }
    }
}

impl Contents {
    fn apply(bytes: &mut Vec<u8>, write: &Write) {
        match write {
            Write::Bytes { offset, bytes: written } => {
                let end = offset + written.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[*offset..end].copy_from_slice(written);
            }
            Write::Size(size) => bytes.resize(*size, 0),
        }
    }

    fn sync(&mut self) {
        for write in self.unsynced.drain(..) {
            Contents::apply(&mut self.durable, &write);
        }
    }

    /// Decides which unsynced writes are on the disk, and forgets them.
    fn decide(&mut self, random: &mut Rng) {
        let mut size = self.durable.len();
        for write in std::mem::take(&mut self.unsynced) {
            match write {
                Write::Size(kept) => {
                    if random.bool() {
                        self.durable.resize(kept, 0);
                        size = kept;
                    }
                }
                Write::Bytes { offset, bytes } => {
                    // The size and the bytes survive independently.
                    if random.bool() {
                        size = size.max(offset + bytes.len());
                    }
                    self.decide_bytes(offset, &bytes, random);
                }
            }
        }
        self.durable.resize(size, 0);
    }

    fn decide_bytes(&mut self, offset: usize, bytes: &[u8], random: &mut Rng) {
        let torn = match random.u8(..4) {
            0 => return,
            1 => false,
            _ => true,
        };
        let end = offset + bytes.len();
        self.durable.resize(self.durable.len().max(end), 0);
        let mut start = offset;
        while start < end {
            let next = ((start / SECTOR + 1) * SECTOR).min(end);
            if !torn || random.bool() {
                self.durable[start..next].copy_from_slice(&bytes[start - offset..next - offset]);
            }
            start = next;
        }
    }
}

impl Disk for SimulatedDisk {
    fn place(&self, name: &str) -> String {
        format!("simulated:{}", self.path(name))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut computer = self.computer();
        computer.call()?;
        let file = computer.new_file();
        computer.files.insert(file, Contents::default());
        computer.names.insert(self.path(name), file);
        computer.renamed.push(Change::Create { name: self.path(name), file });
        Ok(self.file(file, computer.boot))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let computer = self.computer();
        match computer.names.get(&self.path(name)) {
            Some(file) => Ok(self.file(*file, computer.boot)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.path(from), self.path(to));
        let mut computer = self.computer();
        computer.call()?;
        let file = computer.names.remove(&from).ok_or(io::ErrorKind::NotFound)?;
        computer.names.insert(to.clone(), file);
        computer.renamed.push(Change::Rename { from, to, file });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let name = self.path(name);
        let mut computer = self.computer();
        computer.call()?;
        computer.names.remove(&name).ok_or(io::ErrorKind::NotFound)?;
        computer.renamed.push(Change::Remove { name });
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let computer = self.computer();
        let names = computer.names.keys().filter_map(|path| path.strip_prefix(&self.prefix));
        Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut computer = self.computer();
        let called = computer.call();
        let ours = |change: &mut Change| match change {
            Change::Create { name, .. } | Change::Remove { name } => name.starts_with(&self.prefix),
            Change::Rename { to, .. } => to.starts_with(&self.prefix),
        };
        let changes: Vec<_> = computer.renamed.extract_if(.., ours).collect();
        for change in changes {
            if called.is_ok() || computer.random.bool() {
                change.apply(&mut computer.durable_names);
            }
        }
        called
    }
}

struct SimulatedFile {
    computer: Arc<Mutex<Computer>>,
    file: u64,
    boot: u64,
}

impl Debug for SimulatedFile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SimulatedFile").field(&self.file).finish()
    }
}

impl SimulatedFile {
    /// Does something with the file, unless it was opened before a crash.
    fn with<T>(
        &self,
        act: impl FnOnce(&mut Computer, &mut Contents) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut computer = locked(&self.computer);
        let crashed = || io::Error::other("the computer has crashed");
        if computer.boot != self.boot {
            return Err(crashed());
        }
        let mut contents = computer.files.remove(&self.file).ok_or_else(crashed)?;
        let used = act(&mut computer, &mut contents);
        computer.files.insert(self.file, contents);
        used
    }

    fn synced(&self) -> io::Result<()> {
        self.with(|computer, contents| {
            let called = computer.call();
            match called {
                Ok(()) => contents.sync(),
                Err(_) => contents.decide(&mut computer.random),
            }
            called
        })
    }
}

impl Contents {
    fn write(&mut self, write: Write) {
        Contents::apply(&mut self.seen, &write);
        self.unsynced.push(write);
    }
}

impl DiskFile for SimulatedFile {
    fn size(&self) -> io::Result<u64> {
        self.with(|_, contents| Ok(contents.seen.len() as u64))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.with(|_, contents| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let end = start.saturating_add(buffer.len());
            let bytes = contents.seen.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
            buffer.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.with(|computer, contents| {
            let offset = offset as usize;
            let end = (offset + bytes.len()).max(contents.seen.len());
            let used = computer.used_without(self.file);
            let free = computer.capacity.map(|capacity| capacity.saturating_sub(used));
            let failure = match computer.call() {
                Ok(()) if free.is_none_or(|free| end as u64 <= free) => None,
                Ok(()) => Some(io::ErrorKind::StorageFull.into()),
                Err(failure) => Some(failure),
            };
            let Some(failure) = failure else {
                contents.write(Write::Bytes { offset, bytes: bytes.into() });
                return Ok(());
            };
            let room = free.map_or(usize::MAX, |free| (free as usize).saturating_sub(offset));
            let part = computer.random.usize(..=bytes.len().min(room));
            contents.write(Write::Bytes { offset, bytes: bytes[..part].into() });
            Err(failure)
        })
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.with(|computer, contents| {
            computer.call()?;
            contents.write(Write::Size(size as usize));
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.synced()
    }

    fn sync(&self) -> io::Result<()> {
        self.synced()
    }
}
