//! The queries of TPC-DS as views, over rows that they find something in.
//!
//! The benchmark's own rows are too many for a comparison after every transaction, and of few of them most queries find
//! nothing. So each query has an engine of its own, with those of the 24 tables that it reads, and some hundred rows in
//! which its constants are frequent and keys meet:
//!
//! - [`constants`]: those that a query compares columns with;
//! - [`calendar`]: the rows of `date_dim`, which hang together;
//! - [`rows`]: the rows of the other tables.
//!
//! The texts of the queries belong to the TPC and are read from a folder.

mod calendar;
mod constants;
mod rows;

use std::path::{Path, PathBuf};

use super::file::File;
use super::report::Report;
use constants::Constants;
use rows::Rows;

/// The definitions of the tables, with their primary keys.
const TABLES: &str = include_str!("tables.sql");

/// The chance of a row to be in its table after a transaction. A query joins up to ten tables.
const PRESENCE: f64 = 0.9;

/// How often rows are generated again for a query that finds none of them.
const TRIALS: u64 = 20;

/// Judges the queries in all `.sql` files of a folder, in order of their numbers, and calls `done` after each file. A file may
/// have several queries, with a semicolon after each.
///
/// Fails if the folder cannot be read, or has no such file.
pub fn run(
    folder: &Path,
    seed: u64,
    mut done: impl FnMut(&str, &Report),
) -> Result<Report, String> {
    let message = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files: Vec<(u32, PathBuf)> = Vec::new();
    for entry in folder.read_dir().map_err(message)? {
        let path = entry.map_err(message)?.path();
        if path.extension().is_some_and(|extension| extension == "sql") {
            files.push((number(&path), path));
        }
    }
    if files.is_empty() {
        return Err(format!("{}: there is no file *.sql", folder.display()));
    }
    files.sort();
    let mut all = Report::default();
    for (_, path) in files {
        let name = path.file_stem().unwrap_or_default().display().to_string();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let report = judge(&name, &text, seed);
        done(&name, &report);
        all += report;
    }
    Ok(all)
}

/// The number in the name of a file.
fn number(path: &Path) -> u32 {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name.trim_matches(|letter: char| !letter.is_ascii_digit()).parse().unwrap_or(u32::MAX)
}

/// Judges the queries of a text.
fn judge(name: &str, text: &str, seed: u64) -> Report {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("--"));
    let text = lines.collect::<Vec<_>>().join("\n");
    let queries = text.split(';').map(str::trim).filter(|query| !query.is_empty());
    let mut report = Report::default();
    for (number, query) in queries.enumerate() {
        let place = if number == 0 { name.to_owned() } else { format!("{name}, {}", number + 1) };
        let mut file = filled(query, seed);
        for other in 1..TRIALS {
            if file.finds_rows(query) {
                break;
            }
            file = filled(query, seed + other);
        }
        file.ask_in_full_order(place, query);
        report += file.finish();
    }
    report
}

/// The tables that a query reads, with rows.
fn filled(query: &str, seed: u64) -> File {
    let mut file = File::with_many_joins(seed, PRESENCE);
    let mut rows = Rows::new(Constants::of(query), seed);
    for definition in TABLES.split_inclusive(");\n") {
        let table =
            definition.split("CREATE TABLE ").nth(1).and_then(|rest| rest.split(' ').next());
        if let Some(table) = table.filter(|table| names(query, table)) {
            file.follow(definition);
            file.fill(table, |schema| rows.table(table, schema));
        }
    }
    file
}

/// Whether a text has a word.
fn names(text: &str, word: &str) -> bool {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .any(|other| other.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn a_query_over_many_tables_finds_rows_and_passes() {
        let report = judge(
            "q",
            "-- A comment; with a semicolon.
             SELECT i_brand, d_year, SUM(ss_ext_sales_price), COUNT(DISTINCT c_last_name)
             FROM store_sales, item, date_dim, customer, customer_address, store
             WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_customer_sk = c_customer_sk
               AND c_current_addr_sk = ca_address_sk AND ss_store_sk = s_store_sk AND ca_gmt_offset = -7
               AND d_year BETWEEN 1999 AND 1999 + 2 AND d_moy = 11 AND i_manager_id IN (28, 91)
             GROUP BY i_brand, d_year ORDER BY d_year LIMIT 100;
             SELECT COUNT(*) FROM store_returns, store_sales
             WHERE sr_item_sk = ss_item_sk AND sr_ticket_number = ss_ticket_number AND sr_customer_sk = ss_customer_sk",
            1,
        );
        assert_eq!(report.count(|verdict| *verdict == Verdict::Passed), 2, "{report}");
        assert_eq!(report.empty().count(), 0, "{report}");
    }

    #[test]
    fn files_are_judged_by_number() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["q10.sql", "q9.sql", "q1.txt"] {
            std::fs::write(folder.path().join(name), "SELECT r_reason_sk FROM reason").unwrap();
        }
        let mut names = Vec::new();
        let report = run(folder.path(), 1, |name, _| names.push(name.to_owned())).unwrap();
        assert_eq!(names, ["q9", "q10"]);
        assert_eq!(report.count(|verdict| *verdict == Verdict::Passed), 2, "{report}");
    }
}
