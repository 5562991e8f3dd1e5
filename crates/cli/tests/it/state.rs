//! Checking, listing and copying state directories.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tempfile::TempDir;

use crate::binary::binary;
use crate::durable::{DEFINITIONS, Shell};

fn alluvium(arguments: &[&str], paths: &[&Path]) -> Output {
    Command::new(binary()).args(arguments).args(paths).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A directory with a checkpoint, a commit after it, and the checkpoint that the shell takes at its end.
fn written(folder: &TempDir) -> std::path::PathBuf {
    let directory = folder.path().join("state");
    let sql = "CREATE TABLE t (n INT); CREATE MATERIALIZED VIEW v AS SELECT SUM(n) AS s FROM t;
        INSERT INTO t VALUES (1), (2); CHECKPOINT; INSERT INTO t VALUES (3)";
    let run = alluvium(&["-c", sql, "--state"], &[&directory]);
    assert!(run.status.success(), "{}", err(&run));
    directory
}

#[test]
fn until_opens_a_directory_without_its_last_epochs_and_says_where_they_are() {
    let folder = TempDir::new().unwrap();
    let directory = written(&folder);
    let sum = |directory: &Path, more: &[&str]| {
        let query = ["-c", "SELECT s FROM v", "--format", "csv"];
        alluvium(&[&query, more, &["--state"]].concat(), &[directory])
    };
    let refused = sum(&directory, &["--until", "5"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(err(&refused).contains("it ends with epoch 2"), "{}", err(&refused));
    let until = sum(&directory, &["--until", "1"]);
    assert!(until.status.success(), "{}", err(&until));
    assert_eq!(out(&until), "s\r\n3\r\n");
    let aside = directory.join("aside/until-1");
    assert!(err(&until).contains(aside.to_str().unwrap()), "{}", err(&until));
    let again = sum(&directory, &[]);
    assert_eq!((out(&again).as_str(), err(&again).as_str()), ("s\r\n3\r\n", ""));
    assert_eq!(out(&sum(&aside, &[])), "s\r\n6\r\n");
    let alone = alluvium(&["-c", "SELECT 1", "--until", "1"], &[]);
    assert_eq!(alone.status.code(), Some(2), "{}", err(&alone));
}

#[test]
fn a_check_says_whether_a_directory_is_sound_and_what_can_be_done_if_not() {
    let folder = TempDir::new().unwrap();
    let directory = written(&folder);
    let check = alluvium(&["check"], &[&directory]);
    assert!(check.status.success(), "{}", out(&check));
    assert!(out(&check).ends_with("\nsound\n"), "{}", out(&check));
    // The current checkpoint first, then the one before it: then the journal still has everything.
    for (damaged, sound) in [(2, 1), (1, 0)] {
        let manifest = directory.join(format!("manifests/{damaged:020}.manifest"));
        let mut bytes = std::fs::read(&manifest).unwrap();
        bytes[20] ^= 1;
        std::fs::write(&manifest, &bytes).unwrap();
        let check = alluvium(&["check"], &[&directory]);
        assert_eq!(check.status.code(), Some(1));
        let expected = format!("damage: {} at byte 0: its checksum", manifest.display());
        assert!(out(&check).contains(&expected), "{}", out(&check));
        let remedy = format!("alluvium backup --checkpoint {sound} DIR TO");
        assert!(out(&check).contains(&remedy), "{}", out(&check));
        let start = alluvium(&["-c", "SELECT 1", "--state"], &[&directory]);
        assert!(
            !start.status.success() && err(&start).contains("alluvium check"),
            "{}",
            err(&start)
        );
        let copy = folder.path().join(format!("copy of {sound}"));
        let backup =
            alluvium(&["backup", "--checkpoint", &sound.to_string()], &[&directory, &copy]);
        assert!(backup.status.success(), "{}", err(&backup));
        assert!(out(&backup).contains("files of inputs and outputs are not part of it"));
        let sum = alluvium(&["-c", "SELECT s FROM v", "--format", "csv", "--state"], &[&copy]);
        assert_eq!(out(&sum).lines().last(), Some("6"), "{}", err(&sum));
    }
    let none = folder.path().join("none");
    for command in ["check", "manifest", "backup"] {
        let copy = folder.path().join("other");
        let paths: &[&Path] = if command == "backup" { &[&none, &copy] } else { &[&none] };
        let refused = alluvium(&[command], paths);
        assert_eq!(refused.status.code(), Some(1));
        assert!(err(&refused).starts_with("error: there is no directory"), "{}", err(&refused));
        assert!(!copy.exists() && !none.exists());
    }
}

#[test]
fn a_manifest_is_listed_as_text_and_as_json_also_while_the_directory_is_used() {
    let folder = TempDir::new().unwrap();
    let directory = written(&folder);
    let mut shell = Shell::start(&directory, 1);
    assert_eq!(shell.value("SELECT s FROM v"), "6");
    let text = out(&alluvium(&["manifest"], &[&directory]));
    assert!(text.starts_with("checkpoint 1\n"), "{text}");
    assert!(text.contains("\ncheckpoint 2, the current one\n"), "{text}");
    assert!(text.contains("relation v: CREATE MATERIALIZED VIEW v AS SELECT SUM(n)"), "{text}");
    let json = out(&alluvium(&["manifest", "--json"], &[&directory]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["number"], 1);
    assert_eq!(json[0]["relations"][0]["name"], "t");
    assert!(json[0]["dataflows"][0]["bytes"].as_u64().unwrap() > 0, "{json}");
    let refused = alluvium(&["check"], &[&directory]);
    let expected = format!("is used by process {}", shell.id());
    assert!(!refused.status.success() && err(&refused).contains(&expected), "{}", err(&refused));
}

#[test]
fn copies_of_a_directory_that_another_process_uses_have_everything_that_was_acknowledged() {
    let folder = TempDir::new().unwrap();
    let directory = folder.path().join("state");
    let mut shell = Shell::start(&directory, 1);
    assert_eq!(shell.value(DEFINITIONS), "ready");
    let (acknowledged, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1.. {
                let checkpoint = if number % 3 == 0 { "CHECKPOINT;" } else { "" };
                let value = shell.value(&format!(
                    "BEGIN; UPDATE a SET money = money - 1; INSERT INTO moved VALUES ({number});
                     UPDATE b SET money = money + 1; COMMIT; {checkpoint} SELECT {number} AS n"
                ));
                assert_eq!(value, number.to_string());
                acknowledged.store(number, Ordering::SeqCst);
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        let copies: Vec<_> = (0..5).map(|number| folder.path().join(number.to_string())).collect();
        let made: Vec<_> = copies
            .iter()
            .map(|copy| {
                let least = acknowledged.load(Ordering::SeqCst);
                let backup = alluvium(&["backup"], &[&directory, copy]);
                (least, backup, acknowledged.load(Ordering::SeqCst) + 1)
            })
            .collect();
        is_over.store(true, Ordering::SeqCst);
        for (copy, (least, backup, most)) in copies.iter().zip(made) {
            assert!(backup.status.success(), "{}", err(&backup));
            let check = alluvium(&["check"], &[copy]);
            assert!(check.status.success(), "{}", out(&check));
            let sql = "SELECT c, (SELECT s FROM total), (SELECT money FROM b) FROM moves";
            let rows = alluvium(&["-c", sql, "--format", "csv", "--state"], &[copy]);
            let line = out(&rows).lines().nth(1).unwrap_or_default().to_owned();
            let values: Vec<u64> = line.split(',').map(|value| value.parse().unwrap()).collect();
            assert!((least..=most).contains(&values[0]), "{least} to {most}: {line}");
            assert_eq!(values[1..], [1_000_000, values[0]]);
        }
    });
}
