//! Opening a batch file: header, trailer and metadata, read and checked.

use alluvium_storage::Blob;
use rkyv::rancor;
use rkyv::util::AlignedVec;
use xxhash_rust::xxh3::xxh3_64;

use super::error::FileError;
use super::format::{
    self, ArchivedMetadata, HEADER, INCOMPATIBLE, Metadata, PageEntry, SUMMARY, TRAILER, Trailer,
};
use crate::summary::Summary;
use crate::time::MAXIMUM_LANES;

/// The metadata of a batch file, if the file is complete and consistent, and the summary that is before it, if there is one.
/// Pages are not read.
pub(super) fn metadata(blob: &dyn Blob) -> Result<(Metadata, Option<Summary>), FileError> {
    let damaged = |offset: usize, reason| damaged(blob, offset as u64, reason);
    let bytes = blob.bytes();
    let length = blob.len();
    blob.populate(0..length.min(HEADER as u64))?;
    blob.populate(length.saturating_sub(TRAILER as u64)..length)?;
    let (Some(header), Some(trailer)) =
        (bytes.first_chunk::<HEADER>(), bytes.last_chunk::<TRAILER>())
    else {
        return Err(damaged(0, "it is too short"));
    };
    let (features, compatible) =
        format::read_header(header).map_err(|reason| damaged(0, reason))?;
    let unknown = features & !INCOMPATIBLE;
    if unknown != 0 {
        let bit = unknown.trailing_zeros();
        return Err(FileError::Feature { place: blob.place(), bit });
    }
    let end = bytes.len() - TRAILER;
    let trailer = Trailer::read(trailer).map_err(|reason| damaged(end, reason))?;
    let start = usize::try_from(trailer.offset).unwrap_or(usize::MAX);
    let within = trailer.offset.checked_add(trailer.length) == Some(end as u64);
    let archive = match bytes.get(start..end) {
        Some(archive) if within && start >= HEADER => {
            blob.populate(start as u64..end as u64)?;
            archive
        }
        _ => return Err(damaged(end, "the metadata is not where the trailer says")),
    };
    if xxh3_64(archive) != trailer.checksum {
        return Err(damaged(start, "the metadata is not what was written"));
    }
    let mut aligned: AlignedVec = AlignedVec::with_capacity(archive.len());
    aligned.extend_from_slice(archive);
    let metadata = rkyv::access::<ArchivedMetadata, rancor::Error>(&aligned)
        .map_err(|_| damaged(start, "the metadata cannot be read"))?
        .read();
    if !metadata.is_consistent(trailer.offset) {
        return Err(damaged(start, "the metadata contradicts itself"));
    }
    if compatible & SUMMARY == 0 {
        return Ok((metadata, None));
    }
    match Summary::decode(archive, metadata.pages.len()) {
        Some(summary) => Ok((metadata, Some(summary))),
        None => Err(damaged(start, "the summary cannot be read")),
    }
}

/// The error of a file whose bytes are not those that were written, from this offset on.
pub(super) fn damaged(blob: &dyn Blob, offset: u64, reason: &'static str) -> FileError {
    FileError::Damaged { place: blob.place(), offset: blob.offset() + offset, reason }
}

impl Metadata {
    /// Whether counts agree, and pages follow each other from the header to `end`.
    fn is_consistent(&self, end: u64) -> bool {
        let lanes = self.lanes as usize;
        let frontiers = [&self.lower, &self.upper, &self.since];
        let mut next = HEADER as u64;
        let are_contiguous = self.pages.iter().all(|page| {
            let is_next = page.offset == next && page.updates > 0;
            next = next.saturating_add(u64::from(page.length));
            is_next
        });
        let updates: u64 = self.pages.iter().map(|page| u64::from(page.updates)).sum();
        (1..=MAXIMUM_LANES).contains(&lanes)
            && frontiers.iter().all(|frontier| frontier.len() % lanes == 0)
            && !self.lower.is_empty()
            && self.retractions <= self.updates
            && u32::try_from(self.page_bytes).is_ok()
            && are_contiguous
            && next == end
            && updates == self.updates
    }
}

impl ArchivedMetadata {
    /// The metadata, out of its archive.
    fn read(&self) -> Metadata {
        let numbers = |list: &rkyv::vec::ArchivedVec<rkyv::primitive::ArchivedU64>| {
            list.iter().map(|number| number.to_native()).collect()
        };
        let pages = self.pages.iter().map(|page| PageEntry {
            offset: page.offset.to_native(),
            checksum: page.checksum.to_native(),
            fence: page.fence.to_native(),
            length: page.length.to_native(),
            updates: page.updates.to_native(),
        });
        Metadata {
            lanes: self.lanes.to_native(),
            lower: numbers(&self.lower),
            upper: numbers(&self.upper),
            since: numbers(&self.since),
            updates: self.updates.to_native(),
            retractions: self.retractions.to_native(),
            page_bytes: self.page_bytes.to_native(),
            page_updates: self.page_updates.to_native(),
            common: self.common.as_slice().to_vec(),
            pages: pages.collect(),
        }
    }
}
