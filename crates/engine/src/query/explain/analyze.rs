//! EXPLAIN ANALYZE: the time, the rows and the state of the operators of a view, and what would help.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use alluvium_sql::physical::Place;
use alluvium_sql::plan::{ExplainedNode, Fingerprint, Keeping, KeptBy, KeptState, explained_nodes};
use alluvium_trace::metrics::Work;

use super::explanation::{
    Explanation, Figures, Kind, LEAST, Measured, Node, Skew, Totals, percent, rows,
};
use super::outputs;
use super::sharing::Sharing;
use super::state::{self, Held};
use crate::catalog::{Entries, Entry, View};
use crate::error::Result;
use crate::interrupt;
use crate::query::Reader;
use crate::query::metrics::StateKey;

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
    /// Its line of EXPLAIN VIEW.
    name: String,
    details: Vec<String>,
    depth: usize,
    /// Identifies it.
    key: Option<String>,
    /// Why a change costs it more than the change itself.
    burden: Option<&'static str>,
    /// The index that keeps its rows.
    index: Option<Fingerprint>,
    works: Works,
    /// Whether it was measured; else its readers do what it stands for.
    is_measured: bool,
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

    /// The worker that does much more than the others.
    fn skew(&self) -> Option<Skew> {
        let (worker, most) = self.works.iter().enumerate().max_by_key(|(_, work)| work.busy)?;
        let percent = percent(most.busy, self.busy());
        let fair = 100 / self.works.len() as u64;
        let is_uneven = self.works.len() > 1 && percent >= fair + (100 - fair) / 2;
        (is_uneven && self.busy() >= LEAST).then_some(Skew { worker, percent })
    }

    /// What it has done, of all that took so long.
    fn figures(&self, all: Duration, (kept_rows, kept_bytes): (u64, u64)) -> Figures {
        let sum = |of: fn(&Work) -> u64| self.works.iter().map(of).sum::<u64>();
        let kept = |number| (kept_rows > 0).then_some(number);
        Figures {
            busy: self.busy(),
            busy_percent: percent(self.busy(), all),
            rows_out: sum(|work| work.rows),
            bytes_out: sum(|work| work.bytes),
            kept_rows: kept(kept_rows),
            kept_bytes: kept(kept_bytes),
            skew: self.skew(),
            ..Figures::default()
        }
    }
}

impl Reader {
    /// The operators of a materialized view, and what they have done so far, or do in this time. Says nothing of other relations
    /// that may not be shown.
    pub(crate) fn explain_analyze(
        &self,
        entry: &Entry,
        entries: &Entries,
        shows: &dyn Fn(&str) -> bool,
        time: Option<Duration>,
    ) -> Result<Explanation> {
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
        operators.push(Operator {
            name: KEEPS.to_owned(),
            details: Vec::new(),
            depth: 0,
            key: None,
            burden: None,
            index: None,
            works: keeps,
            is_measured: true,
            kept: contents,
        });
        for node in nodes {
            // Equal nodes are one operator: the first has its work.
            let key = node.rows.to_string();
            let works = works.remove(&key);
            let (is_measured, works) = (works.is_some(), works.unwrap_or_default());
            let kept = kept.iter().find(|by| by.rows == Some(node.rows));
            let ExplainedNode { operator: name, known: details, depth, burden, index, .. } = node;
            let key = Some(key);
            operators.push(Operator {
                name,
                details,
                depth,
                key,
                burden,
                index,
                works,
                is_measured,
                kept,
            });
        }
        let held = state::held(self);
        let own = |operator: &Operator<'_>| own_state(operator, entry, view, &held);
        let (mut explanation, of_nodes) = explained(&entry.name, &operators, &own, time);
        outputs::add(self, &entry.name, shows, &mut explanation);
        let sharing = Sharing { reader: self, view: &entry.name, kept, entries, shows };
        advise(&mut explanation, &of_nodes, &own, &|operator| shared(operator, &sharing))?;
        Ok(explanation)
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

/// The operators with their figures, and the one of each node.
fn explained<'a>(
    name: &str,
    operators: &'a [Operator<'a>],
    own: &dyn Fn(&Operator<'_>) -> (u64, u64),
    time: Option<Duration>,
) -> (Explanation, Vec<&'a Operator<'a>>) {
    let all: Duration = operators.iter().map(Operator::busy).sum();
    let workers = operators.iter().map(|operator| operator.works.len()).max().unwrap_or(1);
    let mut explanation = Explanation::new(Kind::View, Some(name));
    let of = Measured::View { workers, watched: time };
    explanation.totals = Some(Totals { busy: all, of });
    let mut tree = explanation.tree();
    let mut of_nodes = Vec::with_capacity(operators.len());
    for operator in operators {
        let node = Node::new(operator.name.clone(), operator.details.clone());
        let figures = Some(operator.figures(all, own(operator)));
        let id = tree.add(operator.depth, operator.key.clone(), Node { figures, ..node });
        if id == of_nodes.len() {
            of_nodes.push(operator);
        }
    }
    tree.read_by_first();
    explanation.add_inputs(|id| of_nodes[id].is_measured);
    (explanation, of_nodes)
}

/// Marks the operators that take the most time, and says what would help.
fn advise(
    explanation: &mut Explanation,
    of_nodes: &[&Operator<'_>],
    own: &dyn Fn(&Operator<'_>) -> (u64, u64),
    shared: &dyn Fn(&Operator<'_>) -> Result<Vec<String>>,
) -> Result<()> {
    for id in explanation.rank() {
        let operator = of_nodes[id];
        let got = explanation.nodes[id].figures.as_ref().and_then(|figures| figures.rows_in);
        let sentences = advice(operator, own(operator), shared(operator)?, got);
        explanation.nodes[id].sentences = sentences;
    }
    Ok(())
}

/// What other views keep as well of the state of an operator, and of the index that keeps its rows.
fn shared(operator: &Operator<'_>, sharing: &Sharing<'_>) -> Result<Vec<String>> {
    let of_index = operator.index.map(|index| sharing.of_index(index)).transpose()?.flatten();
    // The rows of a view are no part of another one.
    let states =
        operator.own_states().filter(|state| operator.key.is_some() && state.index.is_none());
    let own = states.filter_map(|state| match &state.place {
        Place::Own(own) => sharing.of_state(own),
        Place::Index(_) | Place::Table(_) => None,
    });
    Ok(own.chain(of_index).collect::<BTreeSet<String>>().into_iter().collect())
}

/// What dominates the time of an operator, and what would help.
fn advice(
    operator: &Operator<'_>,
    (count, bytes): (u64, u64),
    shared: Vec<String>,
    got: Option<u64>,
) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(Skew { worker, percent }) = operator.skew() {
        sentences.push(format!(
            "worker {worker} does {percent} % of it: many rows have one key, and all rows of a key are on one worker; keys of more columns, or sums of parts of it first, spread them"
        ));
    }
    if let Some(burden) = operator.burden {
        sentences.push(burden.to_owned());
    }
    sentences.extend(shared);
    let reasons: BTreeSet<String> = operator
        .own_states()
        .filter_map(|state| match &state.keeping {
            Keeping::All { reason, at } => Some(state::full(reason, at.as_deref())),
            Keeping::From { .. } => None,
        })
        .collect();
    if count > 0 {
        for reason in reasons {
            sentences.push(format!("it keeps {}, {bytes} bytes: {reason}", rows(count)));
        }
    }
    if sentences.is_empty() {
        let given: u64 = operator.works.iter().map(|work| work.rows).sum();
        let each = |rows: u64| operator.busy().as_nanos().checked_div(u128::from(rows));
        sentences.push(match (each(given), got.and_then(each)) {
            (Some(each), _) => format!("it took {each} ns for each row that it gave: fewer rows, by a condition before it, take less"),
            (None, Some(each)) => format!("it took {each} ns for each row that it got: fewer of them, by a condition before it, take less"),
            (None, None) => "it took rows in: fewer of them, by a condition before it, take less".to_owned(),
        });
    }
    sentences
}

#[cfg(test)]
mod tests {
    use alluvium_sql::statement::ExplainFormat;

    use super::*;

    /// An operator that took so many milliseconds on each worker, and gave twice as many rows.
    fn operator(name: &str, depth: usize, milliseconds: [u64; 3]) -> Operator<'static> {
        let work = |milliseconds| Work {
            busy: Duration::from_millis(milliseconds),
            runs: 1,
            rows: 2 * milliseconds,
            bytes: 0,
        };
        Operator {
            name: name.to_owned(),
            details: vec!["append-only".to_owned()],
            depth,
            key: Some(name.to_owned()),
            burden: None,
            index: None,
            works: milliseconds.map(work).to_vec(),
            is_measured: true,
            kept: None,
        }
    }

    #[test]
    fn a_worker_that_does_most_of_it_is_named() {
        let operators = [
            operator(KEEPS, 0, [10, 10, 10]),
            operator("join on v = v", 0, [5, 60, 5]),
            operator("scan t (v)", 1, [0, 0, 0]),
            operator("scan t (v)", 1, [0, 0, 0]),
        ];
        let own = |_: &Operator<'_>| (0, 0);
        let (mut explanation, of_nodes) = explained("v", &operators, &own, None);
        advise(&mut explanation, &of_nodes, &own, &|_| Ok(Vec::new())).expect("it is right");
        assert_eq!(
            explanation.written(ExplainFormat::Text),
            "\"v\" took 0.100 s since it was made on 3 workers
keep rows [append-only] (0.030 s, 30 %; 60 rows out) <- 2
join on v = v [append-only] (0.070 s, 70 %; 140 rows out; worker 1 does 85 % of it) <- 1
  scan t (v) [append-only] (0.000 s, 0 %)
  scan t (v) [append-only] (0.000 s, 0 %)
1. join on v = v: 70 % of the time
   worker 1 does 85 % of it: many rows have one key, and all rows of a key are on one worker; keys of more columns, or sums of parts of it first, spread them
2. keep rows: 30 % of the time
   it took 500000 ns for each row that it gave: fewer rows, by a condition before it, take less
"
        );
        // The scan is one operator that the join reads twice.
        let inputs: Vec<&[usize]> = explanation.nodes.iter().map(|it| &it.inputs[..]).collect();
        assert_eq!(inputs, [&[1][..], &[2, 2], &[]]);
        let got: Vec<Option<u64>> =
            explanation.nodes.iter().map(|it| it.figures.as_ref()?.rows_in).collect();
        assert_eq!(got, [Some(140), Some(0), None]);
    }
}
