//! `alluvium demo`: the tutorial from the executable itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::binary::binary;
use crate::shell::{Run, run};

/// The files of a folder and of those in it, by their paths in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = PathBuf::from(path.file_name().unwrap());
        match path.is_dir() {
            true => found.extend(files(&path).into_iter().map(|file| name.join(file))),
            false => found.push(name),
        }
    }
    found.sort();
    found
}

/// The output of the demo, whichever folder its files are in.
fn expect_results(found: &Run) {
    assert_eq!(found.status, Some(0), "{}", found.errors);
    let lines_with = |text: &str| found.output.lines().filter(|line| line.contains(text)).count();
    assert_eq!(lines_with("| 20938 "), 1);
    assert_eq!(lines_with("| 20939 "), 1);
    assert_eq!(lines_with("| airline "), 6);
    assert_eq!(lines_with("| 130.0 "), 1);
    assert!(found.errors.starts_with("The tutorial: 20,938 flights "), "{}", found.errors);
}

#[test]
fn the_demo_prints_the_tutorials_results_and_leaves_nothing_behind() {
    let (folder, temporary) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut command = Command::new(binary());
    command.arg("demo").current_dir(&folder).env("TMPDIR", temporary.path());
    let found = Run::from(command.output().unwrap());
    expect_results(&found);
    assert!(found.errors.ends_with("alluvium init orders\n"), "{}", found.errors);
    assert_eq!(files(folder.path()).len() + files(temporary.path()).len(), 0);
}

#[test]
fn the_demo_leaves_its_files_in_a_directory_where_they_can_be_run_again() {
    let folder = TempDir::new().unwrap();
    let directory = folder.path().join("a/flights");
    let directory = directory.to_str().unwrap();
    let found = run(&["demo", "--keep", directory]);
    expect_results(&found);
    let again = format!("alluvium run {directory}/flights.sql\n");
    assert!(found.errors.ends_with(&again), "{}", found.errors);
    assert_eq!(files(Path::new(directory)).len(), 5);
    let program = format!("{directory}/flights.sql");
    let repeated = run(&["run", &program]);
    assert_eq!((repeated.status, repeated.output), (Some(0), found.output));

    let refused = run(&["demo", "--keep", directory]);
    let errors = format!("error: {directory}: the directory is not empty\n");
    assert_eq!(refused, Run { status: Some(1), output: String::new(), errors });
    let refused = run(&["demo", "--keep", &program]);
    assert_eq!(refused.status, Some(1));
    assert!(refused.errors.starts_with(&format!("error: {program}: ")), "{}", refused.errors);
}

/// The package has copies: `cp docs/tutorial/flights.sql crates/cli/demo/` and so on.
#[test]
fn the_demos_files_are_those_of_the_tutorial() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (demo, tutorial) = (here.join("demo"), here.join("../../docs/tutorial"));
    let mut expected = files(&tutorial);
    expected.retain(|file| file != Path::new("README.md"));
    assert_eq!(files(&demo), expected);
    for file in expected {
        let same = fs::read(demo.join(&file)).unwrap() == fs::read(tutorial.join(&file)).unwrap();
        assert!(same, "crates/cli/demo/{} is not the tutorial's", file.display());
    }
}
