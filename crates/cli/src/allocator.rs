//! The allocator, which is to have resident what is counted against the budget and little more.
//!
//! Pages have memory of their own (`alluvium_trace::memory`). Beside them there are buffers, some of them large, which grow
//! and go. To get memory from the system again takes time, so what is free is kept as long as there is plenty. Where the
//! allocator is not the GNU C library's, nothing is done. A program that embeds the engine has an allocator of its own.

/// Says that what is free is given back to the system seldom.
///
/// By itself the library begins with 128 KiB, for what is large as for what is kept, and takes what is freed for a sign that more
/// of the kind is to come.
pub(crate) fn loosen() {
    keep(32 << 20, 64 << 20);
}

/// Says that it is given back soon, because a good part of `limit` bytes is taken, and gives back what there is.
pub(crate) fn tighten(limit: usize) {
    keep((limit / 512).clamp(128 << 10, 1 << 20), (limit / 128).clamp(256 << 10, 8 << 20));
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the function gives back what is free, and leaves all else as it is.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Buffers of `large` bytes are given back at once, and of smaller ones what is more than `kept` bytes.
/// `MALLOC_MMAP_THRESHOLD_` in the environment is for who knows better.
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), expect(unused_variables))]
fn keep(large: usize, kept: usize) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if std::env::var_os("MALLOC_MMAP_THRESHOLD_").is_none() {
        // SAFETY: the function sets numbers, and takes them whatever they are.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, large as libc::c_int);
            libc::mallopt(libc::M_TRIM_THRESHOLD, kept as libc::c_int);
        }
    }
}
