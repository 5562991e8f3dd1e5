//! SQL files of other projects: which of their queries can be views, and whether these are right.
//!
//! A folder has files for `sqllogictest`. Their statements make tables, in the engine and, with the same rows, in DataFusion.
//! Each query over these tables becomes a materialized view. Random rows of the tables then go and come back, and after every
//! transaction the view is compared with DataFusion's answer over the same rows.
//!
//! The answers that a file expects are not looked at: DataFusion judges. So queries count only if DataFusion has an answer, and the same
//! answer whatever the order of the rows. Where the engine has another one on purpose ([`deviations`]), its own query judges.

mod deviations;
mod file;
mod report;
mod tables;
pub mod tpcds;

pub use report::{Report, Verdict};

use std::path::Path;

use file::File;

use crate::files::find;

/// Judges the queries of all `.slt` files in a folder, and calls `done` after each file.
///
/// Fails if the folder cannot be read. A file that is not one for `sqllogictest` is part of the report.
pub fn run(
    folder: &Path,
    seed: u64,
    mut done: impl FnMut(&Path, &Report),
) -> Result<Report, String> {
    let files = find(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut all = Report::default();
    for path in files {
        let name = path.strip_prefix(folder).unwrap_or(&path).to_owned();
        let report = File::new(seed).run(&path, &name);
        done(&name, &report);
        all += report;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The report on a file with this text.
    fn report(text: &str) -> Report {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.slt"), text).unwrap();
        run(folder.path(), 1, |_, _| {}).unwrap()
    }

    #[test]
    fn every_query_over_a_table_has_a_verdict() {
        let report = report(
            "statement ok
CREATE TABLE t AS VALUES (1, 10), (2, 20), (2, 20), (3, NULL)

query II
SELECT column1, SUM(column2) FROM t GROUP BY column1
----
nobody looks here

query I
SELECT column1 FROM t LIMIT 2

query I
SELECT column1 FROM t ORDER BY random()

query I
SELECT no_column FROM t

query I
SELECT 1

statement error
DROP TABLE t

query I
SELECT COUNT(*) FROM t
",
        );
        let count = |verdict: fn(&Verdict) -> bool| report.count(verdict);
        assert_eq!(count(|verdict| *verdict == Verdict::Passed), 1, "{report}");
        assert_eq!(count(|verdict| *verdict == Verdict::Ambiguous), 1, "{report}");
        assert_eq!(count(|verdict| matches!(verdict, Verdict::Refused(_))), 1, "{report}");
        assert_eq!(count(|verdict| matches!(verdict, Verdict::Wrong(_))), 0, "{report}");
        // One of no column, one of no table, and one of a table that was dropped.
        assert_eq!(count(|verdict| *verdict == Verdict::NotJudged), 3, "{report}");
    }
}
