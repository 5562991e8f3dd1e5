//! The outcome of a plan.

use std::fmt::{self, Display};

use super::plan::{Number, Step};
use super::query::Query;

/// The answer of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// How many rows it changed.
    Changed(u64),
    /// Its rows, or those that it changed.
    Rows(String),
    /// It failed.
    Failed(Failure),
}

/// Why a statement failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It must.
    Refused,
    /// A relation that it reads is not there, or is another one.
    Absent,
    /// It was ended.
    GivenUp,
    /// Other transactions were in its way.
    Conflict,
}

/// A plan that was carried out, with or without success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub number: Number,
    /// The last epoch that any client knew to be committed before it began.
    pub after: u64,
    /// The last epoch that was committed when it had ended.
    pub before: u64,
    /// The epoch of its commit, if it was committed.
    pub epoch: Option<u64>,
    /// The answers of its statements, as far as they are known.
    pub said: Vec<Said>,
}

impl Attempt {
    /// The combined value of the last two reads of single rows among the first steps.
    pub fn derived(steps: &[Step], said: &[Said]) -> i64 {
        let reads = steps.iter().zip(said).rev();
        let rows = reads.filter_map(|(step, said)| match (step, said) {
            (Step::Read(Query::Row(..)), Said::Rows(rows)) => Some(rows.parse().unwrap_or(0)),
            _ => None,
        });
        rows.take(2).sum::<i64>() % 1_000
    }

    /// The attempt that a line tells of; `None` if it is cut off.
    pub fn parse(line: &str) -> Option<Self> {
        let (numbers, said) = line.strip_suffix('.')?.split_once(';')?;
        let mut numbers = numbers.split(' ').map(str::parse);
        let mut next = || numbers.next()?.ok();
        let number = Number { client: next()?, number: next()? };
        let (after, before, epoch) = (next()?, next()?, next()?);
        let said = said.split_terminator(';').map(Said::parse).collect::<Option<_>>()?;
        Some(Self { number, after, before, epoch: Some(epoch).filter(|epoch| *epoch > 0), said })
    }
}

/// A line.
impl Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, after, before, epoch, said } = self;
        let Number { client, number } = number;
        write!(f, "{client} {number} {after} {before} {};", epoch.unwrap_or(0))?;
        said.iter().try_for_each(|said| match said {
            Said::Changed(rows) => write!(f, "c{rows};"),
            Said::Rows(rows) => write!(f, "r{rows};"),
            Said::Failed(failure) => write!(f, "f{};", *failure as u8),
        })?;
        write!(f, ".")
    }
}

impl Said {
    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_at_checked(1)?;
        Some(match kind {
            "c" => Said::Changed(rest.parse().ok()?),
            "r" => Said::Rows(rest.to_owned()),
            "f" => {
                let all = [Failure::Refused, Failure::Absent, Failure::GivenUp, Failure::Conflict];
                let is = |failure: &Failure| (*failure as u8).to_string() == rest;
                Said::Failed(all.into_iter().find(is)?)
            }
            _ => return None,
        })
    }
}

#[test]
fn an_attempt_is_what_its_line_says() {
    let said = vec![
        Said::Rows("1 2 3|4 NULL -6".to_owned()),
        Said::Rows(String::new()),
        Said::Changed(7),
        Said::Failed(Failure::GivenUp),
    ];
    let number = Number { client: 3, number: 4 };
    let attempt = Attempt { number, after: 5, before: 9, epoch: None, said };
    let line = attempt.to_string();
    assert_eq!(Attempt::parse(&line), Some(attempt));
    assert_eq!(Attempt::parse(&line[..line.len() - 1]), None);
}
