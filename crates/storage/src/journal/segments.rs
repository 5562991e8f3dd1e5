//! The file that is written, and when the next is begun.
//!
//! # Design
//!
//! A segment is made under another name and renamed once its header is durable: under its name a segment always has one.
//! Before the next segment is begun, this one is cut to its length and synced, so only the last one can be torn. The next
//! one's header has the name and size of this one, so a missing or truncated segment is noticed.
//!
//! Zeros are written ahead of the records. Writing over them changes neither the size of the file nor where it is on the
//! disk, and `fdatasync` has nothing to do but to write the records.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskFile};
use crate::error::{Failure, is_full};
use crate::journal::committer::Log;
use crate::journal::file::FileJournalOptions;
use crate::journal::format::{
    Group, Previous, SEGMENT_HEADER, SegmentHeader, VERSION, nascent_name, segment_name,
};

/// The first records of all segments, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segments {
    firsts: Arc<Mutex<VecDeque<u64>>>,
}

impl Segments {
    pub(crate) fn new(firsts: impl IntoIterator<Item = u64>) -> Segments {
        Segments { firsts: Arc::new(Mutex::new(firsts.into_iter().collect())) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.firsts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The segments as a log: writes to the last one.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    disk: Arc<dyn Disk>,
    options: FileJournalOptions,
    segments: Segments,
    salt: u64,
    /// The segment that is written; none before the first write.
    current: Option<Current>,
    /// The segment before the next one, if that is not `current`.
    previous: Option<Previous>,
    zeros: Vec<u8>,
}

#[derive(Debug)]
struct Current {
    file: Box<dyn DiskFile>,
    place: String,
    first: u64,
    /// Where the next group is written.
    end: u64,
    /// How far the file has been written, with zeros after `end`.
    ahead: u64,
}

impl SegmentWriter {
    /// A writer that begins a new segment after `previous` with its first record.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        options: FileJournalOptions,
        segments: Segments,
        salt: u64,
        previous: Option<Previous>,
    ) -> SegmentWriter {
        let zeros = vec![0; options.write_ahead];
        SegmentWriter { disk, options, segments, salt, current: None, previous, zeros }
    }

    /// Begins a segment before its first record, of this position, is there.
    pub(crate) fn begin_at(&mut self, first: u64) -> Result<(), Failure> {
        self.complete()?;
        self.current = Some(self.begin(first)?);
        Ok(())
    }

    /// Completes the segment that is written.
    fn complete(&mut self) -> Result<(), Failure> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let Current { file, place, first, end, .. } = current;
        self.previous = Some(Previous { first, size: end });
        file.set_size(end)
            .and_then(|()| file.sync())
            .map_err(|cause| Failure::new("complete", place, cause))
    }

    /// Begins the segment of this record. A segment of the same name has no records.
    fn begin(&mut self, first: u64) -> Result<Current, Failure> {
        let header =
            SegmentHeader { version: VERSION, first, salt: self.salt, previous: self.previous };
        let (nascent, name) = (nascent_name(first), segment_name(first));
        let place = self.disk.place(&name);
        let create = || {
            let file = self.disk.create(&nascent)?;
            file.write_at(&header.encode(), 0)?;
            file.sync()?;
            self.disk.rename(&nascent, &name)?;
            self.disk.sync_directory()?;
            Ok(file)
        };
        let file = create().map_err(|cause| Failure::new("create", place.clone(), cause))?;
        let mut firsts = self.segments.lock();
        if firsts.back() != Some(&first) {
            firsts.push_back(first);
        }
        let header = SEGMENT_HEADER as u64;
        Ok(Current { file, place, first, end: header, ahead: header })
    }
}

impl Log for SegmentWriter {
    fn write(&mut self, group: &mut Group, tail: &[u8], durable: u64) -> Result<(), Failure> {
        let length = (group.bytes().len() + tail.len()) as u64;
        let has_room = |current: &Current| {
            current.end == SEGMENT_HEADER as u64
                || current.end + length <= self.options.segment_size
        };
        if !self.current.as_ref().is_some_and(has_room) {
            self.complete()?;
            self.current = Some(self.begin(group.first())?);
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        group.finish(tail.len(), durable, current.end, self.salt);
        current.write(group.bytes(), tail, &self.zeros, self.options.segment_size)
    }

    /// The operating system has it.
    fn settle(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Failure> {
        let Some(current) = &self.current else { return Ok(()) };
        let synced = current.file.sync_data();
        synced.map_err(|cause| Failure::new("sync", current.place.clone(), cause))
    }
}

impl Current {
    fn write(
        &mut self,
        bytes: &[u8],
        tail: &[u8],
        zeros: &[u8],
        limit: u64,
    ) -> Result<(), Failure> {
        let end = self.end + (bytes.len() + tail.len()) as u64;
        let write = |bytes: &[u8], offset| match bytes {
            [] => Ok(()),
            bytes => self.file.write_at(bytes, offset),
        };
        // A group larger than that would write everything twice.
        let is_small = end - self.end <= zeros.len() as u64 / 4;
        let mut ahead = self.ahead;
        if end > ahead && is_small {
            let room = limit.saturating_sub(ahead).min(zeros.len() as u64) as usize;
            match write(&zeros[..room], ahead) {
                Ok(()) => ahead += room as u64,
                // There may be room for the records.
                Err(cause) if is_full(&cause) => {}
                Err(cause) => return Err(Failure::new("append to", self.place.clone(), cause)),
            }
        }
        write(bytes, self.end)
            .and_then(|()| write(tail, self.end + bytes.len() as u64))
            .map_err(|cause| Failure::new("append to", self.place.clone(), cause))?;
        self.end = end;
        self.ahead = ahead.max(end);
        Ok(())
    }
}
