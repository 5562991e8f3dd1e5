//! Copying a journal, also one that is being written.
//!
//! # Design
//!
//! The segments are read in order, and each is copied as far as its groups are whole. Those bytes never change. All
//! segments but the last are complete. The last one may grow meanwhile: a group that is being written looks torn, and the
//! copy ends before it. Later groups may say that it is durable, if the two were read at different times; then it is
//! read once more, and is damaged if it is still not whole.

use std::ops::Range;

use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::journal::format::{parse_name, segment_name};
use crate::journal::reader::{Found, Reader};
use crate::journal::{KnownEnd, Position};

/// How many bytes are copied with one call.
const PIECE: u64 = 1 << 20;

/// Copies the segments that have the records from `from` on, durably. The copy has all records that were durable before
/// the call, and may have later ones; each was compared with its checksum. Returns the positions of the records.
///
/// The journal may be written meanwhile, also by another process. It reaches `known` at least.
///
/// # Errors
///
/// [`Error::NoRecord`] if the record `from` was released or is past the end; one that [is missing](Error::is_missing) if a
/// segment was released meanwhile; [`Error::Corrupt`], [`Error::Lost`] and [`Error::Newer`].
pub fn copy_journal(
    journal: &dyn Disk,
    copy: &dyn Disk,
    from: Position,
    known: &KnownEnd,
) -> Result<Range<Position>> {
    let names = journal.list().map_err(|cause| Error::io("list", journal.place(""), cause))?;
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| parse_name(name)).collect();
    firsts.sort_unstable();
    let at = firsts.partition_point(|first| *first <= from.0);
    let firsts = firsts.split_off(at.saturating_sub(1));
    let start = firsts.first().copied().unwrap_or(0);
    let mut end = start;
    for (number, first) in firsts.iter().enumerate() {
        let mut segment = Reader::open(journal, *first)?;
        let size = read_whole(&mut segment, firsts.get(number + 1).copied(), known)?;
        end = segment.position();
        copy_file(&segment, size, copy, &segment_name(*first))?;
    }
    if !(start..=end).contains(&from.0) {
        let (place, position) = (journal.place(""), from.0);
        return Err(Error::NoRecord { place, operation: "copy", position, range: start..end });
    }
    known.check(&journal.place(""), end)?;
    copy.sync_directory().map_err(|cause| Error::io("sync", copy.place(""), cause))?;
    Ok(Position(start)..Position(end))
}

/// Reads a segment to the end of its last whole group, and returns where that is. `next` is the first record of the next
/// segment, if there is one.
fn read_whole(segment: &mut Reader, next: Option<u64>, known: &KnownEnd) -> Result<u64> {
    let mut again = None;
    loop {
        let (size, end) = (segment.offset(), segment.position());
        let (offset, what) = match segment.read_group()? {
            Found::Next(()) => continue,
            Found::End if next.is_none_or(|next| next == end) => return Ok(size),
            Found::End => (size, "it ends before the next segment begins"),
            Found::Bad { offset, what } => (offset, what),
        };
        let is_known = next.is_some() || end < known.position.0;
        let is_durable = is_known || segment.is_vouched_for(end, size)?;
        if !is_durable {
            segment.go_to(size, end);
            return Ok(size);
        }
        if again == Some(size) {
            return Err(segment.corrupt(offset, what));
        }
        again = Some(size);
        segment.go_to(size, end);
    }
}

/// Copies the beginning of a file, durably but for its name.
fn copy_file(segment: &Reader, size: u64, copy: &dyn Disk, name: &str) -> Result<()> {
    let failed = |operation, place: String| move |cause| Error::io(operation, place, cause);
    let create = || copy.create(name);
    let file = create().map_err(failed("create", copy.place(name)))?;
    let mut piece = Vec::new();
    for offset in (0..size).step_by(PIECE as usize) {
        piece.resize(PIECE.min(size - offset) as usize, 0);
        let read = segment.file().read_at(&mut piece, offset);
        read.map_err(failed("read", segment.place().to_owned()))?;
        file.write_at(&piece, offset).map_err(failed("write", copy.place(name)))?;
    }
    DiskFile::sync(&*file).map_err(failed("sync", copy.place(name)))
}
