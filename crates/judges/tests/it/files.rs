//! The SQL files under `sql/tests/slt`.

use alluvium_judges::files;

#[test]
fn every_file_passes_on_one_worker() {
    files::run(1);
}

#[test]
fn every_file_passes_on_two_workers() {
    files::run(2);
}

#[test]
fn every_file_passes_on_three_workers() {
    files::run(3);
}

#[test]
fn every_file_holds_through_a_server() {
    files::run_served();
}

#[test]
fn every_file_holds_in_the_shipped_binary() {
    match std::env::var_os("ALLUVIUM_BINARY") {
        Some(path) => files::run_shipped(path.as_ref()),
        None => {
            println!("skipped: ALLUVIUM_BINARY names no binary built without the features of tests")
        }
    }
}
