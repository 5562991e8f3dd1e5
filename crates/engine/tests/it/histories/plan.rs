//! The steps of a client, which its number alone decides: so a process that is killed need not report them.

use super::model::{ALL_KEYED, Keyed, VARIANTS};
use super::query::{ALL, Query};
use super::write::{Taken, Write};
use crate::keys::Random;

/// The groups of tables with keys are below this.
const GROUPS: u64 = 3;

/// How many names there are for views that come and go.
pub const NAMES: u64 = 2;

/// Identifies what a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number {
    pub client: u64,
    pub number: u64,
}

impl Number {
    /// The key of the transaction, if it has one.
    pub fn key(self) -> String {
        format!("{}-{}", self.client, self.number)
    }
}

/// The client who reads everything at the end.
pub const READER: u64 = u64::MAX;

/// Something that a client does at once.
#[derive(Debug)]
pub struct Plan {
    pub form: Form,
    pub steps: Vec<Step>,
    /// Whether the transaction has a key.
    pub has_key: bool,
    /// Whether it commits what it did.
    pub commits: bool,
    /// Whether it continues after a statement that failed.
    pub goes_on: bool,
    /// Between two of its statements it waits so long.
    pub pause: u64,
}

/// How it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Each statement is a transaction of its own, of which there is one.
    Single,
    /// BEGIN followed by these words, statements, COMMIT.
    Block(&'static str),
    /// A transaction without SQL, as connectors make them; whether it waits for the disk.
    Library { waits: bool },
    /// A definition.
    Define(String),
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Step {
    Read(Query),
    /// A change, and whether it returns the rows that it changed.
    Write(Write, bool),
    /// `SAVEPOINT`.
    Save,
    /// `ROLLBACK TO` it.
    Return,
}

/// Makes plans.
pub struct Planner {
    pub seed: u64,
    /// Whether all transactions have keys.
    pub has_keys: bool,
}

impl Planner {
    /// How many keys there are: 4 to 20.
    pub fn keys(&self) -> u64 {
        4 + self.seed % 17
    }

    pub fn plan(&self, Number { client, number }: Number) -> Plan {
        if client == READER {
            return Plan::single(Step::Read(ALL[number as usize % ALL.len()]));
        }
        let mut random = Random(self.seed);
        for part in [client, number] {
            random = Random(random.below(u64::MAX) ^ part);
        }
        let plan = Drawing { random, keys: self.keys(), number }.plan();
        Plan { has_key: plan.has_key || self.has_keys, ..plan }
    }
}

impl Plan {
    fn single(step: Step) -> Self {
        let (steps, form) = (vec![step], Form::Single);
        Self { form, steps, has_key: false, commits: true, goes_on: false, pause: 0 }
    }
}

/// A plan that is being made.
struct Drawing {
    random: Random,
    keys: u64,
    number: u64,
}

impl Drawing {
    fn plan(&mut self) -> Plan {
        let plan = match self.below(100) {
            0..20 => Plan::single(Step::Read(self.query())),
            20..40 => {
                let write = self.write();
                Plan::single(Step::Write(write, self.below(5) == 0))
            }
            40..55 => {
                let steps = (0..=self.below(4)).map(|_| Step::Write(self.batch(), false)).collect();
                let form = Form::Library { waits: self.below(3) > 0 };
                Plan { form, steps, ..self.block() }
            }
            55..58 => {
                let definition = self.definition();
                Plan { form: Form::Define(definition), ..self.block() }
            }
            58..66 => {
                let steps = (0..=self.below(5)).map(|_| Step::Read(self.query())).collect();
                let form = Form::Block(["", " READ ONLY"][self.below(2) as usize]);
                Plan { form, steps, ..self.block() }
            }
            _ => {
                let mut steps = Vec::new();
                for _ in 0..=self.below(4) {
                    self.add_steps(&mut steps);
                }
                Plan { steps, ..self.block() }
            }
        };
        Plan { has_key: self.below(3) == 0, ..plan }
    }

    fn block(&mut self) -> Plan {
        Plan {
            form: Form::Block(""),
            steps: Vec::new(),
            has_key: false,
            commits: self.below(8) > 0,
            goes_on: self.below(2) == 0,
            pause: [0, 0, 50, 500][self.below(4) as usize],
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    fn key(&mut self) -> i64 {
        self.below(self.keys) as i64
    }

    fn value(&mut self) -> i64 {
        self.below(1_000) as i64
    }

    fn small(&mut self) -> i64 {
        self.below(9) as i64 + 1
    }

    fn group(&mut self) -> i64 {
        self.below(GROUPS) as i64
    }

    fn table(&mut self) -> Keyed {
        ALL_KEYED[self.below(3) as usize]
    }

    /// The ends of a range.
    fn range(&mut self) -> (i64, i64) {
        let low = self.key();
        (low, low + self.below(5) as i64)
    }

    /// A time that is late now and then: clients are about as far as each other.
    fn time(&mut self) -> i64 {
        self.number as i64 * 2 + self.below(60) as i64
    }

    /// Distinct keys, with values.
    fn rows(&mut self) -> Vec<(i64, i64, i64)> {
        let mut keys: Vec<i64> = (0..=self.below(2)).map(|_| self.key()).collect();
        keys.sort();
        keys.dedup();
        let is_small = self.below(2) == 0;
        let value = |random: &mut Self| if is_small { random.small() } else { random.value() };
        keys.into_iter().map(|k| (k, self.group(), value(self))).collect()
    }

    fn taken(&mut self) -> Taken {
        [Taken::Plain, Taken::Nothing, Taken::Adds, Taken::AddsIfLess][self.below(4) as usize]
    }

    fn definition(&mut self) -> String {
        let name = self.below(NAMES);
        let variant = VARIANTS[self.below(VARIANTS.len() as u64) as usize];
        let column = ["y", "z"][self.below(2) as usize];
        match self.below(8) {
            6 => format!(
                "BEGIN; DROP VIEW IF EXISTS c{name}; CREATE MATERIALIZED VIEW c{name} AS {variant}; COMMIT"
            ),
            7 => format!(
                "BEGIN; CREATE MATERIALIZED VIEW c_new AS {variant}; DROP VIEW IF EXISTS c{name}; ALTER VIEW c_new RENAME TO c{name}; COMMIT"
            ),
            0 => format!("CREATE MATERIALIZED VIEW c{name} AS {variant}"),
            1 => format!("CREATE OR REPLACE MATERIALIZED VIEW c{name} AS {variant}"),
            2 | 3 => format!("DROP VIEW c{name}"),
            4 => format!("ALTER TABLE b ADD COLUMN IF NOT EXISTS {column} BIGINT DEFAULT 7"),
            _ => format!("ALTER TABLE b DROP COLUMN IF EXISTS {column}"),
        }
    }

    /// A query of a transaction that may write, and lock rows.
    fn query_of_writer(&mut self) -> Query {
        match self.below(6) {
            0 => Query::LockedRow(self.table(), self.key()),
            1 => Query::LockedAbove(self.table(), self.value()),
            _ => self.query(),
        }
    }

    fn query(&mut self) -> Query {
        match self.below(26) {
            0..4 => Query::Row(self.table(), self.key()),
            4..7 => {
                let (table, (low, high)) = (self.table(), self.range());
                Query::Range(table, low, high)
            }
            7 | 8 => Query::Above(self.table(), self.value()),
            9 | 10 => Query::Total(self.table()),
            11 => Query::Group(self.group()),
            12 => Query::Items(self.key()),
            13 => Query::AllItems,
            14 => Query::Events(self.time()),
            15 => {
                let (low, high) = self.range();
                Query::Both(low, high)
            }
            16 => Query::Missing,
            17 | 18 => Query::Sum(self.group()),
            19 => Query::Sums,
            20 => Query::Joined,
            21 => Query::Counted,
            22 => Query::Large,
            23 | 24 => Query::Beside,
            _ => Query::Named(self.below(NAMES)),
        }
    }

    /// The writes of a transaction without SQL.
    fn batch(&mut self) -> Write {
        match self.below(8) {
            0..3 => Write::Insert { table: self.table(), rows: self.rows(), taken: Taken::Plain },
            3 => Write::Remove { table: Keyed::A, k: self.key() },
            4 | 5 => Write::AddItem { k: self.key(), x: self.small() },
            6 => Write::RemoveItem { k: self.key(), x: self.small() },
            _ => Write::AddEvent { at: self.time(), x: self.value() },
        }
    }

    fn write(&mut self) -> Write {
        let (table, k, by, g) = (self.table(), self.key(), self.small(), self.group());
        let (low, high) = self.range();
        let than = self.value();
        match self.below(48) {
            0..8 => Write::Add { table, k, by },
            8..10 => Write::AddRange { table, low, high, by },
            10 => Write::AddGroup { g, by },
            11 => Write::Lower { table, than, by },
            12 => Write::Regroup { low, high, g },
            13 | 14 => Write::SumOfRange { k, low, high },
            15 => Write::CountOfGroup { k, g },
            16..22 => Write::Insert { table, rows: self.rows(), taken: self.taken() },
            22 | 23 => Write::Copy { low, high, taken: self.taken() },
            24 => Write::CopyItems,
            25..28 => Write::Remove { table, k },
            28 => Write::RemoveRange { table, low, high },
            29 => Write::RemoveLeast { than },
            30 => Write::RemoveMissing,
            31 | 32 => Write::Move { table, from: k, to: self.key() },
            33 => Write::Shift { low, high: high.min(self.keys as i64 - 1), by: self.direction() },
            34 => Write::Divide { table, low, high, from: self.key() },
            35 => Write::AddDivided { low, high, from: self.key() },
            36 | 37 => Write::AddItem { k, x: by },
            38 => Write::AddItems { g },
            39 => Write::CountItems { k },
            40 => Write::ClearItems { k },
            41 => Write::RemoveItems { than: than / 2 },
            42 => Write::AddToItems { k, by },
            43..45 => Write::AddEvent { at: self.time(), x: than },
            45 => Write::AddToEvents { from: self.time(), by },
            46 => Write::MoveEvents { from: self.time(), by: by - 5 },
            _ => Write::RemoveEvents { from: self.time() },
        }
    }

    fn direction(&mut self) -> i64 {
        [-1, 1][self.below(2) as usize]
    }

    /// Some statements that belong together.
    fn add_steps(&mut self, steps: &mut Vec<Step>) {
        match self.below(11) {
            // Writes there are gone.
            10 => {
                steps.push(Step::Save);
                for _ in 0..=self.below(2) {
                    let write = self.write();
                    steps.push(Step::Write(write, self.below(4) == 0));
                }
                steps.push(Step::Read(self.query_of_writer()));
                steps.push(Step::Return);
            }
            0..3 => steps.push(Step::Read(self.query_of_writer())),
            // A transfer.
            3 => {
                let (from, to, by) = (self.table(), self.table(), self.small());
                for (table, by) in [(from, -by), (to, by)] {
                    steps.push(Step::Write(Write::Add { table, k: self.key(), by }, false));
                }
            }
            // Two rows are read, and one of them, or another one, is written.
            4 | 5 => {
                let (table, k, by) = (self.table(), self.key(), self.small());
                let other = self.key();
                steps.push(Step::Read(Query::Row(self.table(), other)));
                steps.push(Step::Read(Query::Row(table, k)));
                let k = if self.below(2) == 0 { k } else { other };
                steps.push(Step::Write(Write::Derive { table, k, by }, false));
            }
            _ => {
                let write = self.write();
                steps.push(Step::Write(write, self.below(4) == 0));
            }
        }
    }
}
