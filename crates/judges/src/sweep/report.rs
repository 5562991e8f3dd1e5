//! The findings of a sweep.

use std::collections::BTreeMap;
use std::fmt;

/// The verdict on one expression.
pub(super) enum Verdict {
    Agrees,
    /// Otherwise than in DuckDB, as this line of the reference says.
    Deviates(&'static str),
    Wrong(String),
    /// The engine does not take what another database takes.
    Refused(String),
    /// No other database takes it; the engine agrees with itself.
    Alone,
}

/// The counts of a function or operator.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    /// Expressions with DuckDB's answer, or with that of Postgres where DuckDB has none.
    pub agree: usize,
    /// Expressions with another answer, as the reference says.
    pub deviates: usize,
    /// Expressions with another answer, and functions that contradict themselves.
    pub wrong: usize,
    /// Expressions that another database answers and the engine does not take.
    pub refused: usize,
    /// Expressions that no other database takes.
    pub alone: usize,
}

/// The counts of all functions and operators, and the errors.
#[derive(Default)]
pub struct Report {
    by_name: BTreeMap<String, Counts>,
    deviations: BTreeMap<&'static str, usize>,
    wrong: Vec<(String, String)>,
    refused: BTreeMap<String, usize>,
}

impl Report {
    pub(super) fn add(&mut self, name: &str, signature: &str, expression: &str, verdict: Verdict) {
        let counts = self.by_name.entry(name.to_owned()).or_default();
        match verdict {
            Verdict::Agrees => counts.agree += 1,
            Verdict::Deviates(line) => {
                counts.deviates += 1;
                *self.deviations.entry(line).or_default() += 1;
            }
            Verdict::Wrong(why) => {
                counts.wrong += 1;
                self.wrong.push((format!("{name}({signature})"), format!("{expression}: {why}")));
            }
            Verdict::Refused(why) => {
                counts.refused += 1;
                *self.refused.entry(format!("{name}({signature}): {why}")).or_default() += 1;
            }
            Verdict::Alone => counts.alone += 1,
        }
    }

    /// The sums over all functions.
    pub fn totals(&self) -> Counts {
        self.by_name.values().fold(Counts::default(), |all, one| Counts {
            agree: all.agree + one.agree,
            deviates: all.deviates + one.deviates,
            wrong: all.wrong + one.wrong,
            refused: all.refused + one.refused,
            alone: all.alone + one.alone,
        })
    }

    /// The expressions that are wrong, each with its function and types, and with what was found.
    pub fn wrong(&self) -> &[(String, String)] {
        &self.wrong
    }

    /// The expressions that the engine refuses though others take them, by name, and how many.
    pub fn refused(&self) -> impl Iterator<Item = (&str, usize)> {
        self.refused.iter().map(|(what, count)| (what.as_str(), *count))
    }

    /// The lines of the reference by which the engine deviates, with the number of expressions.
    pub fn deviations(&self) -> impl Iterator<Item = (&str, usize)> {
        self.deviations.iter().map(|(line, count)| (*line, *count))
    }
}

/// A table: a line for each function, and the totals.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| function | agree | deviates as documented | wrong | refused | no other judge |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        let all = self.totals();
        for (name, counts) in
            self.by_name.iter().map(|(name, counts)| (name.as_str(), counts)).chain([("all", &all)])
        {
            let name = name.replace('|', "\\|");
            let Counts { agree, deviates, wrong, refused, alone } = counts;
            writeln!(f, "| `{name}` | {agree} | {deviates} | {wrong} | {refused} | {alone} |")?;
        }
        Ok(())
    }
}
