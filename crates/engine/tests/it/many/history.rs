//! The actions and reads of clients, and whether these are possible.

use std::collections::{BTreeMap, HashMap};

use super::model::{Relation, Tables, Write};
use super::query::{Answer, Query};

/// The most problems that are told of.
const TOLD: usize = 8;

/// The actions and reads of one client, or of all of them.
#[derive(Default)]
pub struct History {
    pub commits: Vec<Commit>,
    pub reads: Vec<Read>,
    pub followed: Vec<Followed>,
    /// Epochs from which on a view had failed, until it was revived.
    pub failures: Vec<(Relation, u64)>,
    /// The epochs before and after statements that may revive a view.
    pub revivals: Vec<(Relation, u64, u64)>,
    /// How often what happened.
    pub counts: BTreeMap<String, u64>,
}

/// A transaction.
pub struct Commit {
    /// The last epoch that was committed before it began.
    pub after: u64,
    pub epoch: u64,
    pub steps: Vec<Step>,
}

/// A part of a transaction.
pub enum Step {
    /// A change, and how many rows it is said to have changed.
    Write(Write, Option<u64>),
    /// A read inside of it.
    Read(Query, Answer),
}

/// An answer outside of transactions.
pub struct Read {
    pub query: Query,
    pub way: &'static str,
    /// The last epoch that any client knew to be committed before it began.
    pub after: u64,
    /// The last that was committed when it was there.
    pub before: u64,
    pub answer: Answer,
}

/// A subscription.
pub struct Followed {
    pub relation: Relation,
    /// The last epoch that was committed before it began.
    pub after: u64,
    /// The rows that it showed, by epoch.
    pub seen: Vec<Seen>,
    /// It has shown all changes up to this epoch.
    pub until: Option<u64>,
}

/// The sum of the changes of a subscription as of an epoch.
pub struct Seen {
    pub epoch: u64,
    pub is_snapshot: bool,
    pub contents: Answer,
}

impl History {
    pub fn add(&mut self, other: History) {
        self.commits.extend(other.commits);
        self.reads.extend(other.reads);
        self.followed.extend(other.followed);
        self.failures.extend(other.failures);
        self.revivals.extend(other.revivals);
        for (what, count) in other.counts {
            *self.counts.entry(what).or_default() += count;
        }
    }

    /// Counts something that happened.
    pub fn count(&mut self, what: &str) {
        match self.counts.get_mut(what) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(what.to_owned(), 1)),
        }
    }

    /// Replays the commits in order of their epochs. Returns what cannot be.
    pub fn judge(mut self) -> Vec<String> {
        self.commits.sort_by_key(|commit| commit.epoch);
        self.reads.sort_by_key(|read| read.after);
        self.followed.sort_by_key(Followed::begins);
        let mut problems = Vec::new();
        self.judge_failed(&mut problems);
        let mut sweep = Sweep::new(&self);
        let last = sweep.last();
        for epoch in 0..=last {
            sweep.replay(epoch, &mut problems);
            sweep.read(epoch, &mut problems);
            sweep.follow(epoch, &mut problems);
            if problems.len() >= TOLD {
                break;
            }
        }
        problems
    }

    /// A failed relation does not answer until it is revived.
    fn judge_failed(&self, problems: &mut Vec<String>) {
        for read in &self.reads {
            let Query::All(relation @ (Relation::Bad | Relation::Worse)) = read.query else {
                continue;
            };
            let failures =
                self.failures.iter().filter(|(of, at)| *of == relation && *at <= read.after);
            let Some((_, last)) = failures.max_by_key(|(_, at)| *at) else { continue };
            let mut revivals = self.revivals.iter().filter(|(of, ..)| *of == relation);
            if !revivals.any(|(_, begun, ended)| *ended >= *last && *begun <= read.before) {
                problems.push(format!(
                    "{} had failed at {last}, and answered {}",
                    relation.name(),
                    told(read)
                ));
            }
        }
        problems.truncate(TOLD);
    }
}

fn told(read: &Read) -> String {
    let Read { query, way, after, before, answer } = read;
    format!("{query:?} ({way}) between {after} and {before}: {}", answer.beginning())
}

/// The replay, as far as it has come.
struct Sweep<'a> {
    history: &'a History,
    tables: Tables,
    next_commit: usize,
    next_read: usize,
    /// Reads that may be of this epoch, and have not been found right.
    open: Vec<&'a Read>,
    next_followed: usize,
    /// Subscriptions that have begun and have not ended.
    open_followed: Vec<&'a Followed>,
    /// The answers as of this epoch.
    answers: HashMap<Query, Vec<Answer>>,
}

impl<'a> Sweep<'a> {
    fn new(history: &'a History) -> Self {
        Self {
            history,
            tables: Tables::default(),
            next_commit: 0,
            next_read: 0,
            open: Vec::new(),
            next_followed: 0,
            open_followed: Vec::new(),
            answers: HashMap::new(),
        }
    }

    /// The last epoch that anything is of.
    fn last(&self) -> u64 {
        let commits = self.history.commits.iter().map(|commit| commit.epoch);
        let reads = self.history.reads.iter().map(|read| read.before);
        commits.chain(reads).max().unwrap_or(0)
    }

    /// Makes the changes of an epoch.
    fn replay(&mut self, epoch: u64, problems: &mut Vec<String>) {
        let rest = &self.history.commits[self.next_commit..];
        let of = &rest[..rest.partition_point(|commit| commit.epoch <= epoch)];
        self.next_commit += of.len();
        let (empty, made): (Vec<_>, Vec<_>) =
            of.iter().partition(|commit| commit.changed_nothing());
        if made.len() > 1 {
            problems.push(format!("{} transactions have epoch {epoch}", made.len()));
        }
        if !made.is_empty() {
            self.answers.clear();
        }
        for commit in made {
            if commit.after >= epoch {
                problems.push(format!("epoch {epoch} was made after {}", commit.after));
            }
            self.steps(commit, problems);
        }
        // They saw what the last transaction had left.
        empty.into_iter().for_each(|commit| self.steps(commit, problems));
    }

    fn steps(&mut self, commit: &Commit, problems: &mut Vec<String>) {
        let before = self.tables.clone();
        for step in &commit.steps {
            match step {
                Step::Write(write, said) => {
                    let rows = write.apply(&mut self.tables);
                    if said.is_some_and(|said| said != rows) {
                        problems.push(format!(
                            "{write:?} of epoch {} changed {rows} rows, and not {said:?}",
                            commit.epoch
                        ));
                    }
                }
                // Tables show the transaction's own writes, views do not.
                Step::Read(query, answer) => {
                    let tables = match query {
                        Query::Account(_)
                        | Query::Between(..)
                        | Query::Items(_)
                        | Query::Joined(_) => &self.tables,
                        _ => &before,
                    };
                    let expected = query.answers(tables);
                    if !expected.contains(answer) {
                        problems.push(format!(
                            "{query:?} inside of the transaction of epoch {} was {}, and not {}",
                            commit.epoch,
                            answer.beginning(),
                            expected.first().map_or("anything", Answer::beginning)
                        ));
                    }
                }
            }
        }
    }

    fn answers(&mut self, query: Query) -> &[Answer] {
        let Self { answers, tables, .. } = self;
        answers.entry(query).or_insert_with(|| query.answers(tables))
    }

    /// Looks for reads that are of this epoch.
    fn read(&mut self, epoch: u64, problems: &mut Vec<String>) {
        let reads = &self.history.reads[self.next_read..];
        let begun = reads.partition_point(|read| read.after <= epoch);
        self.open.extend(&reads[..begun]);
        self.next_read += begun;
        for read in std::mem::take(&mut self.open) {
            if self.answers(read.query).contains(&read.answer) {
                continue;
            }
            if read.before <= epoch {
                let last = self.answers(read.query).first();
                let last = last.map_or("failed", Answer::beginning).to_owned();
                problems.push(format!("no epoch has {}; the last is {last}", told(read)));
            } else {
                self.open.push(read);
            }
        }
    }

    /// Compares subscriptions with what they should show as of this epoch.
    fn follow(&mut self, epoch: u64, problems: &mut Vec<String>) {
        let rest = &self.history.followed[self.next_followed..];
        let begun = rest.partition_point(|followed| followed.begins() <= Some(epoch));
        self.open_followed.extend(&rest[..begun]);
        self.next_followed += begun;
        for followed in std::mem::take(&mut self.open_followed) {
            let next = followed.seen.partition_point(|seen| seen.epoch <= epoch);
            let Some(shown) = next.checked_sub(1).map(|shown| &followed.seen[shown]) else {
                continue;
            };
            // Until the next change comes, if it is not a new snapshot, or until the end, nothing else is there.
            let until = match followed.seen.get(next) {
                Some(seen) if !seen.is_snapshot => seen.epoch - 1,
                Some(_) => shown.epoch,
                None => followed.until.unwrap_or(shown.epoch),
            };
            if next < followed.seen.len() || epoch < until {
                self.open_followed.push(followed);
            }
            if epoch > until {
                continue;
            }
            let expected = self.answers(Query::All(followed.relation));
            if !expected.contains(&shown.contents) {
                let expected = expected.first().map_or("failed", Answer::beginning).to_owned();
                problems.push(format!(
                    "a subscription to {:?}, begun after {}, shows as of {epoch} (last change {}): {}; but it is {expected}",
                    followed.relation,
                    followed.after,
                    shown.epoch,
                    shown.contents.beginning()
                ));
            }
        }
    }
}

impl Followed {
    /// The epoch of what it showed first.
    fn begins(&self) -> Option<u64> {
        self.seen.first().map(|seen| seen.epoch)
    }
}

impl Commit {
    /// Whether it has no rows to change, and so no epoch of its own.
    fn changed_nothing(&self) -> bool {
        let nothing = |step: &Step| matches!(step, Step::Write(_, Some(0)));
        matches!(&self.steps[..], [step] if nothing(step))
    }
}
