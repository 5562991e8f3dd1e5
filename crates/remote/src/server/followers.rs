//! The file that says what the followers of a journal need.
//!
//! It has lines of text: a magic with the version, a line for each follower, and the XXH3-64 of these lines. A follower's line is its name, the
//! position of the first record that it needs, and whether that is kept for it. The file is replaced as a whole.

use std::collections::BTreeMap;
use std::fmt::Write;

use alluvium_storage::error::Failure;
use alluvium_storage::{Disk, DiskFile, Error, Result};
use xxhash_rust::xxh3::xxh3_64;

/// Its name among the files of a journal.
const NAME: &str = "followers";

/// Its name while it is written.
const NASCENT: &str = ".followers.new";

const MAGIC: &str = "alluvium-followers 1";

/// No such file is larger.
const MOST_BYTES: u64 = 1 << 20;

/// The followers of a journal, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Followers {
    known: BTreeMap<String, Need>,
}

/// What a follower needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    /// The first record.
    first: u64,
    /// Whether it is kept.
    is_kept: bool,
}

impl Followers {
    /// Reads the file of a journal; there are none without it.
    pub(super) fn read(disk: &dyn Disk) -> Result<Followers> {
        let place = disk.place(NAME);
        let failed = |cause| Error::Io { place: place.clone(), operation: "read", cause };
        let names = disk.list().map_err(failed)?;
        if !names.iter().any(|name| name == NAME) {
            return Ok(Followers::default());
        }
        let file = disk.open(NAME).map_err(failed)?;
        let size = file.size().map_err(failed)?.min(MOST_BYTES);
        let mut bytes = vec![0; size as usize];
        file.read_at(&mut bytes, 0).map_err(failed)?;
        match std::str::from_utf8(&bytes).ok().and_then(Followers::parse) {
            Some(followers) => Ok(followers),
            None => {
                let what = "it does not say what the followers of the journal need".to_owned();
                Err(Error::Corrupt { place, offset: 0, what })
            }
        }
    }

    fn parse(text: &str) -> Option<Followers> {
        let at = text.trim_end().rfind('\n')? + 1;
        let (lines, checksum) = text.split_at(at);
        let checksum = checksum.strip_prefix("xxh3 ")?.strip_suffix('\n')?;
        if checksum != format!("{:016x}", xxh3_64(lines.as_bytes())) {
            return None;
        }
        let mut known = BTreeMap::new();
        for line in lines.strip_prefix(MAGIC)?.strip_prefix('\n')?.lines() {
            let mut words = line.split(' ');
            let (name, first, kept) = (words.next()?, words.next()?, words.next()?);
            let is_kept = match kept {
                "kept" => true,
                "dropped" => false,
                _ => return None,
            };
            known.insert(name.to_owned(), Need { first: first.parse().ok()?, is_kept });
        }
        Some(Followers { known })
    }

    /// A follower needs the records from this one on, durably.
    pub(super) fn keep(&mut self, name: &str, first: u64, disk: &dyn Disk) -> Result<()> {
        let need = Need { first, is_kept: true };
        self.change(disk, |known| known.insert(name.to_owned(), need))
    }

    /// There is no such follower any more.
    pub(super) fn forget(&mut self, name: &str, disk: &dyn Disk) -> Result<()> {
        self.change(disk, |known| known.remove(name))
    }

    /// Nothing is kept any more for the follower that needs most. Returns its name, if there is one.
    pub(super) fn drop_slowest(&mut self, disk: &dyn Disk) -> Result<Option<String>> {
        let kept = self.known.iter().filter(|(_, need)| need.is_kept);
        let slowest = kept.min_by_key(|(_, need)| need.first).map(|(name, _)| name.clone());
        if let Some(name) = &slowest {
            self.change(disk, |known| known.get_mut(name).map(|need| need.is_kept = false))?;
        }
        Ok(slowest)
    }

    /// The first record that is kept for a follower.
    pub(super) fn first(&self) -> Option<u64> {
        let kept = self.known.values().filter(|need| need.is_kept);
        kept.map(|need| need.first).min()
    }

    /// Whether nothing is kept for a follower any more.
    pub(super) fn is_dropped(&self, name: &str) -> bool {
        self.known.get(name).is_some_and(|need| !need.is_kept)
    }

    /// Changes them, in memory once they are changed on the disk.
    fn change<T>(
        &mut self,
        disk: &dyn Disk,
        change: impl FnOnce(&mut BTreeMap<String, Need>) -> T,
    ) -> Result<()> {
        let mut changed = self.clone();
        change(&mut changed.known);
        if changed != *self {
            changed.write(disk)?;
            *self = changed;
        }
        Ok(())
    }

    fn write(&self, disk: &dyn Disk) -> Result<()> {
        let mut text = format!("{MAGIC}\n");
        for (name, Need { first, is_kept }) in &self.known {
            let kept = if *is_kept { "kept" } else { "dropped" };
            // Strings can always be written to.
            let _ = writeln!(text, "{name} {first} {kept}");
        }
        let checksum = xxh3_64(text.as_bytes());
        let _ = writeln!(text, "xxh3 {checksum:016x}");
        let write = || {
            let file = disk.create(NASCENT)?;
            file.write_at(text.as_bytes(), 0)?;
            DiskFile::sync(&*file)?;
            disk.rename(NASCENT, NAME)?;
            disk.sync_directory()
        };
        write().map_err(|cause| Failure::new("write", disk.place(NAME), cause).error())
    }
}

#[cfg(test)]
mod tests {
    use alluvium_storage::SimulatedDisk;

    use super::*;

    #[test]
    fn followers_are_known_after_a_crash_and_no_byte_can_be_another_one() {
        let disk = SimulatedDisk::new(1);
        let mut followers = Followers::default();
        for (name, first) in [("a", 7), ("b", 5), ("c", 9)] {
            assert!(followers.keep(name, first, &disk).is_ok());
        }
        assert!(followers.drop_slowest(&disk).is_ok() && followers.forget("c", &disk).is_ok());
        assert_eq!((followers.first(), followers.is_dropped("b")), (Some(7), true));
        disk.crash();
        assert_eq!(Followers::read(&disk).ok(), Some(followers));
        let written = disk.bytes(NAME).unwrap_or_default();
        for at in 0..written.len() {
            let mut bytes = written.clone();
            bytes[at] ^= 1;
            let changed = disk.create(NAME).and_then(|file| file.write_at(&bytes, 0));
            assert!(changed.is_ok());
            assert!(matches!(Followers::read(&disk), Err(Error::Corrupt { .. })), "byte {at}");
        }
    }
}
