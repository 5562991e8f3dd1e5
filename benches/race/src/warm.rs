//! Memory that the system has at hand.
//!
//! The host of a virtual machine takes memory back that nothing uses, and gives it again page by page when it is touched, which can cost
//! more than the whole run: 2.3 s for a GiB on one machine, 25 times as much as a page that the machine has. Then the times
//! are those of the host. So before each timed run pages are touched and released.

use std::ptr;

use crate::Result;

/// How much is touched, if the machine has twice as much to spare.
const BYTES: usize = 6 << 30;

/// Touches memory and gives it back to the system, not to the host.
pub fn warm() -> Result<()> {
    // SAFETY: the function reads a number.
    let (pages, page) =
        unsafe { (libc::sysconf(libc::_SC_AVPHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let (pages, page) = (usize::try_from(pages)?, usize::try_from(page)?);
    let bytes = BYTES.min(pages * page / 2);
    // SAFETY: a new mapping belongs to this function alone. It is written where it is mapped, and nothing refers to it after its end.
    unsafe {
        let (protection, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let start = libc::mmap(ptr::null_mut(), bytes, protection, kind, -1, 0);
        if start == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error().into());
        }
        #[cfg(target_os = "linux")]
        libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
        for offset in (0..bytes).step_by(page) {
            start.cast::<u8>().add(offset).write_volatile(1);
        }
        libc::munmap(start, bytes);
    }
    Ok(())
}
