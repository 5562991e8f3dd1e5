//! EXPLAIN ANALYZE: the time, the rows and the state of the operators of a view, and what would help.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::thread;
use std::time::{Duration, Instant};

use alluvium_sql::physical::Place;
use alluvium_sql::plan::{ExplainedNode, Keeping, KeptBy, KeptState, explained_nodes};
use alluvium_trace::metrics::Work;

use super::state::{self, Held};
use crate::catalog::{Entries, Entry, View};
use crate::error::Result;
use crate::interrupt;
use crate::query::Reader;
use crate::query::metrics::StateKey;

/// How many operators are told apart as those that take the most time.
const WORST: usize = 3;

/// The time from which on an operator is one of them, or is uneven.
const LEAST: Duration = Duration::from_millis(1);

/// The share of the time, in hundredths, from which on it is said what would help.
const NOTABLE: u128 = 10;

/// How often a wait looks whether it should end.
const PATIENCE: Duration = Duration::from_millis(20);

/// The operator that keeps the rows of a view, which is no node of its plan.
const KEEPS: &str = "keep rows";

/// The work of an operator on each worker.
type Works = Vec<Work>;

/// The work of the operators of a view and of the indexes that it reads, by the fingerprints of their rows; by their names if they
/// have none.
type All = BTreeMap<String, Works>;

/// An operator with its work.
struct Operator<'a> {
    /// The operation.
    name: &'a str,
    /// The line of EXPLAIN VIEW.
    line: String,
    /// Why a change costs it more than the change itself.
    burden: Option<&'static str>,
    works: Works,
    /// Its state.
    kept: Option<&'a KeptBy>,
}

impl Operator<'_> {
    fn busy(&self) -> Duration {
        self.works.iter().map(|work| work.busy).sum()
    }

    /// The states that it keeps itself.
    fn own_states(&self) -> impl Iterator<Item = &KeptState> {
        let states = self.kept.iter().flat_map(|by| &by.states);
        states.filter(|state| matches!(state.place, Place::Own(_)))
    }

    /// The worker that does much more than the others, and its share in hundredths.
    fn skew(&self) -> Option<(usize, u128)> {
        let (worker, most) = self.works.iter().enumerate().max_by_key(|(_, work)| work.busy)?;
        let share = hundredths(most.busy, self.busy());
        let fair = 100 / self.works.len() as u128;
        let is_uneven = self.works.len() > 1 && share >= fair + (100 - fair) / 2;
        (is_uneven && self.busy() >= LEAST).then_some((worker, share))
    }
}

impl Reader {
    /// The operators of a materialized view, and what they have done so far, or do in this time.
    pub(crate) fn explain_analyze(
        &self,
        entry: &Entry,
        entries: &Entries,
        time: Option<Duration>,
    ) -> Result<String> {
        let view = entry.as_view()?;
        let mut relations: BTreeSet<String> =
            view.uses.all.values().map(|index| index.of_index()).collect();
        relations.insert(entry.name.clone());
        let mut works = self.works(&relations);
        if let Some(time) = time {
            wait(time)?;
            let before = std::mem::replace(&mut works, self.works(&relations));
            subtract(&mut works, &before);
        }
        let there = |index| view.uses.all.contains_key(&index);
        let nodes = explained_nodes(&view.plan, &there)?;
        let kept = state::kept(entry, view, entries)?;
        let mut operators = Vec::new();
        let keeps = works.remove(KEEPS).unwrap_or_default();
        let contents = kept.iter().find(|by| by.rows.is_none());
        let (name, line) = (KEEPS, KEEPS.to_owned());
        operators.push(Operator { name, line, burden: None, works: keeps, kept: contents });
        for node in &nodes {
            // Equal nodes are one operator: the first has its work.
            let works = works.remove(&node.rows.to_string()).unwrap_or_default();
            let kept = kept.iter().find(|by| by.rows == Some(node.rows));
            let ExplainedNode { operator: name, burden, .. } = node;
            let (line, burden) = (node.to_string(), *burden);
            operators.push(Operator { name, line, burden, works, kept });
        }
        let held = state::held(self);
        let own = |operator: &Operator<'_>| own_state(operator, entry, view, &held);
        let text = written(&entry.name, &operators, &own, time);
        Ok(text.expect("a string takes any text"))
    }

    /// The work of the operators of these relations, on each worker.
    fn works(&self, relations: &BTreeSet<String>) -> All {
        let workers = self.progress.metrics();
        let mut all = All::new();
        for (worker, metrics) in workers.iter().enumerate() {
            for operator in metrics.operators() {
                let label = operator.label;
                if !relations.contains(&label.relation) {
                    continue;
                }
                let key = if label.fingerprint.is_empty() { label.name } else { label.fingerprint };
                let works = all.entry(key).or_insert_with(|| vec![Work::default(); workers.len()]);
                works[worker] = works[worker].and(operator.all);
            }
        }
        all
    }
}

/// Waits for so long, unless the call should end.
fn wait(time: Duration) -> Result<()> {
    let begun = Instant::now();
    while let Some(rest) = time.checked_sub(begun.elapsed()).filter(|rest| !rest.is_zero()) {
        interrupt::check()?;
        thread::sleep(rest.min(PATIENCE));
    }
    Ok(())
}

/// Takes away what was done before.
fn subtract(works: &mut All, before: &All) {
    for (key, works) in works {
        for (work, before) in works.iter_mut().zip(before.get(key).into_iter().flatten()) {
            *work = work.since(*before);
        }
    }
}

/// The rows and bytes of the state that an operator keeps itself.
fn own_state(
    operator: &Operator<'_>,
    entry: &Entry,
    view: &View,
    held: &BTreeMap<StateKey, Held>,
) -> (u64, u64) {
    let own = operator.own_states();
    own.filter_map(|state| held.get(&state::key(state, entry, view)))
        .fold((0, 0), |(rows, bytes), held| (rows + held.rows, bytes + held.memory + held.disk))
}

fn written(
    name: &str,
    operators: &[Operator<'_>],
    own: &dyn Fn(&Operator<'_>) -> (u64, u64),
    time: Option<Duration>,
) -> std::result::Result<String, std::fmt::Error> {
    let mut text = String::new();
    let all: Duration = operators.iter().map(Operator::busy).sum();
    match time {
        Some(time) => write!(text, "\"{name}\" took {} in {}", seconds(all), seconds(time))?,
        None => write!(text, "\"{name}\" took {} since it was made", seconds(all))?,
    }
    let workers = operators.iter().map(|operator| operator.works.len()).max().unwrap_or(1);
    writeln!(text, " on {workers} {}", if workers == 1 { "worker" } else { "workers" })?;
    let mut worst: Vec<usize> = (0..operators.len()).collect();
    worst.sort_by_key(|place| Reverse(operators[*place].busy()));
    worst.retain(|place| operators[*place].busy() >= LEAST);
    worst.truncate(WORST);
    for (place, operator) in operators.iter().enumerate() {
        let (busy, share) = (seconds(operator.busy()), hundredths(operator.busy(), all));
        write!(text, "{} ({busy}, {share} %", operator.line)?;
        let sum = |of: fn(&Work) -> u64| operator.works.iter().map(of).sum::<u64>();
        let (rows, bytes) = (sum(|work| work.rows), sum(|work| work.bytes));
        if rows > 0 {
            write!(text, "; {} out", state::rows(rows))?;
        }
        if bytes > 0 {
            write!(text, ", about {bytes} bytes")?;
        }
        match own(operator) {
            (0, _) => {}
            (rows, bytes) => write!(text, "; keeps {}, {bytes} bytes", state::rows(rows))?,
        }
        if let Some((worker, share)) = operator.skew() {
            write!(text, "; worker {worker} does {share} % of it")?;
        }
        match worst.iter().position(|worst| *worst == place) {
            Some(rank) => writeln!(text, ") <- {}", rank + 1)?,
            None => writeln!(text, ")")?,
        }
    }
    for (rank, place) in worst.into_iter().enumerate() {
        let operator = &operators[place];
        let share = hundredths(operator.busy(), all);
        if share >= NOTABLE {
            writeln!(text, "{}. {}: {share} % of the time", rank + 1, operator.name)?;
            for sentence in advice(operator, own(operator)) {
                writeln!(text, "   {sentence}")?;
            }
        }
    }
    Ok(text)
}

/// What dominates the time of an operator, and what would help.
fn advice(operator: &Operator<'_>, (rows, bytes): (u64, u64)) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some((worker, share)) = operator.skew() {
        sentences.push(format!(
            "worker {worker} does {share} % of it: many rows have one key, and all rows of a key are on one worker; keys of more columns, or sums of parts of it first, spread them"
        ));
    }
    if let Some(burden) = operator.burden {
        sentences.push(burden.to_owned());
    }
    let reasons: BTreeSet<String> = operator
        .own_states()
        .filter_map(|state| match &state.keeping {
            Keeping::All { reason, at } => Some(state::full(reason, at.as_deref())),
            Keeping::From { .. } => None,
        })
        .collect();
    if rows > 0 {
        for reason in reasons {
            sentences.push(format!("it keeps {}, {bytes} bytes: {reason}", state::rows(rows)));
        }
    }
    if sentences.is_empty() {
        let produced: u64 = operator.works.iter().map(|work| work.rows).sum();
        let each = operator.busy().as_nanos().checked_div(u128::from(produced));
        sentences.push(match each {
            Some(each) => format!("it took {each} ns for each row that it gave: fewer rows, by a condition before it, take less"),
            None => "it took rows in: fewer of them, by a condition before it, take less".to_owned(),
        });
    }
    sentences
}

fn hundredths(part: Duration, all: Duration) -> u128 {
    (100 * part.as_nanos()).checked_div(all.as_nanos()).unwrap_or(0)
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operator that took so many milliseconds on each worker, and gave twice as many rows.
    fn operator(name: &str, milliseconds: [u64; 3]) -> Operator<'_> {
        let work = |milliseconds| Work {
            busy: Duration::from_millis(milliseconds),
            runs: 1,
            rows: 2 * milliseconds,
            bytes: 0,
        };
        let works = milliseconds.map(work).to_vec();
        Operator { name, line: format!("{name} [line]"), burden: None, works, kept: None }
    }

    #[test]
    fn a_worker_that_does_most_of_it_is_named() {
        let operators = [
            operator(KEEPS, [10, 10, 10]),
            operator("join on v = v", [5, 60, 5]),
            operator("scan t (v)", [0, 0, 0]),
        ];
        let text = written("v", &operators, &|_| (0, 0), None);
        assert_eq!(
            text.as_deref(),
            Ok("\"v\" took 0.100 s since it was made on 3 workers
keep rows [line] (0.030 s, 30 %; 60 rows out) <- 2
join on v = v [line] (0.070 s, 70 %; 140 rows out; worker 1 does 85 % of it) <- 1
scan t (v) [line] (0.000 s, 0 %)
1. join on v = v: 70 % of the time
   worker 1 does 85 % of it: many rows have one key, and all rows of a key are on one worker; keys of more columns, or sums of parts of it first, spread them
2. keep rows: 30 % of the time
   it took 500000 ns for each row that it gave: fewer rows, by a condition before it, take less
")
        );
    }
}
