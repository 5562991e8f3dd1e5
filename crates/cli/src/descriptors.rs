//! How many files the process may have open.

/// Lets the process have as many files open as its user may allow it: each file that state is read from is one, and many
/// systems begin with a thousand.
pub(crate) fn raise() {
    #[cfg(unix)]
    {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the functions read and write the limit they are given, which lives as long as the calls. If they fail, it
        // stays what it was.
        unsafe {
            if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
                limit.rlim_cur = limit.rlim_max;
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
            }
        }
    }
}
