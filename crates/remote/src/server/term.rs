//! The file that says who writes to a journal.
//!
//! It has lines of text: a magic with the version, the identity of the journal, the term of its last writer, the position up to which it was
//! durable when that came or the server ended, and the XXH3-64 of these lines. It is replaced as a whole.

use std::fmt::Write;
use std::hash::{BuildHasher, Hasher, RandomState};

use alluvium_storage::error::Failure;
use alluvium_storage::{Disk, DiskFile, Error, KnownEnd, Position, Result};
use xxhash_rust::xxh3::xxh3_64;

/// Its name among the files of a journal.
const NAME: &str = "term";

/// Its name while it is written.
const NASCENT: &str = ".term.new";

const MAGIC: &str = "alluvium-journal 1";

/// No such file is larger.
const MOST_BYTES: u64 = 4096;

/// The contents of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) identity: String,
    /// The term of the last writer; 0 before the first.
    pub(super) number: u64,
    /// All records before this position are durable.
    pub(super) end: u64,
}

impl Term {
    /// That of a journal that nobody has opened yet.
    pub(super) fn first() -> Term {
        // Random numbers: the standard library seeds its maps with them.
        let random = || RandomState::new().build_hasher().finish();
        Term { identity: format!("{:016x}{:016x}", random(), random()), number: 0, end: 0 }
    }

    /// Reads the file of a journal; `None` if it has none.
    pub(super) fn read(disk: &dyn Disk) -> Result<Option<Term>> {
        let place = disk.place(NAME);
        let failed = |cause| Error::Io { place: place.clone(), operation: "read", cause };
        let names = disk.list().map_err(failed)?;
        if !names.iter().any(|name| name == NAME) {
            return Ok(None);
        }
        let file = disk.open(NAME).map_err(failed)?;
        let size = file.size().map_err(failed)?.min(MOST_BYTES);
        let mut bytes = vec![0; size as usize];
        file.read_at(&mut bytes, 0).map_err(failed)?;
        match std::str::from_utf8(&bytes).ok().and_then(Term::parse) {
            Some(term) => Ok(Some(term)),
            None => {
                let what = "it does not say who writes to the journal".to_owned();
                Err(Error::Corrupt { place, offset: 0, what })
            }
        }
    }

    fn parse(text: &str) -> Option<Term> {
        let at = text.trim_end().rfind('\n')? + 1;
        let (lines, checksum) = text.split_at(at);
        let checksum = checksum.strip_prefix("xxh3 ")?.strip_suffix('\n')?;
        if checksum != format!("{:016x}", xxh3_64(lines.as_bytes())) {
            return None;
        }
        let mut lines = lines.strip_prefix(MAGIC)?.strip_prefix('\n')?.lines();
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let (identity, number, end) = (field("identity")?, field("term")?, field("end")?);
        Some(Term {
            identity: identity.to_owned(),
            number: number.parse().ok()?,
            end: end.parse().ok()?,
        })
    }

    /// Replaces the file, durably.
    pub(super) fn write(&self, disk: &dyn Disk) -> Result<()> {
        let Term { identity, number, end } = self;
        let mut text = format!("{MAGIC}\nidentity {identity}\nterm {number}\nend {end}\n");
        let checksum = xxh3_64(text.as_bytes());
        // Strings can always be written to.
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

    /// How far the journal goes at least.
    pub(super) fn known_end(&self, disk: &dyn Disk) -> KnownEnd {
        KnownEnd { position: Position(self.end), known_by: disk.place(NAME) }
    }
}

#[cfg(test)]
mod tests {
    use alluvium_storage::SimulatedDisk;

    use super::*;

    #[test]
    fn what_was_written_is_read_after_a_crash_and_no_byte_can_be_another_one() {
        let disk = SimulatedDisk::new(1);
        assert!(Term::read(&disk).is_ok_and(|term| term.is_none()));
        let term = Term { number: 7, end: 12, ..Term::first() };
        assert!(term.write(&disk).is_ok());
        disk.crash();
        assert_eq!(Term::read(&disk).ok().flatten(), Some(term));
        let written = disk.bytes(NAME).unwrap_or_default();
        assert!(written.len() > 90);
        for at in 0..written.len() {
            let mut bytes = written.clone();
            bytes[at] ^= 1;
            let changed = disk.create(NAME).and_then(|file| file.write_at(&bytes, 0));
            assert!(changed.is_ok());
            assert!(matches!(Term::read(&disk), Err(Error::Corrupt { .. })), "byte {at}");
        }
    }

    #[test]
    fn no_two_journals_have_the_same_identity() {
        assert_ne!(Term::first().identity, Term::first().identity);
    }
}
