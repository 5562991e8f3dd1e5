//! The contents of the tables, as plain maps.

use std::collections::{BTreeMap, BTreeSet};

/// The definitions at the beginning.
pub const PROGRAM: &str = "
    CREATE TABLE a (k BIGINT PRIMARY KEY, g BIGINT NOT NULL, x BIGINT NOT NULL);
    CREATE TABLE b (k BIGINT PRIMARY KEY, g BIGINT NOT NULL, x BIGINT NOT NULL);
    CREATE TABLE c (k BIGINT PRIMARY KEY, g BIGINT NOT NULL, x BIGINT NOT NULL, UNIQUE (g, x));
    CREATE TABLE items (k BIGINT NOT NULL, x BIGINT NOT NULL);
    CREATE TABLE events (at BIGINT NOT NULL LATENESS 40, x BIGINT NOT NULL);
    CREATE MATERIALIZED VIEW sums AS SELECT g, COUNT(*) AS n, SUM(x) AS s FROM a GROUP BY g;
    CREATE MATERIALIZED VIEW joined AS SELECT a.k, COUNT(*) AS n, SUM(i.x) AS s
        FROM a JOIN items i ON a.k = i.k GROUP BY a.k;
    CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n FROM events;
    CREATE VIEW large AS SELECT k, x FROM a WHERE x > 500;";

/// How much older events may be than the newest of earlier epochs.
pub const LATENESS: i64 = 40;

/// The queries of views that come and go.
pub const VARIANTS: [&str; 3] = [
    "SELECT 0 AS variant, g AS k, SUM(x) AS s FROM a GROUP BY g",
    "SELECT 1 AS variant, k, SUM(x) AS s FROM items GROUP BY k",
    "SELECT 2 AS variant, a.k, SUM(i.x) AS s FROM a JOIN items i ON a.k = i.k GROUP BY a.k",
];

/// Whether an INSERT of a key that a row has already, by SQL or a program, and an UPDATE to such a key, fails. Else it replaces the row.
pub const TAKEN_KEYS_FAIL: bool = true;

/// Tables with keys.
pub const ALL_KEYED: [Keyed; 3] = [Keyed::A, Keyed::B, Keyed::C];

/// A table with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyed {
    A,
    /// Columns of it come and go, and no view reads it.
    B,
    /// No two rows have the same group and value.
    C,
}

impl Keyed {
    pub fn name(self) -> &'static str {
        match self {
            Keyed::A => "a",
            Keyed::B => "b",
            Keyed::C => "c",
        }
    }
}

/// Rows of a table with a key: `g` and `x`, by `k`.
pub type Rows = BTreeMap<i64, (i64, i64)>;

impl Keyed {
    /// Whether the table can have these rows.
    pub fn can_be(self, rows: &Rows) -> bool {
        let different: BTreeSet<_> = rows.values().collect();
        self != Keyed::C || different.len() == rows.len()
    }
}

/// Rows of a table without a key, and how often each is there.
pub type Bag = BTreeMap<(i64, i64), u64>;

/// The tables as of an epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tables {
    a: Rows,
    b: Rows,
    c: Rows,
    pub items: Bag,
    pub events: Bag,
    /// The waterline of events: what is below it is late.
    pub waterline: Option<i64>,
}

impl Tables {
    pub fn keyed(&self, table: Keyed) -> &Rows {
        match table {
            Keyed::A => &self.a,
            Keyed::B => &self.b,
            Keyed::C => &self.c,
        }
    }

    pub fn keyed_mut(&mut self, table: Keyed) -> &mut Rows {
        match table {
            Keyed::A => &mut self.a,
            Keyed::B => &mut self.b,
            Keyed::C => &mut self.c,
        }
    }
}

/// Adds copies of a row, or takes them away.
pub fn add(bag: &mut Bag, row: (i64, i64), copies: i64) {
    let now = bag.get(&row).copied().unwrap_or(0).saturating_add_signed(copies);
    match now {
        0 => bag.remove(&row),
        _ => bag.insert(row, now),
    };
}

/// A transaction on the way from one epoch to the next.
#[derive(Clone)]
pub struct Open {
    /// The tables when it began: what materialized views show of them.
    pub before: Tables,
    /// With its own changes.
    pub now: Tables,
    /// The newest event that it inserted.
    newest: Option<i64>,
    /// Items that a program deleted before it inserts them: they are added up.
    owed: Bag,
    /// Below it events that it inserts are dropped.
    pub dropped_below: Option<i64>,
    /// Below it events cannot be changed.
    pub fixed_below: Option<i64>,
}

impl Open {
    pub fn new(before: &Tables) -> Self {
        let (dropped_below, fixed_below) = (before.waterline, before.waterline);
        let (newest, owed) = Default::default();
        let (before, now) = (before.clone(), before.clone());
        Self { before, now, newest, owed, dropped_below, fixed_below }
    }

    /// Inserts an item.
    pub fn insert_item(&mut self, item: (i64, i64)) {
        match self.owed.contains_key(&item) {
            true => add(&mut self.owed, item, -1),
            false => add(&mut self.now.items, item, 1),
        }
    }

    /// Deletes an item as a program does, which need not be there.
    pub fn delete_item(&mut self, item: (i64, i64)) {
        match self.now.items.contains_key(&item) {
            true => add(&mut self.now.items, item, -1),
            false => add(&mut self.owed, item, 1),
        }
    }

    /// Inserts an event, if it is not late.
    pub fn insert_event(&mut self, at: i64, x: i64) {
        if self.dropped_below.is_none_or(|waterline| at >= waterline) {
            add(&mut self.now.events, (at, x), 1);
            self.newest = self.newest.max(Some(at));
        }
    }

    /// The tables as of its epoch.
    pub fn commit(mut self) -> Tables {
        let risen = self.newest.map(|newest| newest - LATENESS);
        self.now.waterline = self.now.waterline.max(risen);
        self.now
    }
}
