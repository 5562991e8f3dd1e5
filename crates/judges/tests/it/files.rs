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
