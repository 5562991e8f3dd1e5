//! Recovery of a journal after a crash.
//!
//! # Design
//!
//! All segments but the last were complete before the next was begun. The last may be torn: what was written since its
//! last sync may be there in parts. It is read from its beginning. At the first group that is not whole it ends, unless
//! a later group says that this one was durable, or the caller knows it: then the file is damaged, and nothing is
//! changed.
//!
//! A segment that is missing between others need not be an error: released segments are deleted without a sync of the
//! directory, and a crash may bring one back while later ones are gone. So the error is kept for who asks for records
//! before the gap.
//!
//! A last segment without records is deleted. If the sync of the directory had failed when it was begun, its name may not
//! be durable: the segment before it must not be released.
//!
//! Records that are not known to be durable are written once more before the sync. If a sync failed before the journal was
//! opened, the system may hold bytes that it takes to be on the disk while they are not.

use std::collections::VecDeque;

use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::journal::KnownEnd;
use crate::journal::format::{Previous, SEGMENT_HEADER, is_nascent, parse_name, segment_name};
use crate::journal::reader::{Found, Reader};

/// How many bytes are written again with one call.
const PIECE: u64 = 1 << 20;

/// The contents of a directory.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// The first records of all segments, in order.
    pub(crate) firsts: Vec<u64>,
    /// The position of the next record.
    pub(crate) end: u64,
    /// The segment before the next one.
    pub(crate) previous: Option<Previous>,
    pub(crate) gap: Option<Gap>,
}

/// A missing segment.
#[derive(Debug)]
pub(crate) struct Gap {
    /// The first record after it.
    pub(crate) end: u64,
    /// The missing file, and the one after it.
    pub(crate) place: String,
    pub(crate) needed_by: String,
}

impl Gap {
    pub(crate) fn error(&self) -> Error {
        Error::Lost { place: self.place.clone(), needed_by: self.needed_by.clone() }
    }
}

/// Checks the segments of a directory, ends the last one after its last whole group, and makes it durable.
pub(crate) fn recover(disk: &dyn Disk, known: &KnownEnd) -> Result<Recovered> {
    let failed = |operation| move |cause| Error::io(operation, disk.place(""), cause);
    let names = disk.list().map_err(failed("list"))?;
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| parse_name(name)).collect();
    firsts.sort_unstable();
    let Some(&last) = firsts.last() else {
        known.check(&disk.place(""), 0)?;
        remove_nascent(disk, &names);
        return Ok(Recovered { firsts, end: 0, previous: None, gap: None });
    };
    let (mut before, mut gap) = (None, None);
    for first in &firsts {
        let (segment, missing) = check(disk, *first, before)?;
        before = Some(segment);
        gap = missing.or(gap);
    }
    let mut reader = Reader::open(disk, last)?;
    let tail = read_tail(&mut reader, known)?;
    known.check(&disk.place(""), tail.end)?;
    remove_nascent(disk, &names);
    cut(&reader, &tail)?;
    disk.sync_directory().map_err(failed("sync"))?;
    let mut previous = Some(Previous { first: last, size: tail.size });
    if tail.end == last {
        previous = reader.header().previous;
        // If the one before it was released, it is kept for its position, and its name is durable.
        let is_behind_gap = gap.as_ref().is_some_and(|gap: &Gap| gap.end == last);
        if firsts.len() > 1 && !is_behind_gap {
            firsts.pop();
            let name = segment_name(last);
            disk.remove(&name).map_err(|cause| Error::io("delete", disk.place(&name), cause))?;
        }
    }
    Ok(Recovered { end: tail.end, firsts, previous, gap })
}

/// Deletes segments that were being made.
fn remove_nascent(disk: &dyn Disk, names: &[String]) {
    for name in names.iter().filter(|name| is_nascent(name)) {
        // It only takes up space.
        let _ = disk.remove(name);
    }
}

/// Checks the header of a segment, and whether it follows on this one. The second result is a segment that is
/// missing between the two.
fn check(disk: &dyn Disk, first: u64, before: Option<Previous>) -> Result<(Previous, Option<Gap>)> {
    let reader = Reader::open(disk, first)?;
    let gap = follows(disk, &reader, before)?;
    Ok((Previous { first, size: reader.size()? }, gap))
}

/// Fails unless a segment follows on this one. Returns the segment that is missing between the two, if one is.
pub(crate) fn follows(
    disk: &dyn Disk,
    reader: &Reader,
    before: Option<Previous>,
) -> Result<Option<Gap>> {
    let Some(before) = before else { return Ok(None) };
    match reader.header().previous {
        Some(named) if named == before => Ok(None),
        Some(named) if named.first == before.first => {
            let place = disk.place(&segment_name(before.first));
            let offset = before.size.min(named.size);
            let what = format!("it has {} bytes and had {}", before.size, named.size);
            Err(Error::Corrupt { place, offset, what })
        }
        Some(named) if named.first > before.first => {
            let place = disk.place(&segment_name(named.first));
            let (end, needed_by) = (reader.header().first, reader.place().to_owned());
            Ok(Some(Gap { end, place, needed_by }))
        }
        _ => {
            let before = disk.place(&segment_name(before.first));
            Err(reader.corrupt(32, format!("it does not continue {before}")))
        }
    }
}

/// The last segment.
struct Tail {
    /// Where its last whole group ends, and the position after its last record.
    size: u64,
    end: u64,
    /// Where the groups begin that are not known to be durable.
    unsure: u64,
}

fn read_tail(reader: &mut Reader, known: &KnownEnd) -> Result<Tail> {
    // The first positions and offsets of groups that are not known to be durable.
    let mut unsure = VecDeque::new();
    loop {
        let (size, end) = (reader.offset(), reader.position());
        let found = match reader.next_group()? {
            Found::Next(group) => {
                while unsure.front().is_some_and(|(first, _)| *first < group.durable) {
                    unsure.pop_front();
                }
                unsure.push_back((group.first, size));
                reader.read_records()?
            }
            Found::End => Found::End,
            Found::Bad { offset, what } => Found::Bad { offset, what },
        };
        if let Found::Bad { offset, what } = found
            && (end < known.position.0 || reader.is_vouched_for(end, size)?)
        {
            return Err(reader.corrupt(offset, what));
        }
        if !matches!(found, Found::Next(())) {
            let unsure = unsure.front().map_or(size, |(_, offset)| *offset);
            return Ok(Tail { size, end, unsure: unsure.min(size) });
        }
    }
}

/// Ends the file after its last whole group, and makes the rest durable.
fn cut(reader: &Reader, tail: &Tail) -> Result<()> {
    let file = reader.file();
    let cut = || {
        // Also if it has this size: a sync may have failed since it was cut.
        file.set_size(tail.size)?;
        write_again(file, tail.unsure.max(SEGMENT_HEADER as u64), tail.size)?;
        file.sync()
    };
    cut().map_err(|cause| Error::io("recover", reader.place(), cause))
}

fn write_again(file: &dyn DiskFile, start: u64, end: u64) -> std::io::Result<()> {
    let mut piece = Vec::new();
    for offset in (start..end).step_by(PIECE as usize) {
        piece.resize(PIECE.min(end - offset) as usize, 0);
        file.read_at(&mut piece, offset)?;
        file.write_at(&piece, offset)?;
    }
    Ok(())
}
