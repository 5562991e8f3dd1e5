//! Whether a history can be.

use std::collections::{BTreeMap, BTreeSet};

use super::attempt::{Attempt, Failure, Said};
use super::model::{Open, Tables};
use super::plan::{Form, Plan, Planner, Step};
use super::query::answer;

/// The most problems that are told of.
const TOLD: usize = 8;

/// Replays what was committed, and looks for an epoch that explains everything else. `beginning` are the tables as of the epoch
/// from which on all epochs are those of attempts. Returns what cannot be.
pub fn judge(planner: &Planner, beginning: (u64, Tables), attempts: &[Attempt]) -> Vec<String> {
    let (first, tables) = beginning;
    let plan = |attempt: &Attempt| planner.plan(attempt.number);
    let mut problems = Vec::new();
    // An epoch is made by what was committed with a change, or with a key.
    let mut made: BTreeMap<u64, &Attempt> = BTreeMap::new();
    let mut named = BTreeSet::new();
    for attempt in attempts {
        let Some(epoch) = attempt.epoch else { continue };
        let plan = plan(attempt);
        if plan.changes(&attempt.said) {
            if let Some(other) = made.insert(epoch, attempt) {
                problems.push(format!("{other} and {attempt} have one epoch"));
            }
            if epoch <= attempt.after || epoch > attempt.before {
                problems.push(told(&plan, attempt, "its epoch is not one of its time"));
            }
        } else if plan.has_key {
            named.insert(epoch);
        }
    }
    // ALTER TABLE makes an epoch, or none, which is not reported.
    let is_alter = |attempt: &&Attempt| matches!(plan(attempt).form, Form::Define(sql) if sql.starts_with("ALTER"));
    let mut altered: Vec<&Attempt> = attempts.iter().filter(is_alter).collect();
    altered.sort_by_key(|attempt| attempt.before);
    let mut states = vec![tables];
    let last = attempts.iter().map(|attempt| attempt.before).chain(made.keys().copied()).max();
    for epoch in first + 1..=last.unwrap_or(first) {
        let before = &states[states.len() - 1];
        let next = match made.get(&epoch) {
            Some(attempt) => {
                let plan = plan(attempt);
                let (next, problem) = replay(&plan, &attempt.said, before, Late::of(before));
                problems.extend(problem.map(|(_, problem)| told(&plan, attempt, &problem)));
                next
            }
            None => {
                let altering = altered.iter().position(|by| by.after < epoch && epoch <= by.before);
                match altering {
                    _ if named.contains(&epoch) => {}
                    Some(altering) => drop(altered.remove(altering)),
                    None => {
                        let of_its_time = attempts.iter().filter(|attempt| {
                            attempt.epoch.is_none_or(|other| other == epoch)
                                && (attempt.after..=attempt.before).contains(&epoch)
                        });
                        let told = of_its_time.map(|it| told(&plan(it), it, ""));
                        problems.push(format!(
                            "nobody was told that epoch {epoch} is theirs; of its time are {:#?}",
                            told.collect::<Vec<_>>()
                        ));
                    }
                }
                before.clone()
            }
        };
        states.push(next);
        if problems.len() >= TOLD {
            return problems;
        }
    }
    for attempt in attempts {
        let plan = plan(attempt);
        if attempt.epoch.is_some() && plan.changes(&attempt.said) {
            continue;
        }
        // Of the epochs that explain the most statements.
        let mut problem: Option<(usize, Vec<String>)> = None;
        let state = |epoch: u64| states.get(usize::try_from(epoch.checked_sub(first)?).ok()?);
        // The waterline rises beside a transaction that reads an older version.
        let latest = state(attempt.before).and_then(|tables| tables.waterline);
        let mut explains = |epoch: u64| {
            let Some(tables) = state(epoch) else { return false };
            let dropped = (epoch..=attempt.before).filter_map(state).map(|tables| tables.waterline);
            dropped.collect::<BTreeSet<_>>().into_iter().any(|dropped| {
                let Some((step, differs)) =
                    replay(&plan, &attempt.said, tables, Late { dropped, latest }).1
                else {
                    return true;
                };
                let differs = format!("as of {epoch}, {differs}");
                match &mut problem {
                    Some((best, told)) if *best == step => told.push(differs),
                    Some((best, _)) if *best > step => {}
                    _ => problem = Some((step, vec![differs])),
                }
                false
            })
        };
        if !(attempt.after..=attempt.before).any(&mut explains) {
            let problem = match problem {
                Some((_, told)) => told.join("; "),
                None => "its epochs are not there".to_owned(),
            };
            problems.push(told(&plan, attempt, &format!("is of no epoch: {problem}")));
        }
        if problems.len() >= TOLD {
            break;
        }
    }
    problems
}

fn told(plan: &Plan, attempt: &Attempt, problem: &str) -> String {
    let steps: Vec<String> = (0..plan.steps.len()).map(|at| plan.sql(at, &attempt.said)).collect();
    format!("{attempt} {problem}: {:?} {}", plan.form, steps.join("; "))
}

impl Plan {
    /// The text of a statement of it, without RETURNING, after others have said this.
    pub fn sql(&self, step: usize, said: &[Said]) -> String {
        match &self.steps[step] {
            Step::Read(query) => query.sql(),
            Step::Write(write, _) => write.sql(self.derived(step, said)),
            Step::Save => "SAVEPOINT s".to_owned(),
            Step::Return => "ROLLBACK TO s".to_owned(),
        }
    }

    /// The value of its reads before a statement.
    pub fn derived(&self, step: usize, said: &[Said]) -> i64 {
        Attempt::derived(&self.steps[..step], &said[..step.min(said.len())])
    }

    /// Whether it changes something, given the answers of its statements. Unknown ones may have.
    fn changes(&self, said: &[Said]) -> bool {
        let mut is_undone = false;
        let stays = |step: &Step| {
            is_undone = match step {
                Step::Save => true,
                Step::Return => false,
                _ => is_undone,
            };
            matches!(step, Step::Write(..)) && !is_undone
        };
        let stays: Vec<bool> = self.steps.iter().map(stays).collect();
        let writes = stays.into_iter().enumerate().filter(|(_, stays)| *stays);
        let mut said = writes.map(|(at, _)| said.get(at));
        said.any(|said| match said {
            Some(Said::Changed(rows)) => *rows > 0,
            Some(Said::Rows(rows)) => !rows.is_empty(),
            Some(Said::Failed(_)) => false,
            None => true,
        })
    }
}

/// The waterlines of a transaction.
#[derive(Clone, Copy)]
struct Late {
    /// The waterline below which it drops what it inserts.
    dropped: Option<i64>,
    /// The waterline when it ended.
    latest: Option<i64>,
}

impl Late {
    fn of(tables: &Tables) -> Self {
        Self { dropped: tables.waterline, latest: tables.waterline }
    }
}

/// The tables after a transaction that began with these, and the first statement that says something else than it has to, and how.
fn replay(
    plan: &Plan,
    said: &[Said],
    before: &Tables,
    late: Late,
) -> (Tables, Option<(usize, String)>) {
    let mut open = Open::new(before);
    open.dropped_below = late.dropped;
    let (mut problem, mut saved) = (None, None);
    for (at, step) in plan.steps.iter().enumerate() {
        let differs = match (step, said.get(at)) {
            // It had no effect.
            (_, Some(Said::Failed(Failure::GivenUp | Failure::Conflict))) => None,
            (Step::Save, _) => {
                saved = Some(open.clone());
                None
            }
            (Step::Return, _) => {
                if let Some(saved) = saved.take() {
                    open = saved;
                }
                None
            }
            (Step::Read(_), None) => None,
            (Step::Read(query), Some(Said::Rows(rows))) => {
                let answers = query.answers(&open);
                (!answers.contains(rows)).then(|| {
                    format!("{} is {rows}, and not {}", plan.sql(at, said), answers.join(" or "))
                })
            }
            (Step::Read(query), Some(Said::Failed(Failure::Absent))) if query.may_be_absent() => {
                None
            }
            (Step::Read(_), Some(said)) => Some(format!("a query says {said:?}")),
            (Step::Write(write, returns), said_here) => {
                // Columns of the table may have come or gone.
                if said_here == Some(&Said::Failed(Failure::Absent)) {
                    continue;
                }
                // A refused client may be late by now.
                open.fixed_below = match said_here {
                    Some(Said::Failed(_)) => late.latest,
                    _ => before.waterline,
                };
                let expected = match write.apply(&mut open, plan.derived(at, said)) {
                    Err(_) => Said::Failed(Failure::Refused),
                    Ok(changed) if *returns => Said::Rows(answer(
                        changed.iter().map(|(k, x)| format!("{k} {x}")).collect(),
                    )),
                    Ok(changed) => Said::Changed(changed.len() as u64),
                };
                said_here.filter(|said| **said != expected).map(|said_here| {
                    format!("{} says {said_here:?}, and not {expected:?}", plan.sql(at, said))
                })
            }
        };
        problem = problem.or(differs.map(|differs| (at, differs)));
    }
    (open.commit(), problem)
}
