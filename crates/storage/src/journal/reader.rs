//! Reading a segment, one record at a time.
//!
//! A reader holds a window of the file, or one record if that is larger. It believes no length before it has compared it
//! with the size of the file.

use std::io;

use bytes::Bytes;

use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::journal::format::{
    GROUP_HEADER, GROUP_MAGIC, GroupHeader, RECORD_HEADER, SEGMENT_HEADER, SegmentHeader, VERSION,
    digest, get, record_checksum, segment_name,
};

/// How many bytes are read with one call.
const WINDOW: usize = 128 << 10;

/// No journal gets as far as this record: beyond it, positions could overflow.
const LAST: u64 = u64::MAX / 2;

/// A position in a segment.
#[derive(Debug)]
pub(crate) struct Reader {
    file: Box<dyn DiskFile>,
    place: String,
    header: SegmentHeader,
    /// Where the next group or record begins.
    offset: u64,
    /// The position of the next record.
    position: u64,
    /// The records of this group that were not read yet, and where they end.
    left: u32,
    group_end: u64,
    window: Vec<u8>,
    window_offset: u64,
}

/// The next item of a reader.
pub(crate) enum Found<T> {
    Next(T),
    /// The file ends here.
    End,
    /// The bytes from here on are not those that were written.
    Bad {
        offset: u64,
        what: &'static str,
    },
}

impl Reader {
    /// Opens the segment that begins with this record, and checks its header.
    pub(crate) fn open(disk: &dyn Disk, first: u64) -> Result<Reader> {
        let name = segment_name(first);
        let place = disk.place(&name);
        let failed = |cause| Error::io("open", place.clone(), cause);
        let file = disk.open(&name).map_err(failed)?;
        let corrupt = |offset, what: &str| {
            let (place, what) = (place.clone(), what.to_owned());
            Err(Error::Corrupt { place, offset, what })
        };
        let mut bytes = [0; SEGMENT_HEADER];
        let size = file.size().map_err(failed)?;
        if size < SEGMENT_HEADER as u64 {
            return corrupt(size, "the file ends before its header does");
        }
        file.read_at(&mut bytes, 0).map_err(failed)?;
        let header = match SegmentHeader::parse(&bytes) {
            Ok(header) => header,
            Err(what) => return corrupt(0, what),
        };
        if header.version != VERSION {
            return Err(Error::Newer { place, found: header.version, known: VERSION });
        }
        if header.first != first || first > LAST {
            return corrupt(16, "it begins with another record than its name says");
        }
        Ok(Reader {
            file,
            place,
            header,
            offset: SEGMENT_HEADER as u64,
            position: first,
            left: 0,
            group_end: SEGMENT_HEADER as u64,
            window: Vec::new(),
            window_offset: 0,
        })
    }

    pub(crate) fn header(&self) -> &SegmentHeader {
        &self.header
    }

    pub(crate) fn file(&self) -> &dyn DiskFile {
        &*self.file
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Where the next group or record begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The position of the next record.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn size(&self) -> Result<u64> {
        self.file.size().map_err(|cause| self.failed(cause))
    }

    /// The error of a file whose bytes are not those that were written.
    pub(crate) fn corrupt(&self, offset: u64, what: impl Into<String>) -> Error {
        Error::Corrupt { place: self.place.clone(), offset, what: what.into() }
    }

    fn failed(&self, cause: io::Error) -> Error {
        Error::io("read", self.place.clone(), cause)
    }

    /// The header of the group that begins here. The last one must be read or skipped to its end.
    pub(crate) fn next_group(&mut self) -> Result<Found<GroupHeader>> {
        let offset = self.offset;
        let bad = |what| Ok(Found::Bad { offset, what });
        let size = self.size()?;
        if offset == size {
            return Ok(Found::End);
        }
        if size.saturating_sub(offset) < GROUP_HEADER as u64 {
            return bad("the file ends within the header of a group");
        }
        let mut bytes = [0; GROUP_HEADER];
        bytes.copy_from_slice(self.bytes(offset, GROUP_HEADER)?);
        let Some(group) = GroupHeader::parse(&bytes, offset, self.header.salt) else {
            return bad("no group of records begins here");
        };
        let start = offset + GROUP_HEADER as u64;
        if group.length > size - start {
            return bad("the file ends within a group of records");
        }
        if group.first != self.position || group.end().is_none() {
            return bad("a group begins with another record than the one expected");
        }
        self.offset = start;
        self.group_end = start + group.length;
        self.left = group.count;
        Ok(Found::Next(group))
    }

    /// The next record of the group, if it has one.
    pub(crate) fn next_of_group(&mut self) -> Result<Option<Found<Bytes>>> {
        let offset = self.offset;
        let bad = |what| Ok(Some(Found::Bad { offset, what }));
        if self.left == 0 {
            return match offset == self.group_end {
                true => Ok(None),
                false => bad("a group is longer than its records"),
            };
        }
        let room = self.group_end - offset;
        if room < RECORD_HEADER as u64 {
            return bad("a group ends within the header of a record");
        }
        let header = self.bytes(offset, RECORD_HEADER)?;
        let (length, checksum) = (get(header, 0), get(header, 8));
        let start = offset + RECORD_HEADER as u64;
        if length > room - RECORD_HEADER as u64 {
            return bad("a group ends within a record");
        }
        let record = self.copy(start, length as usize)?;
        if checksum != record_checksum(self.position, length, digest(&record), self.header.salt) {
            return bad("the checksum of a record does not match");
        }
        self.offset = start + length;
        self.position += 1;
        self.left -= 1;
        Ok(Some(Found::Next(record)))
    }

    /// The next record, in this group or the next one.
    pub(crate) fn next_record(&mut self) -> Result<Found<Bytes>> {
        loop {
            if let Some(found) = self.next_of_group()? {
                return Ok(found);
            }
            match self.next_group()? {
                Found::Next(_) => {}
                Found::End => return Ok(Found::End),
                Found::Bad { offset, what } => return Ok(Found::Bad { offset, what }),
            }
        }
    }

    /// Goes to the group that has this record, without reading the records before it.
    pub(crate) fn skip_to(&mut self, position: u64) -> Result<Found<()>> {
        loop {
            match self.next_group()? {
                Found::Next(group) => {
                    let end = group.end().unwrap_or(u64::MAX);
                    if end > position {
                        return Ok(Found::Next(()));
                    }
                    (self.offset, self.position, self.left) = (self.group_end, end, 0);
                }
                Found::End => return Ok(Found::End),
                Found::Bad { offset, what } => return Ok(Found::Bad { offset, what }),
            }
        }
    }

    /// Reads the next group with all of its records.
    pub(crate) fn read_group(&mut self) -> Result<Found<()>> {
        match self.next_group()? {
            Found::Next(_) => {}
            Found::End => return Ok(Found::End),
            Found::Bad { offset, what } => return Ok(Found::Bad { offset, what }),
        }
        self.read_records()
    }

    /// Reads the records that are left of the group.
    pub(crate) fn read_records(&mut self) -> Result<Found<()>> {
        while let Some(found) = self.next_of_group()? {
            if let Found::Bad { offset, what } = found {
                return Ok(Found::Bad { offset, what });
            }
        }
        Ok(Found::Next(()))
    }

    /// Goes to the group that begins at this offset with this record, and reads the file again from there on.
    pub(crate) fn go_to(&mut self, offset: u64, position: u64) {
        (self.offset, self.position) = (offset, position);
        (self.left, self.group_end) = (0, offset);
        self.window.clear();
    }

    /// Whether a group from this offset on says that this record was durable when the group was written.
    pub(crate) fn is_vouched_for(&mut self, position: u64, offset: u64) -> Result<bool> {
        Ok(self.find_group(offset, |group| group.durable > position)?.is_some())
    }

    /// The first group from this offset on for which `accept` holds, and where it begins.
    pub(crate) fn find_group(
        &mut self,
        mut offset: u64,
        accept: impl Fn(&GroupHeader) -> bool,
    ) -> Result<Option<(u64, GroupHeader)>> {
        loop {
            let rest = self.size()?.saturating_sub(offset);
            if rest < GROUP_HEADER as u64 {
                return Ok(None);
            }
            let salt = self.header.salt;
            let length = rest.min(WINDOW as u64) as usize;
            let bytes = self.bytes(offset, length)?;
            let found = bytes.windows(GROUP_HEADER).enumerate().find_map(|(at, candidate)| {
                let (true, Ok(header)) =
                    (candidate.starts_with(&GROUP_MAGIC), candidate.try_into())
                else {
                    return None;
                };
                let offset = offset + at as u64;
                let group = GroupHeader::parse(header, offset, salt).filter(&accept)?;
                Some((offset, group))
            });
            if found.is_some() {
                return Ok(found);
            }
            offset += (length - (GROUP_HEADER - 1)) as u64;
        }
    }

    /// Whether the file has only zeros from this offset on.
    pub(crate) fn is_zero_from(&mut self, mut offset: u64) -> Result<bool> {
        loop {
            let rest = self.size()?.saturating_sub(offset);
            let length = rest.min(WINDOW as u64) as usize;
            if length == 0 {
                return Ok(true);
            }
            if self.bytes(offset, length)?.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            offset += length as u64;
        }
    }

    /// A record's bytes.
    fn copy(&mut self, offset: u64, length: usize) -> Result<Bytes> {
        if length <= WINDOW {
            return Ok(Bytes::copy_from_slice(self.bytes(offset, length)?));
        }
        let mut record = vec![0; length];
        self.file.read_at(&mut record, offset).map_err(|cause| self.failed(cause))?;
        Ok(record.into())
    }

    /// At most a window of bytes, which are in the file.
    fn bytes(&mut self, offset: u64, length: usize) -> Result<&[u8]> {
        let end = self.window_offset + self.window.len() as u64;
        if offset < self.window_offset || offset + length as u64 > end {
            // The file may become shorter: zeros written ahead are cut off.
            while let Err(cause) = self.fill(offset, length) {
                if cause.kind() != io::ErrorKind::UnexpectedEof
                    || self.size()? < offset + length as u64
                {
                    return Err(self.failed(cause));
                }
            }
        }
        let start = (offset - self.window_offset) as usize;
        Ok(&self.window[start..start + length])
    }

    fn fill(&mut self, offset: u64, length: usize) -> io::Result<()> {
        let rest = self.file.size()?.saturating_sub(offset);
        self.window.clear();
        self.window.resize(rest.min(WINDOW as u64).max(length as u64) as usize, 0);
        self.window_offset = offset;
        let read = self.file.read_at(&mut self.window, offset);
        if read.is_err() {
            self.window.clear();
        }
        read
    }
}
