//! The allocator, which is to have resident what is counted against the budget and little more.
//!
//! Pages have memory of their own (`alluvium_trace::memory`). Beside them there are buffers, some of them large, which grow
//! and go. A program that embeds the engine has an allocator of its own.

/// Large buffers are given back to the system at once, and small ones soon, where the allocator is the GNU C library's,
/// unless `MALLOC_MMAP_THRESHOLD_` in the environment says what is large.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if std::env::var_os("MALLOC_MMAP_THRESHOLD_").is_none() {
        // By itself the library takes what is freed for a sign that more of the kind is to come, and keeps it.
        const LARGE: libc::c_int = 1 << 20;
        const KEPT: libc::c_int = 8 << 20;
        // SAFETY: the function sets numbers, and takes them whatever they are.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
        }
    }
}
