//! The allocator of each side: mimalloc for DBSP, as in the benchmarks of its authors, and the system's for all others.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering};

use dbsp::mimalloc::MiMalloc;

/// The environment variable by which a process takes mimalloc.
pub const VARIABLE: &str = "ALLUVIUM_RACE_MIMALLOC";

const VARIABLE_C: &CStr = c"ALLUVIUM_RACE_MIMALLOC";

const UNKNOWN: u8 = 0;
const SYSTEM: u8 = 1;
const MIMALLOC: u8 = 2;

static CHOICE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// One of two allocators, chosen with the first allocation of the process.
pub struct Allocator;

fn is_mimalloc() -> bool {
    match CHOICE.load(Ordering::Relaxed) {
        UNKNOWN => {
            // SAFETY: the name is a C string. The first allocation comes before the program has other threads.
            let is_mimalloc = unsafe { !libc::getenv(VARIABLE_C.as_ptr()).is_null() };
            CHOICE.store(if is_mimalloc { MIMALLOC } else { SYSTEM }, Ordering::Relaxed);
            is_mimalloc
        }
        choice => choice == MIMALLOC,
    }
}

// SAFETY: all calls go to one allocator, because the choice never changes.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of both allocators.
        unsafe { if is_mimalloc() { MiMalloc.alloc(layout) } else { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            if is_mimalloc() { MiMalloc.alloc_zeroed(layout) } else { System.alloc_zeroed(layout) }
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe {
            if is_mimalloc() {
                MiMalloc.dealloc(pointer, layout);
            } else {
                System.dealloc(pointer, layout);
            }
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            if is_mimalloc() {
                MiMalloc.realloc(pointer, layout, size)
            } else {
                System.realloc(pointer, layout, size)
            }
        }
    }
}

/// Lets the system's allocator retain much free memory, as the program `alluvium` does.
pub fn loosen() {
    set_thresholds(32 << 20, 64 << 20);
}

/// Lets the system's allocator retain little free memory, because much of a budget of `limit` bytes is used, and
/// releases what is free; as the program `alluvium` does.
pub fn tighten(limit: usize) {
    set_thresholds(
        (limit / 512).clamp(128 << 10, 1 << 20),
        (limit / 128).clamp(256 << 10, 8 << 20),
    );
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the function only releases free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), expect(unused_variables))]
fn set_thresholds(large: usize, retained: usize) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the function sets parameters, and accepts any value.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, large as libc::c_int);
        libc::mallopt(libc::M_TRIM_THRESHOLD, retained as libc::c_int);
    }
}
