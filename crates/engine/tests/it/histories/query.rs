//! The queries of transactions, and their expected answers.

use std::collections::BTreeMap;

use super::model::{Bag, Keyed, Open, Tables, VARIANTS};

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// The value of a key.
    Row(Keyed, i64),
    /// The same, which is locked.
    LockedRow(Keyed, i64),
    /// The rows between two keys.
    Range(Keyed, i64, i64),
    /// The keys of values above this.
    Above(Keyed, i64),
    /// The same, shared with others who lock them.
    LockedAbove(Keyed, i64),
    /// How many rows there are, and their sum.
    Total(Keyed),
    /// The keys of a group.
    Group(i64),
    /// The items of a key.
    Items(i64),
    /// All items.
    AllItems,
    /// The events from a time on.
    Events(i64),
    /// Both tables with keys, joined between two keys.
    Both(i64, i64),
    /// The keys of one table that the other one does not have.
    Missing,
    /// A group in a materialized view.
    Sum(i64),
    /// A whole materialized view of one table.
    Sums,
    /// A whole materialized view of a join.
    Joined,
    /// A materialized view of events.
    Counted,
    /// A view that keeps nothing.
    Large,
    /// A table beside a materialized view of it.
    Beside,
    /// A view that comes and goes.
    Named(u64),
}

/// All that is left at the end.
pub const ALL: [Query; 12] = [
    Query::Range(Keyed::A, i64::MIN, i64::MAX),
    Query::Range(Keyed::B, i64::MIN, i64::MAX),
    Query::Range(Keyed::C, i64::MIN, i64::MAX),
    Query::AllItems,
    Query::Events(i64::MIN),
    Query::Sums,
    Query::Joined,
    Query::Counted,
    Query::Large,
    Query::Beside,
    Query::Named(0),
    Query::Named(1),
];

impl Query {
    pub fn sql(self) -> String {
        match self {
            Query::Row(table, k) => format!("SELECT x FROM {} WHERE k = {k}", table.name()),
            Query::Range(table, low, high) => {
                format!("SELECT k, g, x FROM {} WHERE k BETWEEN {low} AND {high}", table.name())
            }
            Query::Above(table, x) => format!("SELECT k FROM {} WHERE x > {x}", table.name()),
            Query::Total(table) => {
                format!("SELECT COUNT(*), COALESCE(SUM(x), 0) FROM {}", table.name())
            }
            Query::Group(g) => format!("SELECT k FROM a WHERE g = {g}"),
            Query::Items(k) => format!("SELECT x FROM items WHERE k = {k}"),
            Query::AllItems => "SELECT k, x FROM items".to_owned(),
            Query::Events(from) => format!("SELECT at, x FROM events WHERE at >= {from}"),
            Query::Both(low, high) => format!(
                "SELECT a.k, a.x + b.x FROM a JOIN b ON a.k = b.k WHERE a.k BETWEEN {low} AND {high}"
            ),
            Query::Missing => "SELECT k FROM a WHERE k NOT IN (SELECT k FROM b)".to_owned(),
            Query::Sum(g) => format!("SELECT n, s FROM sums WHERE g = {g}"),
            Query::Sums => "SELECT g, n, s FROM sums".to_owned(),
            Query::Joined => "SELECT k, n, s FROM joined".to_owned(),
            Query::Counted => "SELECT n FROM counted".to_owned(),
            Query::Large => "SELECT k, x FROM large".to_owned(),
            Query::Beside => "SELECT 0, COUNT(*), COALESCE(SUM(x), 0) FROM a
                UNION ALL SELECT 1, COALESCE(SUM(n), 0), COALESCE(SUM(s), 0) FROM sums"
                .to_owned(),
            Query::Named(name) => format!("SELECT variant, k, s FROM c{name}"),
            Query::LockedRow(table, k) => format!("{} FOR UPDATE", Query::Row(table, k).sql()),
            Query::LockedAbove(table, x) => {
                format!("{} FOR SHARE", Query::Above(table, x).sql())
            }
        }
    }

    /// The answers that are right in a transaction: one, but of views that come and go. Tables, and views that keep nothing, show
    /// the transaction's own changes, materialized views do not.
    pub fn answers(self, open: &Open) -> Vec<String> {
        let (now, before) = (&open.now, &open.before);
        let rows = match self {
            Query::Row(table, k) => {
                now.keyed(table).get(&k).map(|(_, x)| x.to_string()).into_iter().collect()
            }
            Query::Range(table, low, high) => now
                .keyed(table)
                .range(low..=high)
                .map(|(k, (g, x))| format!("{k} {g} {x}"))
                .collect(),
            Query::LockedRow(table, k) => return Query::Row(table, k).answers(open),
            Query::LockedAbove(table, than) => return Query::Above(table, than).answers(open),
            Query::Above(table, than) => {
                let above = now.keyed(table).iter().filter(|(_, (_, x))| *x > than);
                above.map(|(k, _)| k.to_string()).collect()
            }
            Query::Total(table) => {
                let rows = now.keyed(table);
                vec![format!("{} {}", rows.len(), rows.values().map(|(_, x)| x).sum::<i64>())]
            }
            Query::Group(of) => {
                let of = now.keyed(Keyed::A).iter().filter(|(_, (g, _))| *g == of);
                of.map(|(k, _)| k.to_string()).collect()
            }
            Query::Items(of) => {
                let of = copies(&now.items).filter(|(k, _)| *k == of);
                of.map(|(_, x)| x.to_string()).collect()
            }
            Query::AllItems => copies(&now.items).map(|(k, x)| format!("{k} {x}")).collect(),
            Query::Events(from) => {
                let events = copies(&now.events).filter(|(at, _)| *at >= from);
                events.map(|(at, x)| format!("{at} {x}")).collect()
            }
            Query::Both(low, high) => {
                let both = now.keyed(Keyed::A).range(low..=high).filter_map(|(k, (_, x))| {
                    let (_, y) = now.keyed(Keyed::B).get(k)?;
                    Some(format!("{k} {}", x + y))
                });
                both.collect()
            }
            Query::Missing => {
                let keys = now.keyed(Keyed::A).keys();
                let missing = keys.filter(|k| !now.keyed(Keyed::B).contains_key(k));
                missing.map(|k| k.to_string()).collect()
            }
            Query::Sum(g) => {
                before.sums().get(&g).map(|(n, s)| format!("{n} {s}")).into_iter().collect()
            }
            Query::Sums => before.sums().iter().map(|(g, (n, s))| format!("{g} {n} {s}")).collect(),
            Query::Joined => {
                before.joined().iter().map(|(k, (n, s))| format!("{k} {n} {s}")).collect()
            }
            Query::Counted => vec![before.events.values().sum::<u64>().to_string()],
            Query::Large => {
                let large = now.keyed(Keyed::A).iter().filter(|(_, (_, x))| *x > 500);
                large.map(|(k, (_, x))| format!("{k} {x}")).collect()
            }
            Query::Beside => {
                let total = |tables: &Tables| {
                    let rows = tables.keyed(Keyed::A);
                    (rows.len(), rows.values().map(|(_, x)| x).sum::<i64>())
                };
                let (table, view) = (total(now), total(before));
                vec![format!("0 {} {}", table.0, table.1), format!("1 {} {}", view.0, view.1)]
            }
            Query::Named(_) => {
                return (0..VARIANTS.len())
                    .map(|variant| answer(before.variant(variant)))
                    .collect();
            }
        };
        vec![answer(rows)]
    }

    /// Whether what it reads may not be there.
    pub fn may_be_absent(self) -> bool {
        matches!(self, Query::Named(_))
    }
}

/// Rows as an answer is compared and logged: in order, in one line.
pub fn answer(mut rows: Vec<String>) -> String {
    rows.sort();
    rows.join("|")
}

/// The rows of a bag, each as often as it is there.
fn copies(bag: &Bag) -> impl Iterator<Item = (i64, i64)> {
    bag.iter().flat_map(|(row, copies)| (0..*copies).map(|_| *row))
}

impl Tables {
    /// The view `sums`: how many rows a group has, and their sum.
    pub fn sums(&self) -> BTreeMap<i64, (i64, i64)> {
        let mut sums: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for (g, x) in self.keyed(Keyed::A).values() {
            let (n, s) = sums.entry(*g).or_default();
            (*n, *s) = (*n + 1, *s + x);
        }
        sums
    }

    /// The view `joined`: how many items a key has, and their sum.
    pub fn joined(&self) -> BTreeMap<i64, (i64, i64)> {
        let mut sums = self.items_by_key();
        sums.retain(|k, _| self.keyed(Keyed::A).contains_key(k));
        sums
    }

    /// How many items each key has, and their sum.
    pub fn items_by_key(&self) -> BTreeMap<i64, (i64, i64)> {
        let mut sums: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for (k, x) in copies(&self.items) {
            let (n, s) = sums.entry(k).or_default();
            (*n, *s) = (*n + 1, *s + x);
        }
        sums
    }

    fn variant(&self, variant: usize) -> Vec<String> {
        let rows = match variant {
            0 => self.sums(),
            1 => self.items_by_key(),
            _ => self.joined(),
        };
        rows.iter().map(|(k, (_, s))| format!("{variant} {k} {s}")).collect()
    }
}
