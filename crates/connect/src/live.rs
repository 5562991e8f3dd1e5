//! Text that comes while it is read: from a pipe, or a file that grows.

use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::thread;
use std::time::{Duration, Instant};

use alluvium::Live;
use alluvium::unstable::platform;

use crate::input::{Counter, check_length};
use crate::pipe;

/// How much is read from the system at a time.
const PIECE: usize = 64 << 10;

/// How often to look whether a file has grown.
const LOOK: Duration = Duration::from_millis(20);

/// How long to wait for a pipe before looking whether its rows are still needed.
const PATIENCE: Duration = Duration::from_millis(100);

/// A line is at most as long; the reader refuses a longer one.
const LONGEST: usize = 16 << 20;

/// The text of a pipe, or of a file that may grow, whose reader can tell what is there from what is still to come.
pub struct LiveText {
    file: File,
    /// Whether it is a file and no pipe.
    lasts: bool,
    live: Live,
    counter: Counter,
    /// The bytes that were read, from where they have not been consumed.
    buffer: Vec<u8>,
    at: usize,
    /// No line ends between `at` and here.
    searched: usize,
    is_at_end: bool,
    /// When the portion that is being read ends.
    deadline: Option<Instant>,
}

impl LiveText {
    /// Reads a file after its first `offset` bytes.
    pub fn new(mut file: File, live: Live, counter: Counter, offset: u64) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let lasts = metadata.is_file();
        if offset > 0 {
            check_length(metadata.len(), offset)?;
            file.seek(SeekFrom::Start(offset))?;
        }
        Ok(Self {
            file,
            lasts,
            live,
            counter,
            buffer: Vec::new(),
            at: 0,
            searched: 0,
            is_at_end: false,
            deadline: None,
        })
    }

    /// A portion begins: its first line is waited for.
    pub fn begin_portion(&mut self) {
        self.deadline = None;
    }

    /// Whether the portion continues: there is another line, or the end of the file, before its rows have waited too long.
    pub fn goes_on(&mut self) -> io::Result<bool> {
        let now = Instant::now();
        let deadline = *self.deadline.get_or_insert(now + self.live.linger);
        while now < deadline && !self.has_line() {
            if !self.read_more(Some(deadline))? {
                return Ok(self.is_at_end);
            }
        }
        Ok(now < deadline)
    }

    fn has_line(&mut self) -> bool {
        let from = self.searched.max(self.at);
        let found = self.buffer[from..].iter().position(|byte| *byte == b'\n');
        self.searched = found.map_or(self.buffer.len(), |end| from + end);
        found.is_some() || self.is_at_end || self.buffer.len() - self.at >= LONGEST
    }

    /// Waits for more, no longer than until a deadline. Whether there was any.
    fn read_more(&mut self, deadline: Option<Instant>) -> io::Result<bool> {
        if self.is_at_end {
            return Ok(false);
        }
        let consumed = std::mem::take(&mut self.at);
        self.buffer.drain(..consumed);
        self.searched = self.searched.saturating_sub(consumed);
        loop {
            if self.live.is_over() {
                return Err(io::Error::other("nobody needs its rows any more"));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let patience = left.map_or(PATIENCE, |left| left.min(PATIENCE));
            if self.lasts || pipe::is_ready(&self.file, patience)? {
                let end = self.buffer.len();
                self.buffer.resize(end + PIECE, 0);
                let read = self.file.read(&mut self.buffer[end..]);
                self.buffer.truncate(end + *read.as_ref().unwrap_or(&0));
                match read {
                    Ok(0) if !self.live.follow => {
                        self.is_at_end = true;
                        return Ok(false);
                    }
                    Ok(0) => self.wait_for_growth(left)?,
                    Ok(read) => {
                        self.counter.add(read);
                        return Ok(true);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
        }
    }

    fn wait_for_growth(&mut self, left: Option<Duration>) -> io::Result<()> {
        if self.lasts {
            let metadata = self.file.metadata()?;
            check_length(metadata.len(), self.file.stream_position()?)?;
            if platform::is_unlinked(&metadata) {
                return Err(io::Error::other(
                    "it was deleted, or replaced by another file, after what it had was read: a file that is followed grows",
                ));
            }
        }
        thread::sleep(left.map_or(LOOK, |left| left.min(LOOK)));
        Ok(())
    }
}

impl Read for LiveText {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let from = self.fill_buf()?;
        let length = from.len().min(to.len());
        to[..length].copy_from_slice(&from[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for LiveText {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.buffer.len() {
            self.read_more(None)?;
        }
        Ok(&self.buffer[self.at..])
    }

    fn consume(&mut self, length: usize) {
        self.at += length;
    }
}
