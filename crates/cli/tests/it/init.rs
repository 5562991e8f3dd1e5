//! `alluvium init`: a project to begin with.

use std::fs;

use tempfile::TempDir;

use crate::shell::{Run, done, run};

const FILES: [&str; 4] = ["program.sql", "data/orders.csv", "README.md", ".gitignore"];

/// A new project in a folder, named after it: `shop`.
fn project(folder: &TempDir) -> String {
    let directory = folder.path().join("shop").to_str().unwrap().to_owned();
    let created: String =
        FILES.iter().map(|file| format!("created {directory}/{file}\n")).collect();
    let expected = done(&format!("{created}Run it: alluvium run {directory}/program.sql\n"));
    assert_eq!(run(&["init", &directory]), expected);
    directory
}

#[test]
fn a_new_project_runs_and_gives_results() {
    let folder = TempDir::new().unwrap();
    let directory = project(&folder);
    let program = format!("{directory}/program.sql");
    let header = "product,orders,pieces,revenue\r\n";
    let before = "lamp,6,17,663.00\r\nnotebook,7,20,90.00\r\nink,6,10,72.50\r\npencil,7,73,65.70\r\n\
        ruler,4,10,21.00\r\n";
    let after = "lamp,5,5,195.00\r\nink,6,10,72.50\r\nnotebook,6,16,72.00\r\npencil,6,64,57.60\r\n\
        ruler,4,10,21.00\r\n";
    let expected = done(&format!("{header}{before}{header}{after}"));
    assert_eq!(run(&["run", &program, "--format", "csv"]), expected);
    let customers = fs::read_to_string(format!("{directory}/customers.csv")).unwrap();
    let mut customers: Vec<_> = customers.lines().collect();
    customers.sort();
    assert_eq!(customers.len(), 9);
    assert_eq!(customers[0], "Ada,4,49.65,2026-03-13");
    assert_eq!(customers[8], "customer,orders,revenue,last_day");
}

/// The promise of its `README.md`.
#[test]
fn a_new_project_continues_from_its_state_directory_with_the_lines_that_its_data_has_gained() {
    let folder = TempDir::new().unwrap();
    let directory = project(&folder);
    let program = format!("{directory}/program.sql");
    let state = format!("{directory}/state");
    let arguments = ["run", &program, "--state", &state, "--format", "csv"];
    assert_eq!(run(&arguments).status, Some(0));
    let readme = fs::read_to_string(format!("{directory}/README.md")).unwrap();
    let (_, line) = readme.split_once("echo '").unwrap();
    let (line, _) = line.split_once("' >> data/orders.csv").unwrap();
    let data = format!("{directory}/data/orders.csv");
    fs::write(&data, fs::read_to_string(&data).unwrap() + line + "\n").unwrap();
    let found = run(&arguments);
    assert_eq!(found.status, Some(0), "{}", found.errors);
    let pencils = found.output.lines().filter(|line| *line == "pencil,7,76,68.40").count();
    assert_eq!(pencils, 2, "{}", found.output);
}

#[test]
fn a_project_has_the_name_that_it_is_given() {
    let folder = TempDir::new().unwrap();
    let directory = project(&folder);
    let first = |file: &str| {
        let text = fs::read_to_string(format!("{directory}/{file}")).unwrap();
        text.lines().next().unwrap().to_owned()
    };
    assert_eq!(first("README.md"), "# shop");
    for file in FILES {
        fs::remove_file(format!("{directory}/{file}")).unwrap();
    }
    let found = run(&["init", &directory, "--name", "Ink\nand paper"]);
    assert_eq!(found.status, Some(0), "{}", found.errors);
    assert_eq!(first("README.md"), "# Ink\\nand paper");
    assert!(first("program.sql").starts_with("-- Ink\\nand paper: "));
}

#[test]
fn a_file_that_exists_is_named_and_nothing_changes() {
    for file in FILES {
        let folder = TempDir::new().unwrap();
        let directory = project(&folder);
        for other in FILES.into_iter().filter(|other| *other != file) {
            fs::remove_file(format!("{directory}/{other}")).unwrap();
        }
        let path = format!("{directory}/{file}");
        fs::write(&path, "mine").unwrap();
        let errors = format!("error: {path}: the file exists; nothing was changed\n");
        let expected = Run { status: Some(1), output: String::new(), errors };
        assert_eq!(run(&["init", &directory]), expected);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        for other in FILES.into_iter().filter(|other| *other != file) {
            assert!(!fs::exists(format!("{directory}/{other}")).unwrap(), "{other}");
        }
    }
}
