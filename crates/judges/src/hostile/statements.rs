//! The sequence of hostile statements.
//!
//! A round follows one SQL file: its statements are run as they are, one by one, and between them mutants of them. So what
//! mutants name exists, and has rows. Every fourth round has statements that are deep, wide or long instead.

use super::case::{Case, random};
use super::corpus::scripts;
use super::mutation::mutated;
use super::{deep, wide};

/// The number of cases of a round.
const ROUND: u64 = 60;

/// The tables that deep and wide statements read.
const TABLES: [&str; 7] = [
    "CREATE TABLE t (a INT, b BIGINT, s TEXT, d DOUBLE, n DECIMAL(12, 2), x TIMESTAMP, l INT[], o BOOLEAN)",
    "CREATE TABLE u (a INT PRIMARY KEY, s TEXT)",
    "INSERT INTO t VALUES (1, 2, 'three', 4.5, 6.78, '2026-01-02 03:04:05', [1, 2, 3], TRUE),
       (2, 2, 'three', -4.5, -6.78, '1999-12-31 23:59:59.999999', [], FALSE),
       (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "INSERT INTO u VALUES (1, 'one'), (2, 'two')",
    "CREATE MATERIALIZED VIEW m AS SELECT b, COUNT(*) AS rows FROM t GROUP BY b",
    "CREATE VIEW p AS SELECT t.a, u.s FROM t JOIN u ON t.a = u.a",
    "CREATE LOCAL VIEW q AS SELECT a, s FROM p WHERE a > 0",
];

/// The hostile statements for a seed.
pub(crate) struct Statements {
    seed: u64,
    /// The most bytes of a deep or wide statement.
    longest: usize,
    scripts: Vec<Vec<String>>,
}

impl Statements {
    pub(crate) fn new(seed: u64, longest: usize) -> Self {
        Self { seed, longest, scripts: scripts() }
    }

    pub(crate) fn case(&self, number: u64) -> Case {
        let (round, place) = (number / ROUND, number % ROUND);
        let mut rng = random(self.seed, number);
        if round % 4 == 3 {
            let statements = match rng.bool() {
                true => vec![deep::statement(&mut rng, self.longest)],
                false => wide::statements(&mut rng, self.longest),
            };
            let setup = TABLES.map(str::to_owned).to_vec();
            return Case { round, setup, statements, ..Case::default() };
        }
        // Every seed begins with another file.
        let script =
            (random(self.seed, u64::MAX).u64(..1 << 32) + round) % self.scripts.len() as u64;
        let script = &self.scripts[script as usize];
        let due = 1 + (place * script.len() as u64 / ROUND) as usize;
        // Most often of what was just run, or is next: what else it names may not be there yet.
        let subject = if rng.u32(..4) > 0 {
            (due + 1).saturating_sub(rng.usize(..4)).min(script.len() - 1)
        } else {
            rng.usize(..script.len())
        };
        let donor = |rng: &mut fastrand::Rng| {
            let script =
                if rng.bool() { script } else { &self.scripts[rng.usize(..self.scripts.len())] };
            script[rng.usize(..script.len())].as_str()
        };
        let statement = mutated(&mut rng, &script[subject], donor);
        let setup = script[..due].to_vec();
        Case { round, setup, statements: vec![statement], ..Case::default() }
    }
}
