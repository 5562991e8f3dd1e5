//! How far the journal of a state directory is known to go.
//!
//! The last group of a journal looks the same torn by a crash and damaged later, and a last segment that is missing leaves no
//! trace in the others. So an engine that ends leaves a file with the position after the last record, once that is
//! durable. Checkpoints have such a position too. Both stay true for good, as a journal only grows.
//!
//! The file has 32 bytes, all numbers little-endian: the magic `alluvend`, the version 1 in 8 bytes, the position, and the
//! XXH3-64 of these 24 bytes. A file that is none is ignored, and replaced when the engine ends.

use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use alluvium_storage::disk::platform;
use alluvium_storage::{Journal, KnownEnd, ManifestFiles, Position, ReadOnlyDisk};
use xxhash_rust::xxh3::xxh3_64;

use super::checkpoint::Checkpoint;
use super::directory::MANIFESTS;

/// The file's name in the directory.
pub(crate) const END: &str = "end";

/// Its name while it is written.
pub(crate) const NASCENT: &str = ".end.new";

const MAGIC: [u8; 8] = *b"alluvend";
const VERSION: u64 = 1;

/// How far the journal of a directory is known to go, by this file or by the last checkpoint. Damage of either does not
/// matter here.
pub(crate) fn of(directory: &Path) -> KnownEnd {
    end(directory, checkpoint(directory).as_ref())
}

/// The records that an engine which opens a directory needs, as far as they are known by the same.
pub(crate) fn needed(directory: &Path) -> Range<Position> {
    let checkpoint = checkpoint(directory);
    let first = checkpoint.as_ref().map_or(0, |(_, checkpoint)| checkpoint.replay);
    Position(first)..end(directory, checkpoint.as_ref()).position
}

fn end(directory: &Path, checkpoint: Option<&(String, Checkpoint)>) -> KnownEnd {
    let path = directory.join(END);
    let known = read(directory).unwrap_or_default();
    let known = KnownEnd { position: known, known_by: path.display().to_string() };
    match checkpoint {
        Some((place, Checkpoint { end, .. })) if *end >= known.position.0 => {
            KnownEnd { position: Position(*end), known_by: place.clone() }
        }
        _ => known,
    }
}

/// The last checkpoint of a directory and its place, if there is one that can be read.
fn checkpoint(directory: &Path) -> Option<(String, Checkpoint)> {
    let manifests = ReadOnlyDisk::new(directory.join(MANIFESTS));
    let current = ManifestFiles::list(&manifests).ok()?.current(&manifests).ok()?;
    let bytes = ManifestFiles::read(&manifests, current).ok()?;
    let checkpoint = Checkpoint::decode(&bytes).ok()?;
    Some((ManifestFiles::place(&manifests, current), checkpoint))
}

/// The position in the file of a directory; `None` if it is damaged or missing.
pub(crate) fn read(directory: &Path) -> Option<Position> {
    let bytes = fs::read(directory.join(END)).ok()?;
    let (position, checksum) = bytes.split_first_chunk::<24>()?;
    let number = u64::from_le_bytes(*position.last_chunk::<8>()?);
    (*checksum == xxh3_64(position).to_le_bytes() && position[..16] == head())
        .then_some(Position(number))
}

/// Writes the file of a directory, durably. The records before this position are durable.
pub(crate) fn write(directory: &Path, end: Position) -> std::io::Result<()> {
    let mut bytes = head().to_vec();
    bytes.extend(end.0.to_le_bytes());
    bytes.extend(xxh3_64(&bytes).to_le_bytes());
    let nascent = directory.join(NASCENT);
    let mut file = File::create(&nascent)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    fs::rename(&nascent, directory.join(END))?;
    platform::sync(directory)
}

fn head() -> [u8; 16] {
    let mut head = [0; 16];
    head[..8].copy_from_slice(&MAGIC);
    head[8..].copy_from_slice(&VERSION.to_le_bytes());
    head
}

/// Makes all records of a journal durable, and leaves word of it. If that fails, the next start knows less.
pub(crate) fn leave(directory: &Path, journal: &dyn Journal) {
    let range = journal.range();
    let synced = match range.end.0.checked_sub(1) {
        Some(last) if !range.is_empty() => journal.sync(Position(last)),
        _ => Ok(()),
    };
    if synced.is_ok() && read(directory) != Some(range.end) {
        let _ = write(directory, range.end);
    }
}
