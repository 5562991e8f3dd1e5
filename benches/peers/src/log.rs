//! The bare log: the rate that the disk allows.
//!
//! Rows go to a file of zeros, which is written again from its beginning, and nothing can be read. A thread that finds
//! no other one writing writes and syncs all rows that wait, with one call of each, and wakes their threads.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::Result;
use crate::store::Store;

/// The bytes of the file.
const LENGTH: u64 = 64 << 20;

/// A file to which rows are written in groups.
pub struct Log {
    file: File,
    state: Mutex<State>,
    written: Condvar,
}

struct State {
    queue: Vec<u8>,
    /// The memory of the group before.
    spare: Vec<u8>,
    /// The number of the group that the queue will be.
    group: u64,
    /// All groups before this one are durable, unless writing failed.
    durable: u64,
    is_writing: bool,
    /// Where the next group is written.
    end: u64,
}

impl Log {
    /// Creates the file.
    pub fn open(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let file = File::create(folder.join("log"))?;
        let zeros = vec![0; 1 << 20];
        for offset in (0..LENGTH).step_by(zeros.len()) {
            file.write_all_at(&zeros, offset)?;
        }
        file.sync_all()?;
        let (queue, spare) = (Vec::new(), Vec::new());
        let state = State { queue, spare, group: 0, durable: 0, is_writing: false, end: 0 };
        Ok(Self { file, state: Mutex::new(state), written: Condvar::new() })
    }

    fn write(&self, group: &[u8], offset: u64) -> Result<()> {
        self.file.write_all_at(group, offset)?;
        Ok(self.file.sync_data()?)
    }
}

impl Store for Log {
    fn name(&self) -> &'static str {
        "bare log"
    }

    fn put(&self, key: u64, value: &[u8]) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.queue.extend_from_slice(&key.to_be_bytes());
        state.queue.extend_from_slice(value);
        let group = state.group;
        while state.is_writing && state.durable <= group {
            state = self.written.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.durable > group {
            return Ok(());
        }
        state.is_writing = true;
        state.group += 1;
        let spare = std::mem::take(&mut state.spare);
        let mut rows = std::mem::replace(&mut state.queue, spare);
        let offset = if state.end + rows.len() as u64 > LENGTH { 0 } else { state.end };
        state.end = offset + rows.len() as u64;
        drop(state);
        let written = self.write(&rows, offset);
        rows.clear();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.spare, state.durable, state.is_writing) = (rows, group + 1, false);
        drop(state);
        self.written.notify_all();
        written
    }
}
