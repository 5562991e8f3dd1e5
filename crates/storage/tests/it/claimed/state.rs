//! A state as an engine has it: batches in memory and in blobs, and manifests that name them, on one computer.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use alluvium_storage::{
    Blob, BlobSlice, ClaimedStorage, Disk, DiskStorage, Error, FileManifests, Manifests, Published,
    SimulatedDisk, Storage, TemporaryBlob,
};
use fastrand::Rng;
use xxhash_rust::xxh3::xxh3_64;

/// Where a slice of a blob can begin.
const PAGE: usize = 4096;

/// How many manifests are retained.
const RETAINED: usize = 2;

/// A foreign file in the directory of the blobs.
const NOTES: &str = "notes.txt";

/// Bytes in memory or in a blob, which is deleted with the last batch that is in it.
enum Batch {
    InMemory(Vec<u8>),
    Stored { blob: Arc<dyn Blob>, hash: u64, _owner: TemporaryBlob },
}

/// The reference to a batch in a manifest.
#[derive(Debug)]
struct Reference {
    name: String,
    range: Range<u64>,
    hash: u64,
}

/// The manifest that is current, and the one that perhaps is.
#[derive(Default)]
pub struct Expected {
    current: Option<(u64, String)>,
    attempted: Option<(u64, String)>,
}

pub struct State {
    disk: SimulatedDisk,
    storage: Arc<ClaimedStorage>,
    manifests: FileManifests,
    batches: Vec<Batch>,
    /// The blobs that are there for certain after a crash.
    durable: BTreeSet<String>,
    /// Numbers the blobs, in every process from 0 on.
    next: u64,
}

pub fn new_computer(seed: u64) -> SimulatedDisk {
    let computer = SimulatedDisk::new(seed);
    computer.directory("blobs").replace(NOTES, b"of somebody else");
    computer
}

/// The lines of a manifest: name, start, end and hash.
fn parse(manifest: &[u8]) -> Vec<Reference> {
    let lines = std::str::from_utf8(manifest).unwrap().lines();
    let parse = |line: &str| {
        let mut fields = line.split(' ');
        let name = fields.next().unwrap().to_owned();
        let [start, end, hash] = [(); 3].map(|()| fields.next().unwrap().parse().unwrap());
        Reference { name, range: start..end, hash }
    };
    lines.map(parse).collect()
}

fn names(references: &[Reference]) -> BTreeSet<String> {
    references.iter().map(|reference| reference.name.clone()).collect()
}

impl State {
    /// The state of the current manifest. Asserts that it is an expected one, and that the blobs of all retained manifests,
    /// and no others, are there with their bytes.
    pub fn open(computer: &SimulatedDisk, expected: &mut Expected) -> Result<State, Error> {
        let manifests = FileManifests::open_on(Arc::new(computer.directory("manifests")))?;
        let disk = computer.directory("blobs");
        let blobs = DiskStorage::open(Arc::new(disk.clone()))?;
        let storage = Arc::new(ClaimedStorage::open(Arc::new(blobs.clone()))?);
        let found = manifests
            .current()?
            .map(|manifest| (manifest.number, String::from_utf8(manifest.bytes.to_vec()).unwrap()));
        assert!(
            found == expected.current
                || expected.attempted.is_some() && found == expected.attempted,
            "{found:?} is neither {:?} nor {:?}",
            expected.current,
            expected.attempted
        );
        *expected = Expected { current: found, attempted: None };

        // First, as a crash may bring back one that was deleted when the sync failed. Its blobs may be gone.
        manifests.retain(RETAINED)?;
        let retained = manifests.list()?;
        let mut current = Vec::new();
        for number in &retained {
            let references = parse(&manifests.read(*number)?);
            storage.claim(*number, references.iter().map(|reference| reference.name.clone()));
            for Reference { name, range, hash } in &references {
                // Past the claimed storage, for which it would be in use.
                let bytes = blobs.open(name)?.read(range.clone())?;
                assert_eq!(xxh3_64(&bytes), *hash, "{name} of {number}");
            }
            current = references;
        }
        let durable = names(&current);
        let batches = State::stored(&storage, current)?;
        let state = State { disk, storage, manifests, batches, durable, next: 0 };
        state.storage.sweep()?;
        state.assert_nothing_else_is_left()?;
        Ok(state)
    }

    /// Batches as a manifest names them, of which those in one blob share it.
    fn stored(
        storage: &Arc<ClaimedStorage>,
        references: Vec<Reference>,
    ) -> Result<Vec<Batch>, Error> {
        let mut blobs = BTreeMap::new();
        for name in names(&references) {
            let blob = storage.open(&name)?;
            let owner = TemporaryBlob::new(storage.clone(), blob.clone());
            blobs.insert(name, (blob, owner));
        }
        let stored = references.into_iter().map(|Reference { name, range, hash }| {
            let (blob, owner) = blobs[&name].clone();
            let blob = Arc::new(BlobSlice::new(blob, range)?);
            Ok(Batch::Stored { blob, hash, _owner: owner })
        });
        stored.collect()
    }

    /// Does something. After an error it can continue, unless a further call says that it cannot.
    pub fn step(&mut self, random: &mut Rng, expected: &mut Expected) -> Result<(), Error> {
        match random.u8(..12) {
            0..4 => self.batches.push(Batch::InMemory(some_bytes(random))),
            4..6 => {
                let bytes = some_bytes(random);
                let written = self.write("batch", &[bytes])?;
                self.batches.extend(written);
            }
            6 => {
                // Given up before it is sealed.
                let mut writer = self.storage.create(&format!("batch-{}", self.next))?;
                self.next += 1;
                writer.append(&some_bytes(random))?;
            }
            7..10 => self.delete_some(random),
            _ => self.checkpoint(random, expected)?,
        }
        Ok(())
    }

    fn delete_some(&mut self, random: &mut Rng) {
        for _ in 0..random.usize(..5).min(self.batches.len()) {
            let batch = random.usize(..self.batches.len());
            self.batches.swap_remove(batch);
        }
    }

    /// Writes batches to one blob, each at a multiple of a page.
    fn write(&mut self, kind: &str, batches: &[Vec<u8>]) -> Result<Vec<Batch>, Error> {
        let mut writer = self.storage.create(&format!("{kind}-{}", self.next))?;
        self.next += 1;
        let mut ranges = Vec::new();
        for batch in batches {
            let length = writer.len() as usize;
            writer.append(&vec![0; length.next_multiple_of(PAGE) - length])?;
            let start = writer.len();
            writer.append(batch)?;
            ranges.push(start..writer.len());
        }
        let blob = writer.seal()?;
        let owner = TemporaryBlob::new(self.storage.clone(), blob.clone());
        let stored = batches.iter().zip(ranges).map(|(bytes, range)| {
            let blob = Arc::new(BlobSlice::new(blob.clone(), range)?);
            Ok(Batch::Stored { blob, hash: xxh3_64(bytes), _owner: owner.clone() })
        });
        stored.collect()
    }

    fn checkpoint(&mut self, random: &mut Rng, expected: &mut Expected) -> Result<(), Error> {
        self.pack()?;
        let references = self.references();
        let manifest: String = references
            .iter()
            .map(|Reference { name, range, hash }| {
                format!("{name} {} {} {hash}\n", range.start, range.end)
            })
            .collect();
        let names = names(&references);
        let new: Vec<&str> = names.difference(&self.durable).map(String::as_str).collect();
        self.storage.barrier(&new)?;
        let next = expected.current.as_ref().map_or(0, |(number, _)| *number) + 1;
        self.storage.claim(next, names.iter().cloned());
        if random.bool() {
            // Merged before the manifest is published.
            self.delete_some(random);
        }
        expected.attempted = Some((next, manifest.clone()));
        match self.manifests.publish(next, manifest.as_bytes()) {
            Ok(published) => assert_eq!(published, Published::Done),
            Err(error) => {
                if !self.is_over() {
                    expected.attempted = None;
                    self.storage.release(next)?;
                }
                return Err(error);
            }
        }
        expected.current = expected.attempted.take();
        self.durable = names;
        self.retain()
    }

    /// Writes all batches that are in memory to one blob.
    fn pack(&mut self) -> Result<(), Error> {
        let in_memory: Vec<Vec<u8>> = self
            .batches
            .iter()
            .filter_map(|batch| match batch {
                Batch::InMemory(bytes) => Some(bytes.clone()),
                Batch::Stored { .. } => None,
            })
            .collect();
        if !in_memory.is_empty() {
            let packed = self.write("pack", &in_memory)?;
            self.batches.retain(|batch| matches!(batch, Batch::Stored { .. }));
            self.batches.extend(packed);
        }
        Ok(())
    }

    /// The contents of a manifest when no batch is in memory.
    fn references(&self) -> Vec<Reference> {
        let stored = self.batches.iter().filter_map(|batch| match batch {
            Batch::InMemory(_) => None,
            Batch::Stored { blob, hash, .. } => {
                let range = blob.offset()..blob.offset() + blob.len();
                Some(Reference { name: blob.name().to_owned(), range, hash: *hash })
            }
        });
        stored.collect()
    }

    fn retain(&self) -> Result<(), Error> {
        self.manifests.retain(RETAINED)?;
        match self.manifests.list()?.first() {
            Some(first) => self.storage.release_before(*first),
            None => Ok(()),
        }
    }

    /// Whether it is unknown which manifest is current: then the process must end.
    pub fn is_over(&self) -> bool {
        self.manifests.current().is_err()
    }

    /// Asserts that all batches can be read.
    pub fn assert_is_whole(&self) {
        for batch in &self.batches {
            if let Batch::Stored { blob, hash, .. } = batch {
                assert_eq!(xxh3_64(&blob.bytes()), *hash, "{}", blob.place());
            }
        }
    }

    /// Asserts that there are no blobs but those that a retained manifest names and those in use. So it is if no call has
    /// failed.
    pub fn assert_nothing_else_is_left(&self) -> Result<(), Error> {
        let mut expected = names(&self.references());
        for number in self.manifests.list()? {
            expected.append(&mut names(&parse(&self.manifests.read(number)?)));
        }
        assert_left(&self.disk, expected);
        Ok(())
    }
}

/// Asserts that there are no blobs but those that a retained manifest names, after a process has ended as it should.
pub fn assert_only_manifests_are_left(computer: &SimulatedDisk) -> Result<(), Error> {
    let manifests = FileManifests::open_on(Arc::new(computer.directory("manifests")))?;
    let mut expected = BTreeSet::new();
    for number in manifests.list()? {
        expected.append(&mut names(&parse(&manifests.read(number)?)));
    }
    assert_left(&computer.directory("blobs"), expected);
    Ok(())
}

/// Asserts which files of blobs there are, sealed or not.
fn assert_left(disk: &SimulatedDisk, mut expected: BTreeSet<String>) {
    expected.insert(NOTES.to_owned());
    assert_eq!(disk.list().unwrap(), Vec::from_iter(expected));
}

/// Bytes that no other batch has.
fn some_bytes(random: &mut Rng) -> Vec<u8> {
    let longest = [2, 100, 1000, 6000][random.usize(..4)];
    let mut bytes = vec![0; random.usize(..longest)];
    random.fill(&mut bytes);
    bytes
}
