//! A blob whose bytes are a mapped file.
//!
//! The mapping is advised `MADV_RANDOM` for life. Sequential readers use [`Blob::read`], and readers that know their pages
//! ahead use [`Advice::WillNeed`].

use std::fmt::{self, Debug, Formatter};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use memmap2::Mmap;

use crate::blob::{Advice, Blob, within};
use crate::disk::platform;
use crate::error::{Error, Result};

/// The bytes around an accessed byte of a mapped blob, aligned, that become resident with it if they are in the system's
/// cache: Linux's `fault_around_bytes`.
///
/// Since Linux 6.18 the system maps whole folios of its cache. A folio has what one call wrote, so [`LocalStorage`]
/// writes no more than this with one call. After the cache has evicted it, read-ahead can make larger ones.
///
/// [`LocalStorage`]: crate::LocalStorage
pub const FAULT_AROUND: usize = 64 << 10;

pub(crate) struct MappedBlob {
    name: String,
    path: PathBuf,
    file: File,
    map: Arc<Mmap>,
    /// The same mapping, as readers hold it.
    bytes: Bytes,
}

/// The owner of a blob's bytes.
struct Mapping(Arc<Mmap>);

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl MappedBlob {
    /// Maps a file that will not be written any more.
    pub(crate) fn new(name: &str, path: &Path, file: File) -> io::Result<MappedBlob> {
        // SAFETY: the bytes of a mapping must not change while it is borrowed. The file belongs to a directory
        // whose blobs are written only before they are sealed, under a name of their own, and afterwards only
        // unlinked, never written or cut short, and an unlinked file stays until the mapping is dropped. That no other
        // program does otherwise is what `LocalStorage` asks of its directory.
        let map = unsafe { Mmap::map(&file) }?;
        system::advise_random(&map);
        let map = Arc::new(map);
        let bytes = Bytes::from_owner(Mapping(map.clone()));
        Ok(MappedBlob { name: name.to_owned(), path: path.to_owned(), file, map, bytes })
    }
}

/// What the system is told about a mapping.
#[cfg(unix)]
mod system {
    use memmap2::UncheckedAdvice;

    use super::*;

    /// The range that one access makes resident shall be small.
    pub(super) fn advise_random(map: &Mmap) {
        // Only for speed: an error does not matter.
        let _ = map.advise(memmap2::Advice::Random);
    }

    /// Advises one range, which is not empty and within the mapping. The mapping starts at a page and reaches to the end of
    /// the file, so aligning the start downwards, as memmap2 does, and the end upwards, as the system does, stays within
    /// it.
    pub(super) fn advise(map: &Mmap, range: &Range<usize>, advice: Advice) -> io::Result<()> {
        match advice {
            Advice::WillNeed => {
                map.advise_range(memmap2::Advice::WillNeed, range.start, range.len())
            }
            // SAFETY: this is dangerous where pages have contents that no file has. The mapping is shared and
            // read-only, so the pages come back from the file with the bytes they had.
            Advice::DontNeed => unsafe {
                map.unchecked_advise_range(UncheckedAdvice::DontNeed, range.start, range.len())
            },
        }
    }

    /// Makes a range that is not empty resident.
    #[cfg(target_os = "linux")]
    pub(super) fn populate(map: &Mmap, range: Range<usize>) -> io::Result<()> {
        match map.advise_range(memmap2::Advice::PopulateRead, range.start, range.len()) {
            // The system does not know this advice.
            Err(cause) if cause.kind() == io::ErrorKind::InvalidInput => Ok(()),
            // An access would fault. The system reports no more than that.
            Err(cause) if cause.raw_os_error() == Some(EFAULT) => Err(io::Error::other(
                "its device does not give the bytes, or the file was cut short",
            )),
            other => other,
        }
    }

    /// Its number on Linux, on all machines.
    #[cfg(target_os = "linux")]
    const EFAULT: i32 = 14;

    #[cfg(not(target_os = "linux"))]
    pub(super) fn populate(_: &Mmap, _: Range<usize>) -> io::Result<()> {
        Ok(())
    }
}

/// Windows takes no advice on mappings.
#[cfg(windows)]
mod system {
    use super::*;

    pub(super) fn advise_random(_: &Mmap) {}

    pub(super) fn advise(_: &Mmap, _: &Range<usize>, _: Advice) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn populate(_: &Mmap, _: Range<usize>) -> io::Result<()> {
        Ok(())
    }
}

impl Debug for MappedBlob {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        f.debug_struct("MappedBlob").field("length", &self.map.len()).field("path", &path).finish()
    }
}

impl Blob for MappedBlob {
    fn name(&self) -> &str {
        &self.name
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn len(&self) -> u64 {
        self.map.len() as u64
    }

    fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    fn is_mapped(&self) -> bool {
        true
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let mut bytes = vec![0; within(self, &range)?.len()];
        platform::read_exact_at(&self.file, &mut bytes, range.start)
            .map_err(|cause| Error::path("read", &self.path, cause))?;
        Ok(bytes.into())
    }

    fn populate(&self, range: Range<u64>) -> Result<()> {
        let range = within(self, &range)?;
        if range.is_empty() {
            return Ok(());
        }
        system::populate(&self.map, range).map_err(|cause| Error::path("read", &self.path, cause))
    }

    fn advise(&self, ranges: &[Range<u64>], advice: Advice) -> Result<()> {
        let ranges: Vec<Range<usize>> =
            ranges.iter().map(|range| within(self, range)).collect::<Result<_>>()?;
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            system::advise(&self.map, range, advice)
                .map_err(|cause| Error::path("advise on", &self.path, cause))?;
        }
        Ok(())
    }
}
