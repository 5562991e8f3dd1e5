//! Text that several threads decode at once.
//!
//! One thread cuts a text into [`Blocks`] of whole rows, which costs little: [`Boundaries`] only look for where rows end.
//! Others decode blocks ([`workers`]), and [`reader`] gives their rows in the order of the text. So memory has at most a few blocks for
//! each thread and their rows, however large the text is. A text of one block is decoded where it is read.

mod reader;
mod workers;

use std::io::{self, BufRead};

pub use reader::{BlockReader, Decode};
pub use workers::{Work, Workers};

use alluvium::SourceRequest;

use crate::input::Text;

/// A longer text without the end of a row is a block, too: who decodes it says what is wrong.
const LONGEST: usize = 17 << 20;

/// How many bytes a block should have: what a portion should, within reason.
pub fn bytes(request: &SourceRequest) -> usize {
    request.batch_bytes.clamp(64 << 10, 1 << 20)
}

/// Some whole rows.
pub struct Block {
    pub text: Vec<u8>,
    /// How many lines come before it.
    pub lines: u64,
}

/// Finds where rows end.
pub trait Boundaries {
    /// Passes over more of a text, from `from` on, which is where the last call stopped.
    fn pass(&mut self, text: &[u8], from: usize, seen: &mut Seen);
}

/// What was seen of a block.
#[derive(Default)]
pub struct Seen {
    /// How many lines end in it.
    lines: u64,
    /// Where its last whole row ends, and how many lines do before.
    end: Option<(usize, u64)>,
}

impl Seen {
    /// A line ends before `at`.
    pub fn line(&mut self) {
        self.lines += 1;
    }

    /// A row does, with the line that was counted last.
    pub fn row(&mut self, at: usize) {
        self.end = Some((at, self.lines));
    }

    /// Where the last whole row ends that was seen since this was last asked, and how many lines do before.
    pub fn take_end(&mut self) -> Option<(usize, u64)> {
        self.end.take()
    }
}

/// Each line is a row.
pub struct Lines;

impl Boundaries for Lines {
    fn pass(&mut self, text: &[u8], from: usize, seen: &mut Seen) {
        for end in memchr::memchr_iter(b'\n', &text[from..]) {
            seen.line();
            seen.row(from + end + 1);
        }
    }
}

/// The blocks of a text.
pub struct Blocks<B> {
    input: Text,
    boundaries: B,
    /// How many bytes a block should have.
    bytes: usize,
    /// What was read and is in no block yet.
    text: Vec<u8>,
    lines: u64,
    seen: Seen,
}

impl<B: Boundaries> Blocks<B> {
    /// Blocks of some `bytes` of a text, before which so many lines come.
    pub fn new(input: Text, boundaries: B, bytes: usize, lines: u64) -> Self {
        Self { input, boundaries, bytes, text: Vec::new(), lines, seen: Seen::default() }
    }

    /// The next block.
    pub fn next(&mut self) -> io::Result<Option<Block>> {
        loop {
            let more = self.input.fill_buf()?;
            let (from, length) = (self.text.len(), more.len());
            self.text.extend_from_slice(more);
            self.input.consume(length);
            if length == 0 {
                let text = std::mem::take(&mut self.text);
                return Ok((!text.is_empty()).then_some(Block { text, lines: self.lines }));
            }
            self.boundaries.pass(&self.text, from, &mut self.seen);
            if self.text.len() >= self.bytes
                && let Some((end, lines)) = self.seen.take_end()
            {
                let rest = self.text.split_off(end);
                let text = std::mem::replace(&mut self.text, rest);
                self.seen.lines -= lines;
                self.lines += lines;
                return Ok(Some(Block { text, lines: self.lines - lines }));
            }
            if self.text.len() >= LONGEST {
                let text = std::mem::take(&mut self.text);
                self.seen = Seen::default();
                return Ok(Some(Block { text, lines: self.lines }));
            }
        }
    }

    /// Whether there is nothing after the blocks that were read.
    pub fn is_over(&mut self) -> io::Result<bool> {
        Ok(self.text.is_empty() && self.input.fill_buf()?.is_empty())
    }
}
