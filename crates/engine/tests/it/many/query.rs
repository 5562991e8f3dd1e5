//! The queries of clients, and their expected answers.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::model::{Relation, Tables, VARIANTS};

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Query {
    /// All rows of a relation.
    All(Relation),
    /// All rows of a view of this name, which comes and goes.
    Named(usize),
    /// The row of a key in such a view.
    OfNamed(usize, i64),
    /// The account of a key.
    Account(i64),
    /// The accounts between two keys.
    Between(i64, i64),
    /// The sum of a group.
    Sum(i64),
    /// The items of a key.
    Items(i64),
    /// A table beside a view of it.
    Beside,
    /// A join of both tables, for the keys of a group.
    Joined(i64),
}

impl Query {
    /// Its text, with these for its values.
    fn text(self, values: [String; 2]) -> String {
        let [first, second] = values;
        match self {
            Query::All(relation) => format!("SELECT * FROM {}", relation.name()),
            Query::Named(name) => format!("SELECT * FROM c{name}"),
            Query::OfNamed(name, _) => {
                format!("SELECT variant, g, s FROM c{name} WHERE g = {first}")
            }
            Query::Account(_) => format!("SELECT k, g, v FROM accounts WHERE k = {first}"),
            Query::Between(..) => {
                format!("SELECT k, g, v FROM accounts WHERE k BETWEEN {first} AND {second}")
            }
            Query::Sum(_) => format!("SELECT g, n, s FROM sums WHERE g = {first}"),
            Query::Items(_) => format!("SELECT v FROM items WHERE k = {first}"),
            Query::Beside => "SELECT COUNT(*) AS n, COALESCE(SUM(v), 0) AS s FROM accounts
                UNION ALL SELECT COALESCE(n, 0), COALESCE(s, 0) FROM totals
                UNION ALL SELECT COALESCE(SUM(n), 0), COALESCE(SUM(s), 0) FROM sums"
                .to_owned(),
            Query::Joined(_) => format!(
                "SELECT a.k, COUNT(*), SUM(i.v + a.v) FROM accounts a JOIN items i ON a.k = i.k
                 WHERE a.g = {first} GROUP BY a.k"
            ),
        }
    }

    /// The values of its parameters.
    pub fn values(self) -> Vec<i64> {
        match self {
            Query::OfNamed(_, value)
            | Query::Account(value)
            | Query::Sum(value)
            | Query::Items(value)
            | Query::Joined(value) => {
                vec![value]
            }
            Query::Between(low, high) => vec![low, high],
            Query::All(_) | Query::Named(_) | Query::Beside => Vec::new(),
        }
    }

    /// Its text, with the values in it.
    pub fn literal(self) -> String {
        let mut values = self.values().into_iter().map(|value| value.to_string());
        self.text([values.next().unwrap_or_default(), values.next().unwrap_or_default()])
    }

    /// Its text, with parameters for the values.
    pub fn with_parameters(self) -> String {
        self.text(["$1".to_owned(), "$2".to_owned()])
    }

    /// The answers that are right as of an epoch: one of them, or none if a view that it reads has failed.
    pub fn answers(self, tables: &Tables) -> Vec<Answer> {
        let rows = match self {
            Query::All(relation) => relation.rows(tables),
            Query::Named(_) | Query::OfNamed(..) => {
                let variants = (0..VARIANTS).filter_map(|it| Relation::Variant(it).rows(tables));
                let of_key = |mut rows: Vec<String>| {
                    if let Query::OfNamed(_, key) = self {
                        rows.retain(|row| row.split(' ').nth(1) == Some(&*key.to_string()));
                    }
                    Answer::of(&rows)
                };
                return variants.map(of_key).collect();
            }
            Query::Account(key) => Some(
                tables.account(key).map(|(g, v)| format!("{key} {g} {v}")).into_iter().collect(),
            ),
            Query::Between(low, high) => {
                let within = tables.accounts_between(low, high);
                Some(within.map(|(k, g, v)| format!("{k} {g} {v}")).collect())
            }
            Query::Sum(group) => {
                let mut rows = Relation::Sums.rows(tables).unwrap_or_default();
                rows.retain(|row| row.starts_with(&format!("{group} ")));
                Some(rows)
            }
            Query::Items(key) => {
                let copies = |(v, copies): (i64, u64)| vec![v.to_string(); copies as usize];
                Some(tables.items_of(key).flat_map(copies).collect())
            }
            Query::Beside => {
                let (n, s) = tables.total();
                Some(vec![format!("{n} {s}"); 3])
            }
            Query::Joined(group) => {
                let row = |(k, g, v)| {
                    let items = tables.items_of(k).filter(|_| g == group);
                    let (n, s) = items.fold((0, 0), |(n, s), (item, copies)| {
                        (n + copies, s + (item + v) * copies as i64)
                    });
                    (n > 0).then(|| format!("{k} {n} {s}"))
                };
                Some(tables.accounts_between(i64::MIN, i64::MAX).filter_map(row).collect())
            }
        };
        rows.map(|mut rows| {
            rows.sort();
            Answer::of(&rows)
        })
        .into_iter()
        .collect()
    }
}

/// An answer, as far as it has to be known to compare it: its hash and its beginning.
#[derive(Clone, Debug)]
pub struct Answer {
    hash: u64,
    beginning: String,
}

impl PartialEq for Answer {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Answer {
    /// That of sorted rows.
    pub fn of(rows: &[String]) -> Self {
        let mut hasher = DefaultHasher::new();
        rows.hash(&mut hasher);
        let first: Vec<&str> = rows.iter().take(8).map(String::as_str).collect();
        let beginning = format!("{} rows: {}", rows.len(), first.join(" | "));
        Self { hash: hasher.finish(), beginning }
    }

    /// How it begins.
    pub fn beginning(&self) -> &str {
        &self.beginning
    }
}
