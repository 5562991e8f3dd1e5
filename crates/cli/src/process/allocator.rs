//! Settings of the allocator, so that resident memory stays close to what the budget tracks.
//!
//! Pages of batches are allocated by `alluvium_trace::memory`. All other buffers, some of them large and
//! short-lived, come from the allocator. Returning memory to the system and requesting it again costs time, so free
//! memory is retained until the budget gets tight. These settings exist only in the GNU C library. A program that
//! embeds the engine chooses its own allocator.

/// Lets the allocator retain much free memory.
///
/// By default both thresholds start at 128 KiB, and rise when large buffers are freed.
pub(crate) fn loosen() {
    set_thresholds(32 << 20, 64 << 20);
}

/// Lets the allocator retain little free memory, because much of a budget of `limit` bytes is used, and releases
/// what is free.
pub(crate) fn tighten(limit: usize) {
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

/// Releases buffers of at least `large` bytes at once, and other free memory beyond `retained` bytes. The
/// environment variable `MALLOC_MMAP_THRESHOLD_` overrides this.
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), expect(unused_variables))]
fn set_thresholds(large: usize, retained: usize) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if std::env::var_os("MALLOC_MMAP_THRESHOLD_").is_none() {
        // SAFETY: the function sets parameters, and accepts any value.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, large as libc::c_int);
            libc::mallopt(libc::M_TRIM_THRESHOLD, retained as libc::c_int);
        }
    }
}
