//! A range of memory that is mapped, and whose parts can be given back to the system.

use std::io;

use memmap2::{MmapMut, MmapRaw};

/// Mapped memory. It begins as zeros.
#[derive(Debug)]
pub(super) struct Region(MmapRaw);

impl Region {
    /// Maps so many bytes, in huge pages if they are wanted and to be had.
    pub(super) fn map(bytes: usize, huge: bool) -> io::Result<Self> {
        let region = MmapMut::map_anon(bytes)?;
        if huge {
            system::ask_for_huge_pages(&region);
        }
        Ok(Self(region.into()))
    }

    /// Its first byte.
    pub(super) fn as_mut_ptr(&self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    /// Whether ranges that begin and end at multiples of so many bytes can be [released](Region::release).
    pub(super) fn can_release(unit: usize) -> bool {
        system::page().is_some_and(|page| unit.is_multiple_of(page))
    }

    /// Gives the memory of a range back to the system. The next access reads zeros or the old contents. If the call fails,
    /// the range stays as it is.
    ///
    /// # Safety
    ///
    /// Nothing refers to the range, its ends are multiples of a unit that [can be released](Region::can_release), and
    /// every content is valid for its next owner.
    pub(super) unsafe fn release(&self, start: usize, bytes: usize) {
        // SAFETY: as the caller says.
        unsafe { system::release(&self.0, start, bytes) }
    }
}

#[cfg(unix)]
mod system {
    use memmap2::{MmapMut, MmapRaw, UncheckedAdvice};

    /// The bytes of a page; `None` if the system does not say.
    pub(super) fn page() -> Option<usize> {
        // SAFETY: the call only returns a number.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(bytes).ok()
    }

    /// # Safety
    ///
    /// As [`Region::release`](super::Region::release).
    pub(super) unsafe fn release(region: &MmapRaw, start: usize, bytes: usize) {
        // SAFETY: the call discards the contents of this range, whose pages are all in it, and the caller says that
        // nobody needs them.
        let _ = unsafe { region.unchecked_advise_range(UncheckedAdvice::DontNeed, start, bytes) };
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    pub(super) fn ask_for_huge_pages(region: &MmapMut) {
        let _ = region.advise(memmap2::Advice::HugePage);
    }

    #[cfg(not(all(target_os = "linux", not(miri))))]
    pub(super) fn ask_for_huge_pages(_: &MmapMut) {}
}

/// Windows takes back whole mappings only.
#[cfg(windows)]
mod system {
    use memmap2::{MmapMut, MmapRaw};

    pub(super) fn page() -> Option<usize> {
        None
    }

    pub(super) unsafe fn release(_: &MmapRaw, _: usize, _: usize) {}

    pub(super) fn ask_for_huge_pages(_: &MmapMut) {}
}
