//! The findings of a run.

use std::collections::BTreeMap;
use std::fmt;

use super::finding::{Fault, Finding};

/// The counts of a run, and its findings.
#[derive(Debug, Default)]
pub struct Summary {
    /// Cases that were run.
    pub cases: u64,
    /// Statements that were answered.
    pub answered: u64,
    /// Statements that were refused.
    pub refused: u64,
    /// How often a process had to be started again.
    pub restarts: u64,
    /// The findings, with the numbers of their cases.
    pub findings: Vec<(u64, Finding)>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut faults: BTreeMap<Fault, usize> = BTreeMap::new();
        for (_, finding) in &self.findings {
            *faults.entry(finding.fault).or_default() += 1;
        }
        writeln!(
            f,
            "{} cases; {} statements answered, {} refused; {} restarts; {} findings",
            self.cases,
            self.answered,
            self.refused,
            self.restarts,
            self.findings.len()
        )?;
        faults.iter().try_for_each(|(fault, count)| writeln!(f, "{count:>8} {fault}"))
    }
}
