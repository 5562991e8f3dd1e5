//! The bytes of a segment.
//!
//! A segment is a header and groups one after the other. A group is the output of one write: a header and
//! records. All numbers are little-endian, and checksums are XXH3-64. The salt of a segment, a random number in its
//! header, is the seed of all other checksums in it, and they cover positions: so neither bytes of a segment that had
//! the same place on the disk before, nor records that look like groups, can be taken for what they are not.
//!
//! `docs/reference/journal-format.md` describes every field.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The bytes of a segment's header.
pub(crate) const SEGMENT_HEADER: usize = 64;

/// The bytes of a group's header.
pub(crate) const GROUP_HEADER: usize = 48;

/// The bytes of a record's header.
pub(crate) const RECORD_HEADER: usize = 16;

/// The latest version that this program reads, and the one that it writes.
pub(crate) const VERSION: u32 = 1;

const SEGMENT_MAGIC: [u8; 8] = *b"alluvjnl";

/// How a group begins.
pub(crate) const GROUP_MAGIC: [u8; 8] = *b"alluvgrp";

/// The suffix of the names of segments.
const SUFFIX: &str = ".journal";

/// The number of a segment's first record, in its name.
const DIGITS: usize = 20;

/// The name of the segment that begins with this record.
pub(crate) fn segment_name(first: u64) -> String {
    format!("{first:020}{SUFFIX}")
}

/// The name of a segment while it is made.
pub(crate) fn nascent_name(first: u64) -> String {
    format!(".{}.new", segment_name(first))
}

/// The first record of a segment of this name, if it is one.
pub(crate) fn parse_name(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    let is_number = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// Whether this is the name of a segment that is being made.
pub(crate) fn is_nascent(name: &str) -> bool {
    let segment = name.strip_prefix('.').and_then(|name| name.strip_suffix(".new"));
    segment.is_some_and(|segment| parse_name(segment).is_some())
}

/// A segment, as the next one names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Previous {
    pub(crate) first: u64,
    /// The bytes of the complete file.
    pub(crate) size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) version: u32,
    pub(crate) first: u64,
    pub(crate) salt: u64,
    pub(crate) previous: Option<Previous>,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER] {
        let previous = self.previous.unwrap_or(Previous { first: u64::MAX, size: 0 });
        let mut bytes = [0; SEGMENT_HEADER];
        bytes[..8].copy_from_slice(&SEGMENT_MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        put(&mut bytes, 16, self.first);
        put(&mut bytes, 24, self.salt);
        put(&mut bytes, 32, previous.first);
        put(&mut bytes, 40, previous.size);
        let checksum = xxh3_64(&bytes[..56]);
        put(&mut bytes, 56, checksum);
        bytes
    }

    /// Parses a header, or returns the defect. Later versions keep the magic, the version and the checksum.
    pub(crate) fn parse(bytes: &[u8; SEGMENT_HEADER]) -> Result<SegmentHeader, &'static str> {
        if bytes[..8] != SEGMENT_MAGIC {
            return Err("it does not begin as a segment of a journal");
        }
        if get(bytes, 56) != xxh3_64(&bytes[..56]) {
            return Err("the checksum of the header does not match");
        }
        let version = get(bytes, 8) as u32;
        let previous = Previous { first: get(bytes, 32), size: get(bytes, 40) };
        let previous = (previous.first != u64::MAX).then_some(previous);
        Ok(SegmentHeader { version, first: get(bytes, 16), salt: get(bytes, 24), previous })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    /// The position of the first record.
    pub(crate) first: u64,
    /// All records before this position were durable when the group was written.
    pub(crate) durable: u64,
    /// The bytes of all records and their headers.
    pub(crate) length: u64,
    pub(crate) count: u32,
}

impl GroupHeader {
    /// The position after its last record, if there is such a number.
    pub(crate) fn end(&self) -> Option<u64> {
        self.first.checked_add(u64::from(self.count))
    }

    fn encode(&self, offset: u64, salt: u64) -> [u8; GROUP_HEADER] {
        let mut bytes = [0; GROUP_HEADER];
        bytes[..8].copy_from_slice(&GROUP_MAGIC);
        put(&mut bytes, 8, self.first);
        put(&mut bytes, 16, self.durable);
        put(&mut bytes, 24, self.length);
        bytes[32..36].copy_from_slice(&self.count.to_le_bytes());
        let checksum = group_checksum(&bytes, offset, salt);
        put(&mut bytes, 40, checksum);
        bytes
    }

    /// The header, if one is at this offset of a segment with this salt.
    pub(crate) fn parse(bytes: &[u8; GROUP_HEADER], offset: u64, salt: u64) -> Option<GroupHeader> {
        let is_header =
            bytes[..8] == GROUP_MAGIC && get(bytes, 40) == group_checksum(bytes, offset, salt);
        is_header.then(|| GroupHeader {
            first: get(bytes, 8),
            durable: get(bytes, 16),
            length: get(bytes, 24),
            count: get(bytes, 32) as u32,
        })
    }
}

/// The checksum of a group's header: of its first 40 bytes and its place in the file.
fn group_checksum(header: &[u8; GROUP_HEADER], offset: u64, salt: u64) -> u64 {
    let mut bytes = *header;
    put(&mut bytes, 40, offset);
    xxh3_64_with_seed(&bytes, salt)
}

/// The part of a record's checksum that does not depend on its position.
pub(crate) fn digest(record: &[u8]) -> u64 {
    xxh3_64(record)
}

/// The checksum of a record: of its position, its length, and the checksum of its bytes.
pub(crate) fn record_checksum(position: u64, length: u64, digest: u64, salt: u64) -> u64 {
    let mut bytes = [0; 24];
    put(&mut bytes, 0, position);
    put(&mut bytes, 8, length);
    put(&mut bytes, 16, digest);
    xxh3_64_with_seed(&bytes, salt)
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

/// The number in these eight bytes, which there are.
pub(crate) fn get(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

/// Records that will be written with one call.
#[derive(Debug)]
pub struct Group {
    /// Room for the header, then the records.
    bytes: Vec<u8>,
    first: u64,
    count: u32,
}

impl Group {
    /// A group without records. The next one added has this position.
    pub fn new(first: u64) -> Group {
        Group { bytes: vec![0; GROUP_HEADER], first, count: 0 }
    }

    /// Empties the group and keeps its memory.
    pub(crate) fn clear(&mut self, first: u64) {
        self.bytes.truncate(GROUP_HEADER);
        (self.first, self.count) = (first, 0);
    }

    /// The position of its first record.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The position after that of its last record.
    pub fn end(&self) -> u64 {
        self.first + u64::from(self.count)
    }

    /// Whether it has no records.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Its records, each behind its header: what [`SentRecords`](super::SentRecords) reads.
    pub fn records(&self) -> &[u8] {
        &self.bytes[GROUP_HEADER..]
    }

    /// Adds a record whose checksum is seeded with `salt`, and returns its position.
    pub fn add(&mut self, record: &[u8], salt: u64) -> u64 {
        self.push(record, digest(record), salt)
    }

    /// Its bytes with the header.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes it could have without allocating.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Adds the header of a record, whose bytes must follow, and returns its position.
    pub(crate) fn push_header(&mut self, length: usize, digest: u64, salt: u64) -> u64 {
        let position = self.end();
        let checksum = record_checksum(position, length as u64, digest, salt);
        self.bytes.extend_from_slice(&(length as u64).to_le_bytes());
        self.bytes.extend_from_slice(&checksum.to_le_bytes());
        self.count += 1;
        position
    }

    /// Adds a record, and returns its position.
    pub(crate) fn push(&mut self, record: &[u8], digest: u64, salt: u64) -> u64 {
        let position = self.push_header(record.len(), digest, salt);
        self.bytes.extend_from_slice(record);
        position
    }

    /// Fills the header in. `tail` bytes of the last record are not in the group's own.
    pub(crate) fn finish(&mut self, tail: usize, durable: u64, offset: u64, salt: u64) {
        let length = (self.bytes.len() - GROUP_HEADER + tail) as u64;
        let header = GroupHeader { first: self.first, durable, length, count: self.count };
        self.bytes[..GROUP_HEADER].copy_from_slice(&header.encode(offset, salt));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, journals that were written before cannot be read: that needs a new version.
    #[test]
    fn the_bytes_of_a_header_and_a_group_are_these() {
        let previous = Some(Previous { first: 7, size: 1000 });
        let header = SegmentHeader { version: VERSION, first: 12, salt: 99, previous };
        assert_eq!(xxh3_64(&header.encode()), 16_859_708_953_807_667_192);
        let mut group = Group::new(12);
        for record in [&b"first"[..], b"", b"third"] {
            group.push(record, digest(record), 99);
        }
        group.finish(0, 11, 64, 99);
        assert_eq!(group.bytes().len(), GROUP_HEADER + 3 * RECORD_HEADER + 10);
        assert_eq!(xxh3_64(group.bytes()), 7_796_686_805_371_038_699);
    }

    #[test]
    fn only_names_of_segments_are_parsed() {
        assert_eq!(segment_name(42), "00000000000000000042.journal");
        assert_eq!(parse_name(&segment_name(42)), Some(42));
        assert_eq!(parse_name(&segment_name(u64::MAX)), Some(u64::MAX));
        assert!(is_nascent(&nascent_name(42)));
        for name in ["42.journal", "00000000000000000042", "+0000000000000000042.journal", ""] {
            assert_eq!(parse_name(name), None, "{name}");
        }
        assert!(!is_nascent(".journal.new") && !is_nascent(&segment_name(1)));
    }
}
