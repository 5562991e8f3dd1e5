//! A journal in files of a directory.

use std::fmt::{self, Debug, Formatter};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::disk::{Disk, LocalDisk};
use crate::error::{Error, Result};
use crate::journal::committer::Committer;
use crate::journal::format::segment_name;
use crate::journal::reader::{Found, Reader};
use crate::journal::recovery::{Gap, recover};
use crate::journal::segments::{SegmentWriter, Segments};
use crate::journal::{Journal, KnownEnd, Position, Replay};

/// Sizes of a journal in files.
#[derive(Clone, Copy, Debug)]
pub struct FileJournalOptions {
    /// The bytes after which a new segment is begun. A single larger group of records is a segment of its own.
    pub segment_size: u64,
    /// How many bytes of zeros are written ahead of the records; 0 for none.
    pub write_ahead: usize,
    /// The most bytes of records that are queued. Larger records are written at once.
    pub queue_size: usize,
}

impl Default for FileJournalOptions {
    /// Segments of 64 MiB, zeros of 4 MiB and a queue of 4 MiB.
    fn default() -> FileJournalOptions {
        FileJournalOptions { segment_size: 64 << 20, write_ahead: 4 << 20, queue_size: 4 << 20 }
    }
}

/// A journal in files of a directory, which it does not share. Files whose names are not those of its own are
/// ignored.
pub struct FileJournal {
    disk: Arc<dyn Disk>,
    segments: Segments,
    committer: Committer<SegmentWriter>,
    /// The last segment that was missing when the journal was opened.
    gap: Option<Gap>,
    /// Held by the thread that deletes segments.
    releasing: Mutex<()>,
}

impl FileJournal {
    /// Opens the journal in a directory, which is created if it does not exist.
    ///
    /// All records that are there are durable then. Remains of others after a crash are cut off.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] and [`Error::Newer`] name a file that is damaged or of a later version. Nothing is changed then.
    /// Damage to records of complete segments is found when they are replayed. A segment that is missing between others is
    /// an [`Error::Lost`] when records before it are replayed.
    pub fn open(directory: impl AsRef<Path>) -> Result<FileJournal> {
        FileJournal::open_known(directory, &KnownEnd::default())
    }

    /// As [`open`](FileJournal::open), of a journal that is known to reach this position: that it ends before is
    /// an [`Error::Lost`] or [`Error::Corrupt`], and nothing is changed.
    pub fn open_known(directory: impl AsRef<Path>, known: &KnownEnd) -> Result<FileJournal> {
        let disk = Arc::new(LocalDisk::open(directory)?);
        FileJournal::open_known_with(disk, FileJournalOptions::default(), known)
    }

    /// As [`open`](FileJournal::open), with these sizes.
    pub fn open_with(disk: Arc<dyn Disk>, options: FileJournalOptions) -> Result<FileJournal> {
        FileJournal::open_known_with(disk, options, &KnownEnd::default())
    }

    /// As [`open_known`](FileJournal::open_known), with these sizes.
    pub fn open_known_with(
        disk: Arc<dyn Disk>,
        options: FileJournalOptions,
        known: &KnownEnd,
    ) -> Result<FileJournal> {
        let recovered = recover(&*disk, known)?;
        // A random number: the standard library seeds its maps with one.
        let salt = RandomState::new().build_hasher().finish();
        let segments = Segments::new(recovered.firsts);
        let writer = SegmentWriter::new(
            Arc::clone(&disk),
            options,
            segments.clone(),
            salt,
            recovered.previous,
        );
        let committer = Committer::new(writer, recovered.end, options.queue_size, salt);
        let gap = recovered.gap;
        Ok(FileJournal { disk, segments, committer, gap, releasing: Mutex::new(()) })
    }

    fn missing(&self, operation: &'static str, position: Position) -> Error {
        let Range { start, end } = self.range();
        let (place, range) = (self.disk.place(""), start.0..end.0);
        Error::NoRecord { place, operation, position: position.0, range }
    }

    /// Whether a [release](Journal::release) of the records before a position would delete some.
    pub fn can_release(&self, before: Position) -> bool {
        matches!(*self.segments.lock().make_contiguous(), [_, second, ..] if second <= before.0)
    }
}

impl Debug for FileJournal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (place, range) = (self.disk.place(""), self.range());
        f.debug_struct("FileJournal").field("place", &place).field("range", &range).finish()
    }
}

impl Journal for FileJournal {
    fn append(&self, record: &[u8]) -> Result<Position> {
        self.committer.append(record).map(Position)
    }

    fn write(&self, upto: Position) -> Result<()> {
        match self.committer.write_queue(upto.0)? {
            true => Ok(()),
            false => Err(self.missing("write", upto)),
        }
    }

    fn sync(&self, upto: Position) -> Result<()> {
        match self.committer.sync(upto.0)? {
            true => Ok(()),
            false => Err(self.missing("sync", upto)),
        }
    }

    fn replay(&self, from: Position) -> Result<Replay> {
        if let Some(gap) = &self.gap
            && from.0 < gap.end
            && self.segments.lock().front().is_some_and(|first| *first < gap.end)
        {
            return Err(gap.error());
        }
        let range = self.range();
        if !(range.start..=range.end).contains(&from) {
            return Err(self.missing("replay", from));
        }
        let (end, _) = self.committer.ends();
        let firsts = self.segments.lock();
        let at = firsts.partition_point(|first| *first <= from.0).saturating_sub(1);
        let firsts = firsts.range(at..).copied().collect();
        let disk = Arc::clone(&self.disk);
        Ok(Box::new(FileReplay { disk, firsts, at: 0, reader: None, next: from.0, end }))
    }

    fn release(&self, before: Position) -> Result<()> {
        let _releasing = self.releasing.lock().unwrap_or_else(PoisonError::into_inner);
        self.committer.check()?;
        loop {
            let first = match *self.segments.lock().make_contiguous() {
                [first, second, ..] if second <= before.0 => first,
                _ => return Ok(()),
            };
            let name = segment_name(first);
            let failed = |cause| Error::io("delete", self.disk.place(&name), cause);
            // Without a sync of the directory: segments that a crash brings back are released again.
            self.disk.remove(&name).map_err(failed)?;
            self.segments.lock().pop_front();
        }
    }

    fn range(&self) -> Range<Position> {
        let (_, end) = self.committer.ends();
        let start = self.segments.lock().front().map_or(0, |first| *first);
        let start = self.gap.as_ref().map_or(start, |gap| start.max(gap.end));
        Position(start.min(end))..Position(end)
    }

    fn place(&self, record: Position) -> String {
        let firsts = self.segments.lock();
        let segment = firsts.partition_point(|first| *first <= record.0).checked_sub(1);
        let name =
            segment.and_then(|segment| firsts.get(segment)).map(|first| segment_name(*first));
        format!("record {record} in {}", self.disk.place(name.as_deref().unwrap_or_default()))
    }
}

/// The records of the segments of a directory.
struct FileReplay {
    disk: Arc<dyn Disk>,
    /// The segments to read, and which of them comes next.
    firsts: Vec<u64>,
    at: usize,
    reader: Option<Reader>,
    next: u64,
    /// The position after the last record.
    end: u64,
}

impl FileReplay {
    fn read(&mut self) -> Result<Bytes> {
        loop {
            let mut reader = match self.reader.take() {
                Some(reader) => reader,
                None => self.open()?,
            };
            match reader.next_record()? {
                Found::Next(_) if reader.position() <= self.next => self.reader = Some(reader),
                Found::Next(record) => {
                    self.reader = Some(reader);
                    return Ok(record);
                }
                // The next segment has to begin where this one ends.
                Found::End if self.firsts.get(self.at) == Some(&reader.position()) => {}
                Found::End => {
                    let what = format!("it ends before record {}", reader.position());
                    return Err(reader.corrupt(reader.offset(), what));
                }
                Found::Bad { offset, what } => return Err(reader.corrupt(offset, what)),
            }
        }
    }

    /// Opens the next segment, at the first record that is asked for.
    fn open(&mut self) -> Result<Reader> {
        let Some(first) = self.firsts.get(self.at).filter(|first| **first <= self.next) else {
            // It was released meanwhile.
            let (place, range) = (self.disk.place(""), self.next..self.next);
            let position = self.next;
            return Err(Error::NoRecord { place, operation: "replay", position, range });
        };
        let mut reader = Reader::open(&*self.disk, *first)?;
        self.at += 1;
        if reader.position() < self.next
            && let Found::Bad { offset, what } = reader.skip_to(self.next)?
        {
            return Err(reader.corrupt(offset, what));
        }
        Ok(reader)
    }
}

impl Iterator for FileReplay {
    type Item = Result<(Position, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let record = self.read();
        match record.is_ok() {
            true => self.next += 1,
            false => self.next = self.end,
        }
        Some(record.map(|record| (Position(self.next - 1), record)))
    }
}
