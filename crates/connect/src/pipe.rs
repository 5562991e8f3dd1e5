//! Waiting for what comes through a pipe.

use std::fs::File;
use std::io;
use std::time::Duration;

/// Whether a pipe has something to read, or is closed; waits so long for it, at most a quarter of a second. On Windows a
/// pipe is always taken to be ready: reading it waits.
pub(crate) fn is_ready(pipe: &File, timeout: Duration) -> io::Result<bool> {
    system::is_ready(pipe, timeout)
}

#[cfg(unix)]
mod system {
    use std::os::fd::AsFd;

    use nix::errno::Errno;
    use nix::poll::{PollFd, PollFlags, poll};

    use super::*;

    pub(super) fn is_ready(pipe: &File, timeout: Duration) -> io::Result<bool> {
        let milliseconds = timeout.as_micros().div_ceil(1000).min(u8::MAX.into()) as u8;
        match poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], milliseconds) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(windows)]
mod system {
    use super::*;

    pub(super) fn is_ready(_: &File, _: Duration) -> io::Result<bool> {
        Ok(true)
    }
}
