//! Checking, listing and copying a state directory, and directories that are damaged.
//!
//! `ALLUVIUM_FLIPS` makes the tests of flipped bits thorough: every byte is tried.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use alluvium::state_directory::Severity;
use alluvium::{Engine, Error, Result, StateDirectory};
use alluvium_storage::{FileJournal, FileManifests, Journal, Manifests, Published};
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64;

use crate::bank;
use crate::support::query;

fn open_with(directory: &Path, memory: Option<usize>) -> Result<Engine> {
    Engine::builder()
        .workers(1)
        .memory(memory)
        .checkpoints(Duration::MAX, u64::MAX)
        .state(format!("file:{}", directory.display()))
        .open()
}

pub fn open(directory: &Path) -> Result<Engine> {
    open_with(directory, None)
}

/// A directory with two checkpoints, segments of the journal before and after them, and blobs of each kind.
fn written() -> (TempDir, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path()).unwrap();
    engine.execute(bank::DEFINITIONS).unwrap();
    engine
        .execute(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR);
             CREATE MATERIALIZED VIEW v AS SELECT v, COUNT(*) AS n FROM t GROUP BY v;
             INSERT INTO t SELECT n, 'text ' || (n % 7) FROM UNNEST(range(0, 200)) AS r(n);
             CHECKPOINT",
        )
        .unwrap();
    bank::run(&engine, 3, |_| Ok(()));
    drop(engine);
    let engine = open_with(directory.path(), Some(1)).unwrap();
    engine.execute("INSERT INTO t SELECT n, 'more' FROM UNNEST(range(200, 2000)) AS r(n)").unwrap();
    bank::run(&engine, 2, |_| Ok(()));
    engine.execute("CHECKPOINT").unwrap();
    bank::run(&engine, 3, |_| Ok(()));
    let all = shown(&engine).unwrap();
    drop(engine);
    // This cuts off what was written ahead, and deletes what no checkpoint names.
    drop(open(directory.path()).unwrap());
    (directory, all)
}

fn shown(engine: &Engine) -> Result<Vec<String>> {
    let mut shown = Vec::new();
    for name in ["a", "b", "total", "moved", "t", "v"] {
        let rows = engine.query(&format!("SELECT * FROM {name}"))?;
        shown.extend(crate::support::lines(&rows));
    }
    Ok(shown)
}

/// All files in a directory, with their contents and times.
pub fn contents(directory: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(contents(&path)),
            false => {
                let time = fs::metadata(&path).unwrap().modified().unwrap();
                all.insert(path.clone(), (fs::read(&path).unwrap(), time));
            }
        }
    }
    all
}

fn files(directory: &Path) -> Vec<PathBuf> {
    contents(directory).into_keys().collect()
}

/// A copy of a directory, file by file.
pub fn copied(directory: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for folder in ["journal", "manifests", "blobs"] {
        fs::create_dir(copy.path().join(folder)).unwrap();
    }
    for file in files(directory) {
        fs::copy(&file, copy.path().join(file.strip_prefix(directory).unwrap())).unwrap();
    }
    copy
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// The checked findings that are damage, as text.
pub fn damage(directory: &Path) -> Vec<String> {
    let check = StateDirectory::open(directory).unwrap().check().unwrap();
    let damage = check.findings.iter().filter(|finding| finding.severity == Severity::Damage);
    let damage: Vec<_> = damage.map(ToString::to_string).collect();
    assert_eq!(check.is_sound(), damage.is_empty());
    damage
}

#[test]
fn checking_a_sound_directory_changes_nothing_and_finds_nothing() {
    let (directory, _) = written();
    let state = StateDirectory::open(directory.path()).unwrap();
    let before = contents(directory.path());
    let check = state.check().unwrap();
    assert_eq!(check.findings, [], "{check}");
    assert!(check.is_sound() && check.remedy().is_none() && check.current == Some(2));
    assert_eq!((check.checkpoints, check.sound), (2, Some(2)));
    assert!(check.pages > 5 && check.records > 10 && check.segments == 2, "{check}");
    assert!(check.to_string().ends_with("\nsound"), "{check}");
    assert!(contents(directory.path()) == before, "no byte and no file has changed");
    // Files left by a killed engine are no damage, and stay.
    let left = [
        "blobs/.batch-9.9.alluvium.unsealed",
        "blobs/batch-9.9.alluvium",
        "blobs/notes.txt",
        "manifests/.current.new",
        "manifests/00000000000000000003.manifest",
        "journal/.00000000000000000099.journal.new",
        "journal/notes.txt",
        "notes.txt",
    ];
    for file in left {
        fs::write(directory.path().join(file), "left").unwrap();
    }
    let check = state.check().unwrap();
    assert!(check.is_sound() && check.findings.len() == left.len(), "{check}");
    for file in left {
        let finding = check.findings.iter().find(|finding| finding.place.ends_with(file));
        assert_eq!(finding.unwrap().what.contains("is left alone"), file.ends_with("notes.txt"));
    }
    assert_eq!(contents(directory.path()).len(), before.len() + left.len());
}

#[test]
fn a_directory_in_use_is_not_checked_and_one_that_is_none_is_refused() {
    let (directory, _) = written();
    let engine = open(directory.path()).unwrap();
    let state = StateDirectory::open(directory.path()).unwrap();
    let error = state.check().unwrap_err().to_string();
    assert!(error.contains("is used by this process") && error.contains("backup"), "{error}");
    drop(engine);
    state.check().unwrap();
    // Several may look at it at once, and no engine starts meanwhile.
    let looking = fs::File::open(directory.path().join("lock")).unwrap();
    looking.lock_shared().unwrap();
    state.check().unwrap();
    let error = open(directory.path()).err().unwrap().to_string();
    assert!(error.contains("is used by a program that checks it"), "{error}");
    drop(looking);
    drop(open(directory.path()).unwrap());
    let foreign = tempfile::tempdir().unwrap();
    fs::write(foreign.path().join("mine.txt"), "hi").unwrap();
    let error = open(foreign.path()).err().unwrap().to_string();
    assert!(error.contains("has other files, such as \"mine.txt\""), "{error}");
    assert_eq!(fs::read_dir(foreign.path()).unwrap().count(), 1);
    let empty = tempfile::tempdir().unwrap();
    let error = StateDirectory::open(empty.path()).unwrap_err().to_string();
    assert!(error.contains("is no state directory"), "{error}");
    let error = StateDirectory::open(empty.path().join("x")).unwrap_err().to_string();
    assert!(error.contains("there is no directory"), "{error}");
    for to in [directory.path().to_owned(), directory.path().join("copy")] {
        let error = state.backup(&to).unwrap_err();
        assert!(matches!(&error, Error::State { .. }), "{error}");
        assert!(!directory.path().join("copy").exists());
    }
    let error = state.backup_from(7, empty.path()).unwrap_err().to_string();
    assert!(error.contains("no checkpoint 7; these are kept: 1, 2"), "{error}");
    fs::write(empty.path().join("file"), "").unwrap();
    let error = state.backup(empty.path()).unwrap_err().to_string();
    assert!(error.contains("there is something in this directory"), "{error}");
    let error = state.backup(empty.path().join("file")).unwrap_err().to_string();
    assert!(error.contains("cannot be made"), "{error}");
}

#[test]
fn checkpoints_are_listed_with_what_they_have() {
    let (directory, _) = written();
    // Also while an engine runs.
    let _engine = open(directory.path()).unwrap();
    let listed = StateDirectory::open(directory.path()).unwrap().checkpoints().unwrap();
    let [first, second] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!((first.number, second.number), (1, 2));
    assert!(!first.is_current && second.is_current);
    assert!(first.epoch < second.epoch && first.end < second.end && second.workers == 1);
    let names: Vec<_> = second.relations.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["a", "b", "moves", "total", "moved", "t", "v"]);
    let table = second.dataflows.iter().find(|dataflow| dataflow.name == "t").unwrap();
    assert!(table.bytes > 2000 && table.batches > 0 && table.states > 0, "{table:?}");
    let text = second.to_string();
    assert!(text.contains("checkpoint 2, the current one"), "{text}");
    assert!(text.contains("relation t: CREATE TABLE t (id BIGINT PRIMARY KEY"), "{text}");
}

/// How many bytes of a file are tried.
fn tried(length: usize, most: usize) -> impl Iterator<Item = usize> {
    let step = match std::env::var_os("ALLUVIUM_FLIPS") {
        Some(_) => 1,
        None => length.div_ceil(most).max(1),
    };
    // An odd step meets all parts of a word.
    (0..length).step_by(step | 1)
}

/// Whether a byte of a pack lies between two batches.
fn is_padding(bytes: &[u8], at: usize) -> bool {
    let end = at.next_multiple_of(4096).min(bytes.len());
    bytes[at..end].iter().all(|byte| *byte == 0) && bytes[at..].len() > 48
}

#[test]
fn a_check_finds_every_flipped_bit_with_the_file_and_the_place() {
    let (directory, _) = written();
    let all = files(directory.path());
    for prefix in ["batch-", "pack-"] {
        assert!(all.iter().any(|path| name(path).starts_with(prefix)), "{all:?}");
    }
    for path in all.iter().filter(|path| name(path) != "lock") {
        let bytes = fs::read(path).unwrap();
        for at in tried(bytes.len(), 60) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(path, &flipped).unwrap();
            let check = StateDirectory::open(directory.path()).unwrap().check().unwrap();
            let is_named = check.findings.iter().any(|finding| {
                let offset = finding.offset.unwrap_or_default() as usize;
                Path::new(&finding.place) == path && offset <= at
            });
            let is_covered = !name(path).starts_with("pack-") || !is_padding(&bytes, at);
            assert!(is_named || !is_covered, "byte {at} of {}: {check}", path.display());
        }
        fs::write(path, &bytes).unwrap();
    }
    assert_eq!(damage(directory.path()), [""; 0]);
}

#[test]
fn with_a_flipped_bit_anywhere_an_engine_is_right_or_says_where_it_is() {
    let (directory, all) = written();
    let (mut refused, mut right) = (0, 0);
    for path in files(directory.path()) {
        let bytes = fs::read(&path).unwrap();
        for at in tried(bytes.len(), 12) {
            let copy = copied(directory.path());
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(copy.path().join(path.strip_prefix(directory.path()).unwrap()), &flipped)
                .unwrap();
            let place = format!("byte {at} of {}", path.display());
            match open(copy.path()).and_then(|engine| shown(&engine)) {
                Ok(rows) if rows == all => right += 1,
                Ok(rows) => panic!("{place}: {rows:?}"),
                Err(error) => {
                    let (Error::Start { message, .. } | Error::Poisoned { message, .. }) = &error
                    else {
                        panic!("{place}: {error}");
                    };
                    refused += 1;
                    assert!(!message.contains("panicked"), "{place}: {message}");
                    assert!(message.contains(name(&path)), "{place}: {message}");
                    assert!(message.contains("byte"), "{place}: {message}");
                    assert!(message.contains("backup"), "{place}: {message}");
                }
            }
        }
    }
    assert!(refused > 60 && right > 10, "{refused} refused, {right} right");
}

#[test]
fn without_a_file_an_engine_is_right_or_says_what_is_missing() {
    let (directory, all) = written();
    let (mut refused, mut right) = (0, 0);
    for path in files(directory.path()) {
        let copy = copied(directory.path());
        let file = copy.path().join(path.strip_prefix(directory.path()).unwrap());
        fs::remove_file(&file).unwrap();
        let (found, left) = (damage(copy.path()), contents(copy.path()).len());
        match open(copy.path()).and_then(|engine| shown(&engine)) {
            Ok(rows) => {
                assert!(rows == all, "without {}", path.display());
                right += 1;
            }
            Err(Error::Start { message, .. }) => {
                refused += 1;
                let folder = file.parent().unwrap().to_str().unwrap();
                assert!(message.contains(folder) && message.contains("missing"), "{message}");
                assert!(message.contains("alluvium check"), "{message}");
                assert!(!found.is_empty(), "a check finds that there is no {}", path.display());
                assert_eq!(contents(copy.path()).len(), left, "nothing was deleted");
            }
            Err(error) => panic!("without {}: {error}", path.display()),
        }
    }
    assert!(refused >= 4 && right >= 2, "{refused} refused, {right} right");
}

#[test]
fn without_its_manifests_an_engine_starts_only_if_the_journal_has_everything() {
    let (directory, all) = written();
    let copy = copied(directory.path());
    fs::remove_dir_all(copy.path().join("manifests")).unwrap();
    assert_eq!(shown(&open(copy.path()).unwrap()).unwrap(), all);
    // The journal goes back to the older checkpoint and no further.
    let engine = open(directory.path()).unwrap();
    engine.execute("INSERT INTO b VALUES (2, 0); CHECKPOINT").unwrap();
    drop(engine);
    let engine = open(directory.path()).unwrap();
    engine.execute("INSERT INTO b VALUES (3, 0); CHECKPOINT").unwrap();
    drop(engine);
    let engine = open(directory.path()).unwrap();
    engine.execute("INSERT INTO b VALUES (4, 0); CHECKPOINT").unwrap();
    drop(engine);
    let copy = copied(directory.path());
    fs::remove_dir_all(copy.path().join("manifests")).unwrap();
    let blobs = fs::read_dir(copy.path().join("blobs")).unwrap().count();
    let found = damage(copy.path());
    assert!(found.len() == 1 && found[0].contains("no checkpoint"), "{found:?}");
    let error = open(copy.path()).err().unwrap().to_string();
    assert!(error.contains("the manifests are missing"), "{error}");
    assert_eq!(fs::read_dir(copy.path().join("blobs")).unwrap().count(), blobs);
}

/// Writes a number of four bytes to a file, and its checksum of eight bytes.
fn patch(path: &Path, at: usize, checked: usize, checksum: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] = 2;
    let sum = xxh3_64(&bytes[..checked]);
    bytes[checksum..checksum + 8].copy_from_slice(&sum.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn files_of_a_newer_version_are_refused_with_what_to_do() {
    let (directory, _) = written();
    let newer = |folder: &str, is_changed: &dyn Fn(&Path)| {
        let copy = copied(directory.path());
        let paths = files(&copy.path().join(folder));
        let path = paths.iter().rfind(|path| !name(path).starts_with('c')).unwrap();
        is_changed(path);
        let found = damage(copy.path());
        let error = open(copy.path()).and_then(|engine| shown(&engine)).err().unwrap().to_string();
        for message in [&error, &found.join("\n")] {
            assert!(message.contains("the program that has written it"), "{message}");
            assert!(message.contains(copy.path().join(folder).to_str().unwrap()), "{message}");
        }
        error
    };
    let error = newer("journal", &|path| patch(path, 8, 56, 56));
    assert!(error.contains("version 2"), "{error}");
    newer("manifests", &|path| patch(&path.with_file_name("current"), 8, 32, 32));
    newer("manifests", &|path| {
        let mut bytes = fs::read(path).unwrap();
        let (manifest, trailer) =
            bytes.split_at_mut(fs::metadata(path).unwrap().len() as usize - 40);
        trailer[16] = 2;
        let mut checked = trailer[..24].to_vec();
        checked.extend(xxh3_64(manifest).to_le_bytes());
        trailer[24..32].copy_from_slice(&xxh3_64(&checked).to_le_bytes());
        fs::write(path, bytes).unwrap();
    });
    let error = newer("blobs", &|path| {
        files(path.parent().unwrap()).iter().for_each(|path| patch(path, 8, 4088, 4088));
    });
    assert!(error.contains("feature 1"), "{error}");
    // The contents of the files have versions of their own.
    newer("journal", &|path| {
        let journal = FileJournal::open(path.parent().unwrap()).unwrap();
        let position = journal.append(b"a record\xFF").unwrap();
        journal.sync(position).unwrap();
    });
    newer("manifests", &|path| {
        let manifests = FileManifests::open(path.parent().unwrap()).unwrap();
        assert_eq!(manifests.publish(3, b"a checkpoint\xFF").unwrap(), Published::Done);
    });
}

#[test]
fn a_damaged_checkpoint_has_a_way_back_to_the_one_before() {
    let (directory, all) = written();
    let state = StateDirectory::open(directory.path()).unwrap();
    let manifests = files(&directory.path().join("manifests"));
    let newest = manifests.iter().rfind(|path| name(path).ends_with(".manifest")).unwrap();
    let bytes = fs::read(newest).unwrap();
    fs::write(newest, &bytes[1..]).unwrap();
    let check = state.check().unwrap();
    assert_eq!((check.current, check.sound), (None, Some(1)), "{check}");
    let remedy = check.remedy().unwrap();
    assert!(remedy.contains("alluvium backup --checkpoint 1 DIR TO"), "{remedy}");
    let copies = tempfile::tempdir().unwrap();
    let error = state.backup(copies.path().join("0")).unwrap_err().to_string();
    assert!(error.contains(name(newest)) && error.contains("byte"), "{error}");
    assert_eq!(fs::read_dir(copies.path()).unwrap().count(), 0, "nothing is left behind");
    let copy = copies.path().join("1");
    state.backup_from(1, &copy).unwrap();
    assert_eq!(damage(&copy), [""; 0]);
    assert_eq!(shown(&open(&copy).unwrap()).unwrap(), all);
    // The journal still has everything, as it happens.
    let copy = copies.path().join("2");
    state.backup_from(0, &copy).unwrap();
    assert_eq!(shown(&open(&copy).unwrap()).unwrap(), all);
    // Damage that the current checkpoint does not meet needs no way back.
    fs::write(newest, &bytes).unwrap();
    fs::write(newest.with_file_name("00000000000000000001.manifest"), "damage").unwrap();
    let remedy = state.check().unwrap().remedy().unwrap();
    assert!(remedy.starts_with("`alluvium backup DIR TO`"), "{remedy}");
    let copy = copies.path().join("3");
    state.backup(&copy).unwrap();
    assert_eq!(shown(&open(&copy).unwrap()).unwrap(), all);
}

#[test]
fn copies_of_a_running_engine_have_everything_that_was_acknowledged_before() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path()).unwrap();
    engine.execute(bank::DEFINITIONS).unwrap();
    let copies = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(directory.path()).unwrap();
    let (acknowledged, is_over) = (AtomicI64::new(0), AtomicBool::new(false));
    let (mut checkpoints, mut linked) = (Vec::new(), 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            bank::run(&engine, i64::MAX, |number| {
                acknowledged.store(number, Ordering::SeqCst);
                if number % 3 == 0 {
                    engine.execute("CHECKPOINT")?;
                }
                match is_over.load(Ordering::SeqCst) {
                    true => Err(Error::Interrupted),
                    false => Ok(()),
                }
            })
        });
        for number in 0..12 {
            let least = acknowledged.load(Ordering::SeqCst);
            let copy = copies.path().join(number.to_string());
            let backup = state.backup(&copy);
            let most = acknowledged.load(Ordering::SeqCst) + 1;
            if backup.is_err() {
                is_over.store(true, Ordering::SeqCst);
            }
            let backup = backup.unwrap();
            checkpoints.push(backup.checkpoint);
            linked += backup.linked;
            assert_eq!(damage(&copy), [""; 0]);
            let copy = open(&copy).unwrap();
            let moved: i64 = query(&copy, "SELECT n FROM moved")[0].parse().unwrap();
            assert!((least..=most).contains(&moved), "{least} to {most}: {moved}");
            assert_eq!(query(&copy, "SELECT s FROM total"), ["100"]);
            assert_eq!(query(&copy, "SELECT money FROM b"), [moved.to_string()]);
            // The copy goes its own way.
            copy.execute(
                "UPDATE b SET money = 1000; CHECKPOINT; CREATE TABLE x (n INT); CHECKPOINT",
            )
            .unwrap();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(linked > 0 && checkpoints.first() < checkpoints.last(), "{checkpoints:?}");
    assert_eq!(query(&engine, "SELECT s FROM total"), ["100"]);
    drop(engine);
    assert_eq!(damage(directory.path()), [""; 0]);
    let names = fs::read_dir(copies.path()).unwrap().count();
    assert_eq!(names, 12, "nothing else is left behind");
}
