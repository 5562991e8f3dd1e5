//! Cutting off the last records of a journal that is not in use.
//!
//! # Design
//!
//! Segments without a record that stays are removed, the last one first, each durably: so there is never a gap. Then the last
//! segment that is left is written once more under its temporary name, as far as it stays, and takes the place of the old one.
//! A crash leaves a journal that ends at the cut or later.

use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::journal::Position;
use crate::journal::format::{Group, digest, nascent_name, parse_name, segment_name};
use crate::journal::reader::{Found, Reader};

/// How many bytes are copied with one call.
const PIECE: u64 = 1 << 20;

/// Removes the records from `end` on, durably. The journal must not be in use meanwhile.
///
/// # Errors
///
/// [`Error::NoRecord`] if the journal begins after `end`, or ends before; [`Error::Corrupt`] and [`Error::Newer`] if the segment
/// that has it cannot be read up to there. Nothing is changed then, unless an operation of the disk fails.
pub fn cut_journal(journal: &dyn Disk, end: Position) -> Result<()> {
    let failed = |operation| move |cause| Error::io(operation, journal.place(""), cause);
    let names = journal.list().map_err(failed("list"))?;
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| parse_name(name)).collect();
    firsts.sort_unstable();
    // The first one stays, also without records: it says where the journal begins.
    let stays = firsts.partition_point(|first| *first < end.0).max(1).min(firsts.len());
    let removed = firsts.split_off(stays);
    let Some(last) = firsts.last() else {
        return if end.0 == 0 { Ok(()) } else { Err(no_record(journal, end, 0..0)) };
    };
    let mut segment = Reader::open(journal, *last)?;
    let (whole, part) = find(&mut segment, end)?;
    if segment.header().first > end.0 || end_of(&segment, part.as_ref()) != end.0 {
        return Err(no_record(journal, end, firsts[0]..segment.position()));
    }
    for first in removed.iter().rev() {
        let name = segment_name(*first);
        journal.remove(&name).map_err(|cause| Error::io("delete", journal.place(&name), cause))?;
        journal.sync_directory().map_err(failed("sync"))?;
    }
    replace(journal, &segment, whole, part)
}

fn no_record(journal: &dyn Disk, end: Position, range: std::ops::Range<u64>) -> Error {
    Error::NoRecord { place: journal.place(""), operation: "cut", position: end.0, range }
}

/// The position after the remaining part of a segment, which was read up to there.
fn end_of(segment: &Reader, part: Option<&Group>) -> u64 {
    part.map_or(segment.position(), Group::end)
}

/// Where the groups of a segment end that stay as they are, and what stays of the next one.
fn find(segment: &mut Reader, end: Position) -> Result<(u64, Option<Group>)> {
    loop {
        let (whole, first) = (segment.offset(), segment.position());
        if first >= end.0 {
            return Ok((whole, None));
        }
        let group = match segment.next_group()? {
            Found::Next(group) => group,
            Found::End => return Ok((whole, None)),
            Found::Bad { offset, what } => return Err(segment.corrupt(offset, what)),
        };
        let is_cut = group.end().is_some_and(|last| last > end.0);
        let mut part = Group::new(first);
        let salt = segment.header().salt;
        while let Some(found) = segment.next_of_group()? {
            match found {
                Found::Next(record) if is_cut && part.end() < end.0 => {
                    part.push(&record, digest(&record), salt);
                }
                Found::Next(_) | Found::End => {}
                Found::Bad { offset, what } => return Err(segment.corrupt(offset, what)),
            }
            if is_cut && part.end() == end.0 {
                part.finish(0, group.durable, whole, salt);
                return Ok((whole, Some(part)));
            }
        }
    }
}

/// Puts the first `whole` bytes of a segment, followed by a group, in the place of the segment.
fn replace(journal: &dyn Disk, segment: &Reader, whole: u64, part: Option<Group>) -> Result<()> {
    let first = segment.header().first;
    let (nascent, name) = (nascent_name(first), segment_name(first));
    let write = || {
        let file = journal.create(&nascent)?;
        let mut piece = Vec::new();
        for offset in (0..whole).step_by(PIECE as usize) {
            piece.resize(PIECE.min(whole - offset) as usize, 0);
            segment.file().read_at(&mut piece, offset)?;
            file.write_at(&piece, offset)?;
        }
        if let Some(part) = part {
            file.write_at(part.bytes(), whole)?;
        }
        DiskFile::sync(&*file)?;
        journal.rename(&nascent, &name)?;
        journal.sync_directory()
    };
    write().map_err(|cause| Error::io("cut", journal.place(&name), cause))
}
