//! Running a program in other ways that must not change its results.
//!
//! No judge is consulted: the final contents of every view must be the same for any number of workers, any division
//! of the changes into transactions, any order of tables within a transaction, additional rows that are inserted
//! and deleted, any schedule of merges, any memory budget, and a restart between any two or a standby that takes over. Where transactions are the same, so are the contents
//! after each transaction. Views are read only at the end. When a [recording](super::recording) is replayed, many
//! epochs are in flight, and a worker processes several per activation.

use std::collections::{BTreeMap, BTreeSet};

use alluvium_trace::Merging;

use super::run::{Judges, Report, replay, run_to_end};
use super::{Merges, Program, Step, View, Write};
use crate::answers::compare::{Measure, difference};
use crate::answers::row::Row;
use crate::query::{Expr, Kind, Op, Value, construct};

/// The changes of a view by epoch.
type Log = [(u64, BTreeMap<Row, i64>)];

/// Variations are compared with the original run, not judged.
const NOBODY: Judges =
    Judges { datafusion: false, sqlite: false, naive: false, duckdb: false, variations: false };

/// A way to run a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variation {
    /// With another number of workers.
    Workers(usize),
    /// Every change in its own transaction.
    Finer,
    /// All consecutive changes in one transaction.
    Coarser,
    /// The changes of a transaction sorted by table.
    ByTable,
    /// With additional rows that are inserted and deleted.
    Noise,
    /// With all batches of a trace merged at once, or as few as possible.
    Merging(Merging),
    /// With merges done by others than before, at other times.
    Merges,
    /// With an engine that ends after some transaction, and one with more workers that resumes what it did.
    Reopen,
    /// With an engine that follows the first one from some transaction on, and takes its place after another.
    Standby,
    /// With a memory budget of this many bytes.
    Memory(usize),
    /// Replays the recorded changes without waiting, with all views created first.
    Replay,
}

impl Variation {
    /// The variation for a program, if one is due. Which rows come too late depends on the transactions, and which of a view
    /// also on when it is created.
    pub(crate) fn of(program: &Program) -> Option<Self> {
        let has_late_views = program.views.iter().any(|view| view.lateness.is_some());
        let has_lateness =
            has_late_views || program.tables.iter().any(|table| table.lateness.is_some());
        let due = Self::due(program.number)?;
        let keeps_views = due != Variation::Replay || !has_late_views;
        (keeps_views && (due.keeps_transactions() || !has_lateness)).then_some(due)
    }

    /// The variation for the program of this number.
    pub(crate) fn due(number: u64) -> Option<Self> {
        match number % 3 {
            0 => Some(Self::in_turn(number / 3)),
            1 => Some(Self::Replay),
            _ => None,
        }
    }

    fn in_turn(turn: u64) -> Self {
        match turn % 15 {
            0 => Variation::Workers(1),
            1 => Variation::Workers(2),
            2 => Variation::Workers(3),
            3 => Variation::Workers(8),
            4 => Variation::Finer,
            5 => Variation::Coarser,
            6 => Variation::ByTable,
            7 => Variation::Noise,
            8 => Variation::Merging(Merging::Always),
            9 => Variation::Memory(1),
            10 => Variation::Memory(20_000),
            11 => Variation::Merging(Merging::Never),
            12 => Variation::Reopen,
            13 => Variation::Standby,
            _ => Variation::Merges,
        }
    }

    /// Whether transactions stay the same.
    fn keeps_transactions(self) -> bool {
        !matches!(self, Variation::Finer | Variation::Coarser | Variation::Noise)
    }

    fn program(self, program: &Program) -> Program {
        let mut other = program.clone();
        match self {
            Variation::Workers(workers) => other.workers = workers,
            Variation::Finer => other.steps = finer(&program.steps),
            Variation::Coarser => other.steps = coarser(&finer(&program.steps)),
            Variation::ByTable => other.steps = by_table(&program.steps),
            Variation::Noise => other.steps = with_noise(program),
            Variation::Memory(memory) => other.memory = Some(memory),
            Variation::Replay => other.steps = views_first(program),
            Variation::Merging(merging) => other.merging = merging,
            Variation::Reopen | Variation::Standby => {
                other.follows = self == Variation::Standby;
                // Some step, in no order.
                other.reopen = Some(program.number as usize * 31 % program.steps.len().max(1));
            }
            Variation::Merges => other.merges = Merges::of(program.number + 1),
        }
        other
    }

    /// A difference from the original run, if there is one.
    pub(crate) fn difference(self, program: &Program, report: &Report) -> Option<String> {
        let other = self.program(program);
        let varied = match (self, &report.recording) {
            (Variation::Replay, Some(recording)) => replay(&other, NOBODY, recording),
            _ => run_to_end(&other, NOBODY),
        };
        if let Some((step, view, what)) = varied.wrong() {
            let view = view.map_or(String::new(), |view| program.views[view].sql());
            return Some(format!("{self:?}: step {step}: {view}\n{what}"));
        }
        for (view, definition) in program.views.iter().enumerate() {
            // NOW() depends on the transaction.
            let constructs = construct::of(&definition.query);
            if constructs.contains("now") && !self.keeps_transactions() {
                continue;
            }
            // Incrementally maintained contents are bitwise equal. A query that is evaluated on reading takes rows
            // in any order.
            let measure = match report.changes[view].is_empty() {
                true if constructs.contains("sums that cancel") => Measure::Rough,
                true => Measure::Typed,
                false => Measure::Identical,
            };
            if let (Some(one), Some(two)) = (&report.contents[view], &varied.contents[view])
                && let Some(difference) = difference(one, two, measure)
            {
                let sql = definition.sql();
                return Some(format!("{self:?}: {sql} has other contents: {difference}"));
            }
            if self.keeps_transactions()
                && let Some(epoch) = first_difference(&report.changes[view], &varied.changes[view])
            {
                let sql = definition.sql();
                return Some(format!("{self:?}: {sql} has other contents after epoch {epoch}"));
            }
        }
        None
    }
}

/// The first epoch after which the sums of two logs differ. The logs may begin at different epochs.
fn first_difference(one: &Log, two: &Log) -> Option<u64> {
    let first = one.first()?.0.max(two.first()?.0);
    let epochs: BTreeSet<u64> =
        one.iter().chain(two).map(|(epoch, _)| *epoch).filter(|epoch| *epoch >= first).collect();
    let (mut one, mut two) = (Sum::of(one), Sum::of(two));
    epochs.into_iter().find(|epoch| one.until(*epoch) != two.until(*epoch))
}

/// The sum of a log up to an epoch.
struct Sum<'a> {
    rest: &'a Log,
    rows: BTreeMap<&'a Row, i64>,
}

impl<'a> Sum<'a> {
    fn of(rest: &'a Log) -> Self {
        Self { rest, rows: BTreeMap::new() }
    }

    fn until(&mut self, epoch: u64) -> &BTreeMap<&'a Row, i64> {
        while let Some(((next, changes), rest)) = self.rest.split_first()
            && *next <= epoch
        {
            changes.iter().for_each(|(row, weight)| *self.rows.entry(row).or_default() += weight);
            self.rest = rest;
        }
        self.rows.retain(|_, weight| *weight != 0);
        &self.rows
    }
}

/// Moves the creation of views to the beginning, unless a view depends on time. Creating a view waits for all
/// epochs before it.
fn views_first(program: &Program) -> Vec<Step> {
    let is_timed = |view: &View| construct::of(&view.query).contains("now");
    if program.views.iter().any(is_timed) {
        return program.steps.clone();
    }
    let mut made = BTreeSet::new();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for step in &program.steps {
        match step {
            Step::Create(view) if made.insert(*view) => first.push(step.clone()),
            step => rest.push(step.clone()),
        }
    }
    first.append(&mut rest);
    first
}

/// Removes transactions, and changes that are rolled back.
fn finer(steps: &[Step]) -> Vec<Step> {
    let mut left = Vec::new();
    let mut start = 0;
    for step in steps {
        match step {
            Step::Begin => start = left.len(),
            Step::Rollback => left.truncate(start),
            Step::Commit => {}
            step => left.push(step.clone()),
        }
    }
    left
}

/// Puts consecutive changes into one transaction.
fn coarser(steps: &[Step]) -> Vec<Step> {
    let mut left = Vec::new();
    for run in steps.chunk_by(|a, b| matches!((a, b), (Step::Write(_), Step::Write(_)))) {
        if run.len() > 1 {
            left.push(Step::Begin);
            left.extend(run.iter().cloned());
            left.push(Step::Commit);
        } else {
            left.extend(run.iter().cloned());
        }
    }
    left
}

fn table_of(step: &Step) -> Option<usize> {
    match step {
        Step::Write(
            Write::Insert(table, _)
            | Write::Delete(table, _)
            | Write::Update(table, ..)
            | Write::Again(table, _)
            | Write::Refused(table, _),
        ) => Some(*table),
        _ => None,
    }
}

/// Statements read only the table that they change, so statements of different tables can be reordered.
fn by_table(steps: &[Step]) -> Vec<Step> {
    let mut left: Vec<Step> = Vec::new();
    let mut inside: Option<Vec<Step>> = None;
    for step in steps {
        match (step, &mut inside) {
            (Step::Begin, _) => {
                left.push(Step::Begin);
                inside = Some(Vec::new());
            }
            (Step::Commit | Step::Rollback, Some(_)) => {
                let mut writes = inside.take().unwrap_or_default();
                writes.sort_by_key(|step| std::cmp::Reverse(table_of(step)));
                left.append(&mut writes);
                left.push(step.clone());
            }
            (step, Some(writes)) => writes.push(step.clone()),
            (step, None) => left.push(step.clone()),
        }
    }
    left
}

/// A value that occurs nowhere else.
fn strange(kind: Kind) -> Option<Value> {
    Some(match kind {
        Kind::Text => Value::Text("strange".to_owned()),
        kind if kind.is_whole() => Value::Whole(99),
        _ => return None,
    })
}

fn with_noise(program: &Program) -> Vec<Step> {
    let mut left = Vec::new();
    let mut count = 0;
    let mut is_open = false;
    for step in &program.steps {
        left.push(step.clone());
        match step {
            Step::Begin => is_open = true,
            Step::Commit | Step::Rollback => is_open = false,
            _ => {}
        }
        let Some(place) = table_of(step) else { continue };
        let table = &program.tables[place];
        let (Step::Write(Write::Insert(_, rows)), false, Some(value)) =
            (step, table.append_only, strange(table.columns[0].kind))
        else {
            continue;
        };
        count += 1;
        let mut noise = rows.clone();
        noise.iter_mut().for_each(|row| row[0] = value.clone());
        let column = &table.columns[0];
        let own = Expr::Column(table.name.clone(), column.name.clone(), column.kind);
        let gone = Expr::binary(own, Op::Equal, Expr::literal(value, column.kind));
        // In one transaction, or in two consecutive ones.
        let in_one = !is_open && count % 2 == 0;
        left.extend(in_one.then_some(Step::Begin));
        left.push(Step::Write(Write::Insert(place, noise)));
        left.push(Step::Write(Write::Delete(place, gone)));
        left.extend(in_one.then_some(Step::Commit));
    }
    left
}
