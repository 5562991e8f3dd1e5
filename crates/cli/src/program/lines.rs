//! The lines of a program.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor};
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};

/// How often something else is done while standard input is waited for, in milliseconds.
const IDLE: u8 = 5;

/// The work done while standard input is waited for.
pub(crate) type Idle<'a> = &'a mut dyn FnMut() -> io::Result<()>;

/// The source of a program's lines.
pub(super) enum Lines {
    Text(Cursor<Vec<u8>>),
    Stdin(BufReader<File>),
}

impl Lines {
    /// Standard input, which is read only as needed.
    pub(super) fn stdin() -> io::Result<Self> {
        let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok(Self::Stdin(BufReader::new(stdin)))
    }

    /// Reads up to the end of a line.
    pub(super) fn read(
        &mut self,
        to: &mut Vec<u8>,
        idle: &mut Option<Idle<'_>>,
    ) -> io::Result<usize> {
        match self {
            Self::Text(text) => text.read_until(b'\n', to),
            Self::Stdin(stdin) => {
                let Some(idle) = idle else { return stdin.read_until(b'\n', to) };
                let before = to.len();
                loop {
                    while stdin.buffer().is_empty() && !is_ready(stdin.get_ref())? {
                        idle()?;
                    }
                    let there = stdin.fill_buf()?;
                    let end = there.iter().position(|byte| *byte == b'\n');
                    let length = end.map_or(there.len(), |end| end + 1);
                    to.extend_from_slice(&there[..length]);
                    stdin.consume(length);
                    if end.is_some() || length == 0 {
                        return Ok(to.len() - before);
                    }
                }
            }
        }
    }
}

/// Whether there is something to read, or the end; waits a moment for it.
fn is_ready(stdin: &File) -> io::Result<bool> {
    match poll(&mut [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)], IDLE) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
