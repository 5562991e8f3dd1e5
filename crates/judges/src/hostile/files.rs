//! The sequence of hostile files.

use super::case::{Case, random};
use super::damage::damage;
use super::monstrous;
use super::valid::{self, Valid};

/// The number of cases of a round.
const ROUND: u64 = 40;

/// Columns that no file was written with.
const OTHER_COLUMNS: [&str; 4] = [
    "id TEXT, flag TEXT, name TEXT, tags TEXT, point TEXT, a TEXT, b TEXT",
    "id INT NOT NULL, name BIGINT, day TIMESTAMP, at DATE, price INT, a DATE, b TIMESTAMP, tags INT[]",
    "a DOUBLE PRIMARY KEY, b BYTEA",
    "a STRUCT<a STRUCT<a INT>>, b TEXT[][], id DECIMAL(38, 10), amount REAL, data TEXT",
];

/// The hostile files for a seed.
pub(crate) struct Files {
    seed: u64,
    /// The most bytes of a file without damage.
    longest: usize,
    valid: Vec<Valid>,
}

impl Files {
    pub(crate) fn new(seed: u64, longest: usize) -> Self {
        Self { seed, longest, valid: valid::files() }
    }

    pub(crate) fn case(&self, number: u64) -> Case {
        let mut rng = random(self.seed, number);
        let (extension, bytes, columns) = self.file(&mut rng);
        let columns = match rng.u32(..4) {
            0 => OTHER_COLUMNS[rng.usize(..OTHER_COLUMNS.len())],
            _ => columns,
        };
        let name = format!("hostile.{extension}");
        let statements = reads(&mut rng, &name, columns);
        Case { round: number / ROUND, files: vec![(name, bytes)], statements, ..Case::default() }
    }

    /// The end of a file's name, its bytes, and columns that may be those of its rows.
    fn file(&self, rng: &mut fastrand::Rng) -> (&'static str, Vec<u8>, &'static str) {
        if rng.u32(..8) == 0 {
            let (extension, bytes) = monstrous::file(rng, self.longest);
            return (extension, bytes, "a BIGINT, b TEXT");
        }
        let Valid { extension, bytes, columns } = self.valid[rng.usize(..self.valid.len())].clone();
        let mut bytes = bytes;
        let other = &self.valid[rng.usize(..self.valid.len())].bytes;
        damage(rng, &mut bytes, other);
        // Damage below the compression.
        if extension == "csv" && rng.u32(..8) == 0 {
            return ("csv.gz", monstrous::gzipped(&bytes), columns);
        }
        if rng.u32(..30) == 0 {
            // Read as another format.
            return (["csv", "jsonl", "json", "parquet", "csv.gz"][rng.usize(..5)], bytes, columns);
        }
        (extension, bytes, columns)
    }
}

/// Statements that read a file in one of all ways, or in every one.
fn reads(rng: &mut fastrand::Rng, name: &str, columns: &str) -> Vec<String> {
    let ways = [
        vec![
            format!("CREATE TABLE copied ({columns})"),
            format!("COPY copied FROM '{name}'"),
            "SELECT * FROM copied".to_owned(),
            "DROP TABLE copied".to_owned(),
        ],
        vec![
            format!(
                "CREATE TABLE connected ({columns}) WITH (connector = 'file', path = '{name}')"
            ),
            "CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS rows FROM connected".to_owned(),
            "SELECT * FROM counted".to_owned(),
            "DROP VIEW counted".to_owned(),
            "DROP TABLE connected".to_owned(),
        ],
        vec![
            format!("CREATE TABLE sampled FROM '{name}'"),
            "SELECT * FROM sampled".to_owned(),
            "DROP TABLE sampled".to_owned(),
        ],
        vec![format!("SELECT COUNT(*) FROM '{name}'"), format!("SELECT * FROM '{name}'")],
    ];
    match rng.usize(..=ways.len()) {
        way if way < ways.len() => ways[way].clone(),
        _ => ways.concat(),
    }
}
