//! The allocator, which is to have resident what is counted against the budget and little more.
//!
//! Pages have memory of their own (`alluvium_trace::memory`). Beside them there are buffers, some of them large, which grow
//! and go. A program that embeds the engine has an allocator of its own.

/// Says when what is free is given back to the system, where the allocator is the GNU C library's: large buffers at once
/// and small ones soon where a budget `is_limited`, and otherwise seldom, because to get memory again takes time.
/// `MALLOC_MMAP_THRESHOLD_` in the environment is for who knows better.
pub(crate) fn tune(is_limited: bool) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if std::env::var_os("MALLOC_MMAP_THRESHOLD_").is_none() {
        // What is large, and how much of what is free is kept. By itself the library begins with 128 KiB for both, and
        // takes what is freed for a sign that more of the kind is to come.
        let (large, kept) = if is_limited { (1 << 20, 8 << 20) } else { (32 << 20, 64 << 20) };
        // SAFETY: the function sets numbers, and takes them whatever they are.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, large);
            libc::mallopt(libc::M_TRIM_THRESHOLD, kept);
        }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = is_limited;
}
