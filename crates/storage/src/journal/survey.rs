//! Looking at all of a journal without changing anything.

use bytes::Bytes;

use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::journal::format::{Previous, is_nascent, parse_name};
use crate::journal::reader::{Found, Reader};
use crate::journal::recovery::{Gap, follows};
use crate::journal::{KnownEnd, Position};

/// The contents of the files of a journal.
#[derive(Debug, Default)]
pub struct JournalSurvey {
    /// How many segments there are.
    pub segments: usize,
    /// How many whole records they have.
    pub records: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// The first record that can be replayed.
    pub start: Position,
    /// The position after the last whole record.
    pub end: Position,
    /// Everything that is damaged.
    pub damage: Vec<JournalDamage>,
    /// Segments that are missing between others. That is no damage if the records before [`start`] are not needed: a crash
    /// may bring back segments that were released.
    ///
    /// [`start`]: JournalSurvey::start
    pub gaps: Vec<Error>,
    /// The rest that a crash has left after the last whole group, if it is not zeros: the file, where it begins, and what it is.
    pub torn: Option<(String, u64, &'static str)>,
    /// Segments that were being made.
    pub nascent: Vec<String>,
    /// Files that are none of a journal's.
    pub unknown: Vec<String>,
}

/// A damaged part of a journal.
#[derive(Debug)]
pub struct JournalDamage {
    /// The damage and its place.
    pub error: Error,
    /// The records in this segment and those before it are in doubt: the position after them.
    pub before: Position,
}

/// A record of a journal that is looked at.
#[derive(Debug)]
pub struct SurveyedRecord<'a> {
    /// Its position.
    pub position: Position,
    /// The file that has it.
    pub place: &'a str,
    /// Where it begins there.
    pub offset: u64,
    /// Its bytes.
    pub bytes: Bytes,
}

/// Reads all segments, compares all records with their checksums, and hands `each` those that are whole; what that returns is
/// wrong with a record is damage. Continues after damage. The journal reaches `known` at least.
///
/// # Errors
///
/// The directory cannot be listed.
pub fn survey_journal(
    disk: &dyn Disk,
    known: &KnownEnd,
    mut each: impl FnMut(SurveyedRecord<'_>) -> Result<(), String>,
) -> Result<JournalSurvey> {
    let names = disk.list().map_err(|cause| Error::io("list", disk.place(""), cause))?;
    let mut survey = JournalSurvey::default();
    let mut firsts = Vec::new();
    for name in names {
        match parse_name(&name) {
            Some(first) => firsts.push(first),
            None if is_nascent(&name) => survey.nascent.push(disk.place(&name)),
            None => survey.unknown.push(disk.place(&name)),
        }
    }
    survey.segments = firsts.len();
    survey.start = Position(firsts.first().copied().unwrap_or(0));
    survey.end = survey.start;
    let mut before = None;
    for (number, first) in firsts.iter().enumerate() {
        let next = firsts.get(number + 1).copied();
        before = survey.segment(disk, *first, (before, next), known, &mut each);
    }
    if survey.damage.is_empty()
        && let Err(error) = known.check(&disk.place(""), survey.end.0)
    {
        survey.damage.push(JournalDamage { error, before: Position(u64::MAX) });
    }
    Ok(survey)
}

impl JournalSurvey {
    /// Reads a segment, and returns what the next one has to follow on; `None` if that is not known.
    fn segment(
        &mut self,
        disk: &dyn Disk,
        first: u64,
        (before, next): (Option<Previous>, Option<u64>),
        known: &KnownEnd,
        each: &mut impl FnMut(SurveyedRecord<'_>) -> Result<(), String>,
    ) -> Option<Previous> {
        let damage_before = Position(next.unwrap_or(u64::MAX));
        let reader = Reader::open(disk, first).and_then(|reader| Ok((reader.size()?, reader)));
        let (size, mut reader) = match reader {
            Ok(opened) => opened,
            Err(error) => {
                self.damage.push(JournalDamage { error, before: damage_before });
                return None;
            }
        };
        self.bytes += size;
        match follows(disk, &reader, before) {
            Ok(None) => {}
            Ok(Some(gap)) => {
                self.start = Position(gap.end);
                self.gaps.push(Gap::error(&gap));
            }
            Err(error) => self.damage.push(JournalDamage { error, before: damage_before }),
        }
        while let Err(error) = self.groups(&mut reader, next.is_some(), known, each) {
            self.damage.push(JournalDamage { error, before: damage_before });
            let offset = reader.offset() + 1;
            match reader.find_group(offset, |_| true) {
                Ok(Some((offset, group))) => reader.go_to(offset, group.first),
                Ok(None) => break,
                Err(error) => {
                    self.damage.push(JournalDamage { error, before: damage_before });
                    break;
                }
            }
        }
        if let Some(next) = next
            && next < reader.position()
        {
            let error = reader.corrupt(reader.offset(), "it has records of the next segment");
            self.damage.push(JournalDamage { error, before: damage_before });
        }
        self.end = Position(reader.position());
        Some(Previous { first, size })
    }

    /// Reads groups up to the end, or to one that is damaged.
    fn groups(
        &mut self,
        reader: &mut Reader,
        is_complete: bool,
        known: &KnownEnd,
        each: &mut impl FnMut(SurveyedRecord<'_>) -> Result<(), String>,
    ) -> Result<()> {
        loop {
            let (size, end) = (reader.offset(), reader.position());
            let found = match reader.next_group()? {
                Found::Next(_) => self.records(reader, each)?,
                Found::End => return Ok(()),
                Found::Bad { offset, what } => Found::Bad { offset, what },
            };
            let Found::Bad { offset, what } = found else { continue };
            let is_durable = is_complete || end < known.position.0;
            if is_durable || reader.is_vouched_for(end, size)? {
                return Err(reader.corrupt(offset, what));
            }
            reader.go_to(size, end);
            if !reader.is_zero_from(size)? {
                self.torn = Some((reader.place().to_owned(), size, what));
            }
            return Ok(());
        }
    }

    /// Reads the records of a group.
    fn records(
        &mut self,
        reader: &mut Reader,
        each: &mut impl FnMut(SurveyedRecord<'_>) -> Result<(), String>,
    ) -> Result<Found<()>> {
        loop {
            let (offset, position) = (reader.offset(), Position(reader.position()));
            let bytes = match reader.next_of_group()? {
                None => return Ok(Found::Next(())),
                Some(Found::Next(bytes)) => bytes,
                Some(Found::End) => return Ok(Found::End),
                Some(Found::Bad { offset, what }) => return Ok(Found::Bad { offset, what }),
            };
            self.records += 1;
            each(SurveyedRecord { position, place: reader.place(), offset, bytes })
                .map_err(|what| reader.corrupt(offset, what))?;
        }
    }
}
