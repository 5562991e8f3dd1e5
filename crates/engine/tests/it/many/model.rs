//! The contents of the relations, computed naively.

use std::collections::BTreeMap;

/// The keys of `accounts` and `items` are below this.
pub const KEYS: i64 = 24;
/// The groups of `accounts` are below this.
pub const GROUPS: i64 = 4;
/// As many rows of one key in `hot` make `bad` fail: their fifth power is beyond 2^63.
pub const TOO_HOT: u64 = 8_192;
/// How many definitions the views that come and go have.
pub const VARIANTS: usize = 4;

/// The definitions at the beginning.
pub const PROGRAM: &str = "
    CREATE TABLE accounts (k BIGINT PRIMARY KEY, g BIGINT NOT NULL, v BIGINT NOT NULL);
    CREATE TABLE items (k BIGINT NOT NULL, v BIGINT NOT NULL);
    CREATE TABLE hot (k BIGINT NOT NULL);
    CREATE MATERIALIZED VIEW sums AS SELECT g, COUNT(*) AS n, SUM(v) AS s FROM accounts GROUP BY g;
    CREATE MATERIALIZED VIEW joined AS SELECT a.k, a.g, COUNT(*) AS n, SUM(i.v) AS s
        FROM items i JOIN accounts a ON i.k = a.k GROUP BY a.k, a.g;
    CREATE MATERIALIZED VIEW totals AS SELECT SUM(n) AS n, SUM(s) AS s FROM sums;
    CREATE VIEW rich AS SELECT k, v FROM accounts WHERE v > 500;
    CREATE MATERIALIZED VIEW bad AS SELECT a.k FROM hot a JOIN hot b ON a.k = b.k JOIN hot c ON b.k = c.k
        JOIN hot d ON c.k = d.k JOIN hot e ON d.k = e.k;
    CREATE MATERIALIZED VIEW worse AS SELECT k, COUNT(*) AS n FROM bad GROUP BY k;";

/// The queries of views that come and go.
pub const VARIANT: [&str; VARIANTS] = [
    "SELECT 0 AS variant, g, SUM(v) AS s FROM accounts GROUP BY g",
    "SELECT 1 AS variant, k AS g, SUM(v) AS s FROM items GROUP BY k",
    "SELECT 2 AS variant, a.g, SUM(i.v) AS s FROM items i JOIN accounts a ON i.k = a.k GROUP BY a.g",
    "SELECT 3 AS variant, g, s FROM sums WHERE n > 2",
];

/// The contents of the tables as of an epoch.
#[derive(Clone, Default)]
pub struct Tables {
    /// By `k`, `g` and `v`.
    accounts: BTreeMap<i64, (i64, i64)>,
    /// How often each row is there.
    items: BTreeMap<(i64, i64), u64>,
    hot: BTreeMap<i64, u64>,
}

/// A change of tables.
#[derive(Clone, Debug)]
pub enum Write {
    /// Rows of `accounts`, which replace others.
    Put(Vec<(i64, i64, i64)>),
    /// Takes the accounts of these keys away.
    Remove(Vec<i64>),
    /// Adds an amount to all accounts of a group.
    Raise(i64, i64),
    /// Inserts items.
    Add(Vec<(i64, i64)>),
    /// Takes all items of a key away.
    Clear(i64),
    /// Inserts the accounts of a group as items.
    Copy(i64),
    /// Inserts so many rows of a key into `hot`.
    Heat(i64, u64),
    /// Takes them away.
    Cool(i64),
}

impl Write {
    pub fn sql(&self) -> String {
        match self {
            Write::Put(rows) => {
                let rows: Vec<_> =
                    rows.iter().map(|(k, g, v)| format!("({k}, {g}, {v})")).collect();
                format!("INSERT OR REPLACE INTO accounts VALUES {}", rows.join(", "))
            }
            Write::Remove(keys) => {
                let keys: Vec<_> = keys.iter().map(i64::to_string).collect();
                format!("DELETE FROM accounts WHERE k IN ({})", keys.join(", "))
            }
            Write::Raise(g, amount) => {
                format!("UPDATE accounts SET v = v + {amount} WHERE g = {g}")
            }
            Write::Add(rows) => {
                let rows: Vec<_> = rows.iter().map(|(k, v)| format!("({k}, {v})")).collect();
                format!("INSERT INTO items VALUES {}", rows.join(", "))
            }
            Write::Clear(k) => format!("DELETE FROM items WHERE k = {k}"),
            Write::Copy(g) => {
                format!("INSERT INTO items SELECT k, v FROM accounts WHERE g = {g}")
            }
            Write::Heat(k, count) => {
                format!("INSERT INTO hot SELECT {k} FROM generate_series(1, {count})")
            }
            Write::Cool(k) => format!("DELETE FROM hot WHERE k = {k}"),
        }
    }

    /// Changes the tables; returns how many rows are inserted, updated or deleted.
    pub fn apply(&self, tables: &mut Tables) -> u64 {
        let Tables { accounts, items, hot } = tables;
        match self {
            Write::Put(rows) => {
                accounts.extend(rows.iter().map(|&(k, g, v)| (k, (g, v))));
                rows.len() as u64
            }
            Write::Remove(keys) => {
                keys.iter().filter(|key| accounts.remove(key).is_some()).count() as u64
            }
            Write::Raise(group, amount) => {
                let of = accounts.values_mut().filter(|(g, _)| g == group);
                of.map(|(_, v)| *v += amount).count() as u64
            }
            Write::Add(rows) => {
                rows.iter().for_each(|row| *items.entry(*row).or_default() += 1);
                rows.len() as u64
            }
            Write::Clear(key) => {
                items.extract_if(.., |(k, _), _| k == key).map(|(_, copies)| copies).sum()
            }
            Write::Copy(group) => {
                let of = accounts.iter().filter(|(_, (g, _))| g == group);
                of.map(|(k, (_, v))| *items.entry((*k, *v)).or_default() += 1).count() as u64
            }
            Write::Heat(key, count) => {
                *hot.entry(*key).or_default() += count;
                *count
            }
            Write::Cool(key) => hot.remove(key).unwrap_or(0),
        }
    }
}

/// A relation to read and subscribe to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    Accounts,
    Items,
    Sums,
    Joined,
    Totals,
    Rich,
    Bad,
    Worse,
    /// A view of a name that comes and goes, with one of its definitions.
    Variant(usize),
}

/// Those that are always there, and never fail.
pub const STEADY: [Relation; 6] = [
    Relation::Accounts,
    Relation::Items,
    Relation::Sums,
    Relation::Joined,
    Relation::Totals,
    Relation::Rich,
];

impl Relation {
    /// Its name, if it has one of its own.
    pub fn name(self) -> &'static str {
        match self {
            Relation::Accounts => "accounts",
            Relation::Items => "items",
            Relation::Sums => "sums",
            Relation::Joined => "joined",
            Relation::Totals => "totals",
            Relation::Rich => "rich",
            Relation::Bad => "bad",
            Relation::Worse => "worse",
            Relation::Variant(_) => "of a variant",
        }
    }

    /// Its rows as text, sorted; `None` if they cannot be counted.
    pub fn rows(self, tables: &Tables) -> Option<Vec<String>> {
        let mut rows: Vec<String> = match self {
            Relation::Accounts => {
                tables.accounts.iter().map(|(k, (g, v))| format!("{k} {g} {v}")).collect()
            }
            Relation::Items => {
                let copies = |((k, v), copies): (&(i64, i64), &u64)| {
                    vec![format!("{k} {v}"); *copies as usize]
                };
                tables.items.iter().flat_map(copies).collect()
            }
            Relation::Sums => {
                tables.sums().iter().map(|(g, (n, s))| format!("{g} {n} {s}")).collect()
            }
            Relation::Joined => {
                tables.joined().iter().map(|((k, g), (n, s))| format!("{k} {g} {n} {s}")).collect()
            }
            Relation::Totals if tables.accounts.is_empty() => vec!["NULL NULL".to_owned()],
            Relation::Totals => {
                let total: i64 = tables.accounts.values().map(|(_, v)| v).sum();
                vec![format!("{} {total}", tables.accounts.len())]
            }
            Relation::Rich => {
                let rich = tables.accounts.iter().filter(|(_, (_, v))| *v > 500);
                rich.map(|(k, (_, v))| format!("{k} {v}")).collect()
            }
            Relation::Bad => {
                let powers = tables.powers()?;
                powers.into_iter().flat_map(|(k, n)| vec![k.to_string(); n as usize]).collect()
            }
            Relation::Worse => {
                tables.powers()?.into_iter().map(|(k, n)| format!("{k} {n}")).collect()
            }
            Relation::Variant(0) => {
                tables.sums().iter().map(|(g, (_, s))| format!("0 {g} {s}")).collect()
            }
            Relation::Variant(1) => {
                let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
                for ((k, v), copies) in &tables.items {
                    *sums.entry(*k).or_default() += v * *copies as i64;
                }
                sums.iter().map(|(k, s)| format!("1 {k} {s}")).collect()
            }
            Relation::Variant(2) => {
                let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
                for ((_, g), (_, s)) in tables.joined() {
                    *sums.entry(g).or_default() += s;
                }
                sums.iter().map(|(g, s)| format!("2 {g} {s}")).collect()
            }
            Relation::Variant(_) => {
                let sums = tables.sums();
                let large = sums.iter().filter(|(_, (n, _))| *n > 2);
                large.map(|(g, (_, s))| format!("3 {g} {s}")).collect()
            }
        };
        rows.sort();
        Some(rows)
    }
}

impl Tables {
    /// How many accounts a group has, and their sum.
    fn sums(&self) -> BTreeMap<i64, (i64, i64)> {
        let mut sums: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for (g, v) in self.accounts.values() {
            let (n, s) = sums.entry(*g).or_default();
            (*n, *s) = (*n + 1, *s + v);
        }
        sums
    }

    /// By key and group, how many items there are, and their sum.
    fn joined(&self) -> BTreeMap<(i64, i64), (i64, i64)> {
        let mut sums: BTreeMap<(i64, i64), (i64, i64)> = BTreeMap::new();
        for ((k, v), copies) in &self.items {
            if let Some((g, _)) = self.accounts.get(k) {
                let (n, s) = sums.entry((*k, *g)).or_default();
                (*n, *s) = (*n + *copies as i64, *s + v * *copies as i64);
            }
        }
        sums
    }

    /// How often a key is in `bad`.
    fn powers(&self) -> Option<BTreeMap<i64, i64>> {
        let power =
            |(k, count): (&i64, &u64)| Some((*k, i64::try_from(*count).ok()?.checked_pow(5)?));
        self.hot.iter().map(power).collect()
    }

    /// The account of a key.
    pub fn account(&self, key: i64) -> Option<(i64, i64)> {
        self.accounts.get(&key).copied()
    }

    /// Accounts between two keys, both included.
    pub fn accounts_between(&self, low: i64, high: i64) -> impl Iterator<Item = (i64, i64, i64)> {
        let within = self.accounts.iter().filter(move |(k, _)| low <= **k && **k <= high);
        within.map(|(k, (g, v))| (*k, *g, *v))
    }

    /// Items of a key, and how often each is there.
    pub fn items_of(&self, key: i64) -> impl Iterator<Item = (i64, u64)> {
        let of = self.items.iter().filter(move |((k, _), _)| *k == key);
        of.map(|((_, v), copies)| (*v, *copies))
    }

    /// How many accounts there are, and their sum.
    pub fn total(&self) -> (usize, i64) {
        (self.accounts.len(), self.accounts.values().map(|(_, v)| v).sum())
    }
}
