//! Reading everything in a state directory.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::fs;

use alluvium_storage::{
    ClaimedStorage, Disk, JournalSurvey, LocalStorage, ManifestFiles, ReadOnlyDisk, survey_journal,
};

use super::blobs::{NamedBatches, ReadBlobs};
use super::{Finding, Severity, StateDirectory, failed};
use crate::durable::checkpoint::Checkpoint;
use crate::durable::directory::{ASIDE, BLOBS, JOURNAL, LOCK, MANIFESTS, share};
use crate::durable::record::Record;
use crate::durable::{elsewhere, known_end};
use crate::error::Result;

/// The fate of a leftover.
const DELETED: &str = "it is deleted at the next start";

/// The fate of a file that is not ours.
const IGNORED: &str = "it is no file of an engine, and is left alone";

/// The contents of a state directory, and their damage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// Everything that was found.
    pub findings: Vec<Finding>,
    /// The number of the current checkpoint; 0 before the first. `None` if that is damaged.
    pub current: Option<u64>,
    /// The last checkpoint of which everything is whole, with all of the journal after it; 0 stands for the journal alone. The
    /// directory can be [copied from there](StateDirectory::backup_from), and nothing that was committed is lost.
    pub sound: Option<u64>,
    /// How many checkpoints were read.
    pub checkpoints: usize,
    /// How many blobs they name.
    pub blobs: usize,
    /// How many batches of them were read.
    pub batches: usize,
    /// How many pages the batches have.
    pub pages: u64,
    /// How many segments the journal has.
    pub segments: usize,
    /// How many records were read.
    pub records: u64,
    /// How many bytes were read.
    pub bytes: u64,
}

impl Check {
    /// Whether nothing is damaged.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity != Severity::Damage)
    }

    /// A remedy for the damage; `None` if there is none.
    pub fn remedy(&self) -> Option<String> {
        if self.is_sound() {
            return None;
        }
        let what = "makes a sound directory with everything that was committed";
        Some(match self.sound {
            None => "restore the directory from a backup".to_owned(),
            sound if sound == self.current => format!("`alluvium backup DIR TO` {what}"),
            Some(number) => format!("`alluvium backup --checkpoint {number} DIR TO` {what}"),
        })
    }

    fn add(&mut self, finding: Finding) {
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}

/// A line for each finding, a line with the counts, and one with the remedy.
impl Display for Check {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(to, "{finding}")?;
        }
        let Self { checkpoints, blobs, batches, pages, segments, records, bytes, .. } = self;
        write!(
            to,
            "checkpoints: {checkpoints}, with {batches} batches of {pages} pages in {blobs} blobs; records of the journal: \
             {records}, in {segments} segments; {bytes} bytes"
        )?;
        match self.remedy() {
            Some(remedy) => write!(to, "\ndamaged: {remedy}"),
            None => write!(to, "\nsound"),
        }
    }
}

/// The checkpoints that could be read.
type Checkpoints = BTreeMap<u64, Checkpoint>;

pub(super) fn check(directory: &StateDirectory) -> Result<Check> {
    let lock = share(&directory.path).map_err(|message| {
        failed(format!("{message}; a copy that `alluvium backup` makes can be checked at any time"))
    })?;
    let mut check = Check::default();
    if lock.is_none() {
        check.add(Finding::note(in_directory(directory, LOCK), "it is created at the next start"));
    }
    let (checkpoints, is_complete) = read_checkpoints(directory, &mut check)?;
    let mut named = NamedBatches::default();
    for (number, checkpoint) in &checkpoints {
        if !named.add(checkpoint) {
            let place = ManifestFiles::place(&directory.disk(MANIFESTS), *number);
            check.add(Finding::damage(place, "a batch is in a blob that it does not name"));
        }
    }
    let mut blobs = named.read(&LocalStorage::existing(directory.folder(BLOBS)));
    (check.blobs, check.batches, check.pages) = (named.len(), blobs.batches, blobs.pages);
    check.bytes += blobs.bytes;
    std::mem::take(&mut blobs.findings).into_iter().for_each(|finding| check.add(finding));
    match directory.elsewhere()? {
        None => {
            let survey = read_journal(directory, &mut check, &checkpoints)?;
            check.sound = sound(&checkpoints, &blobs, &survey);
        }
        Some(note) => check.add(Finding::note(note.url, "the journal is there, and was not read")),
    }
    look_for_others(directory, &mut check, is_complete.then_some(&named))?;
    Ok(check)
}

/// How many of these checkpoints are kept: the last one that can be read says so.
fn retained(disk: &ReadOnlyDisk, numbers: &[u64]) -> usize {
    let read = |number: &u64| {
        let bytes = ManifestFiles::read(disk, *number).ok()?;
        Some(Checkpoint::decode(&bytes).ok()?.retained as usize)
    };
    numbers.iter().rev().find_map(read).unwrap_or(numbers.len())
}

/// Reads the checkpoints that are kept. False if there are others that cannot be read.
fn read_checkpoints(directory: &StateDirectory, check: &mut Check) -> Result<(Checkpoints, bool)> {
    let disk = directory.disk(MANIFESTS);
    let files = ManifestFiles::list(&disk).map_err(|error| failed(error.to_string()))?;
    match files.current(&disk) {
        Ok(current) => check.current = Some(current),
        Err(error) => check.add(Finding::of_storage(&error, &files.pointer)),
    }
    let published = |number: &&u64| check.current.is_none_or(|current| **number <= current);
    let kept: Vec<u64> = files.numbers.iter().filter(published).copied().collect();
    let given_up = kept.len().saturating_sub(retained(&disk, &kept));
    let unpublished = files.numbers[kept.len()..].iter();
    for number in kept[..given_up].iter().chain(unpublished) {
        let what = format!("it is no checkpoint any more, or was never one: {DELETED}");
        check.add(Finding::note(ManifestFiles::place(&disk, *number), what));
    }
    note(check, files.nascent, DELETED);
    note(check, files.unknown, IGNORED);
    let (mut checkpoints, mut is_complete) = (Checkpoints::new(), true);
    for number in &kept[given_up..] {
        let place = ManifestFiles::place(&disk, *number);
        let read = ManifestFiles::read(&disk, *number)
            .map_err(|error| Finding::of_storage(&error, &place))
            .and_then(|bytes| {
                check.bytes += bytes.len() as u64;
                Checkpoint::decode(&bytes).map_err(|what| Finding::damage(&place, what))
            });
        match read {
            Ok(checkpoint) => drop(checkpoints.insert(*number, checkpoint)),
            Err(finding) => {
                check.add(finding);
                is_complete = false;
            }
        }
    }
    check.checkpoints = checkpoints.len();
    Ok((checkpoints, is_complete))
}

fn note(check: &mut Check, places: Vec<String>, what: &str) {
    places.into_iter().for_each(|place| check.add(Finding::note(place, what)));
}

/// Reads the journal, and compares it with what checkpoints need of it.
fn read_journal(
    directory: &StateDirectory,
    check: &mut Check,
    checkpoints: &Checkpoints,
) -> Result<JournalSurvey> {
    let disk = directory.disk(JOURNAL);
    let survey = survey_journal(&disk, &known_end::of(&directory.path), |record| {
        Record::decode(&record.bytes).map(drop)
    });
    let mut survey = survey.map_err(|error| failed(error.to_string()))?;
    check.segments = survey.segments;
    check.records = survey.records;
    check.bytes += survey.bytes;
    let place = disk.place("");
    for damage in &survey.damage {
        check.add(Finding::of_storage(&damage.error, &place));
    }
    let (start, end) = (survey.start.0, survey.end.0);
    let is_needed = match checkpoints.values().map(|checkpoint| checkpoint.replay).min() {
        Some(replay) => replay < start,
        None => start > 0,
    };
    for gap in &survey.gaps {
        let finding = Finding::of_storage(gap, &place);
        let severity = if is_needed { Severity::Damage } else { Severity::Note };
        check.add(Finding { severity, ..finding });
    }
    for (number, Checkpoint { replay, end: covered, .. }) in checkpoints {
        let what = match () {
            () if *replay < start => format!("it begins with record {start}, and"),
            () if survey.damage.is_empty() && end < *covered => {
                format!("it ends before record {end}, and")
            }
            () => continue,
        };
        let what = format!(
            "{what} checkpoint {number} needs records {replay} to {covered}: a segment is missing, or was cut short"
        );
        check.add(Finding::damage(&place, what));
    }
    if check.current == Some(0) && start > 0 {
        let what = format!("it begins with record {start}, and no checkpoint has what came before");
        check.add(Finding::damage(&place, what));
    }
    if let Some((place, offset, what)) = &survey.torn {
        let what = format!(
            "{what}: what a crash has left, which is cut off at the next start (or damage to the last transactions, \
             which looks the same)"
        );
        check.add(Finding::note(place, what).at(*offset));
    }
    note(check, std::mem::take(&mut survey.nascent), DELETED);
    note(check, std::mem::take(&mut survey.unknown), IGNORED);
    Ok(survey)
}

/// The last checkpoint of which everything is whole, with all of the journal after it.
fn sound(checkpoints: &Checkpoints, blobs: &ReadBlobs, survey: &JournalSurvey) -> Option<u64> {
    let has_journal = |replay: u64, end: u64| {
        (survey.start.0..=survey.end.0).contains(&replay)
            && end <= survey.end.0
            && survey.damage.iter().all(|damage| damage.before.0 <= replay)
    };
    let is_sound = |checkpoint: &Checkpoint| {
        has_journal(checkpoint.replay, checkpoint.end) && blobs.has_all(checkpoint)
    };
    let last = checkpoints.iter().rev().find(|(_, checkpoint)| is_sound(checkpoint));
    last.map(|(number, _)| *number)
        .or_else(|| (has_journal(0, 0) && survey.records > 0).then_some(0))
}

/// Looks for files that nothing names. `named` has what all checkpoints name, if that is known.
fn look_for_others(
    directory: &StateDirectory,
    check: &mut Check,
    named: Option<&NamedBatches>,
) -> Result<()> {
    let ours = [
        LOCK,
        JOURNAL,
        MANIFESTS,
        BLOBS,
        ASIDE,
        known_end::END,
        known_end::NASCENT,
        elsewhere::NOTE,
    ];
    for name in list(directory, "")? {
        if name == known_end::END && known_end::read(&directory.path).is_none() {
            let what = "it does not say any more how far the journal goes, and is replaced when an engine ends";
            check.add(Finding::note(in_directory(directory, &name), what).at(0));
        }
        if !ours.contains(&&*name) {
            check.add(Finding::note(in_directory(directory, &name), IGNORED));
        }
    }
    for name in list(directory, BLOBS)? {
        let what = match named {
            _ if !ClaimedStorage::is_own(&name) => IGNORED.to_owned(),
            Some(named) if !named.has(&name) => format!("no checkpoint names it: {DELETED}"),
            _ => continue,
        };
        let place = directory.folder(BLOBS).join(&name).display().to_string();
        check.add(Finding::note(place, what));
    }
    Ok(())
}

fn in_directory(directory: &StateDirectory, name: &str) -> String {
    directory.folder(name).display().to_string()
}

/// The names of the entries of a folder, in order; none if it is missing.
fn list(directory: &StateDirectory, folder: &str) -> Result<Vec<String>> {
    let path = directory.folder(folder);
    let error = |error: std::io::Error| failed(format!("cannot list {}: {error}", path.display()));
    let entries = match fs::read_dir(&path) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(error)?,
    };
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names =
        entries.map(|entry| entry.map(name).map_err(error)).collect::<Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}
