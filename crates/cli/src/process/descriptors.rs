//! The limit of open files.

/// Raises the soft limit of open files to the hard limit: each file of state stays open, and many systems start
/// with a soft limit of about a thousand.
pub(crate) fn raise() {
    #[cfg(unix)]
    {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the functions read and write the limit passed to them, which outlives the calls. If they fail,
        // the limit is unchanged.
        unsafe {
            if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
                limit.rlim_cur = limit.rlim_max;
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
            }
        }
    }
}
