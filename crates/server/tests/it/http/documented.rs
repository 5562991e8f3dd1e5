//! `docs/reference/http.md`: its lines for the shell are run, and print what it says. Where curl is not installed this does nothing.

use std::process::Command;

use super::door::Door;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/http.md");

/// The blocks of the page: what each begins with, and its text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let parts = page.split("\n```").skip(1).step_by(2);
    parts.map(|block| block.split_once('\n').expect("a block")).collect()
}

#[test]
fn what_the_page_shows_is_what_is_answered() {
    if Command::new("curl").arg("--version").output().is_err() {
        return;
    }
    let door = Door::open();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("http.token"), door.token()).expect("a file");
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let blocks = blocks(&page);
    let (_, ask) = blocks.iter().find(|(_, block)| block.starts_with("ask()")).expect("ask");
    let mut count = 0;
    for pair in blocks.windows(2) {
        let [("sh", script), ("text", expected)] = pair else { continue };
        count += 1;
        let output = Command::new("sh")
            .args(["-c", &format!("{ask}\n{script}")])
            .current_dir(folder.path())
            .env("URL", format!("http://{}", door.address()))
            .output()
            .expect("a shell");
        let printed = String::from_utf8_lossy(&output.stdout).replace('\r', "");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(printed.trim_end(), expected.trim_end(), "{script}\n{errors}");
    }
    assert_eq!(count, 15);
}
