//! Programs: tables, views, and a script of steps over them.
//!
//! Tables may have indexes, which change no results.
//!
//! In reading order: [`model`] computes what a program's tables should hold, and [`run`] runs a program on an
//! engine and judges it. [`variation`] runs it in other ways that must not change results, one of them from a
//! [`recording`]. [`shrink`] shrinks a program that goes wrong, and [`file`] writes it as an SQL file.

pub(crate) mod file;
pub(crate) mod model;
pub(crate) mod recording;
pub(crate) mod run;
pub(crate) mod shrink;
pub(crate) mod variation;

use alluvium_trace::Merging;

use crate::query::{Expr, Kind, Query, Value, text};

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) not_null: bool,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    /// The number of leading columns that form its primary key.
    pub(crate) key: usize,
    pub(crate) append_only: bool,
    /// Whether a row whose key is taken takes the place of the other, whatever inserts it.
    pub(crate) replaces: bool,
    /// A column, of type INT, BIGINT or TIMESTAMP, and how late its values may come: a number, or seconds.
    pub(crate) lateness: Option<(usize, i64)>,
}

/// An index of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Index {
    pub(crate) name: String,
    /// The table, by its place.
    pub(crate) table: usize,
    /// The columns that it is by.
    pub(crate) columns: Vec<usize>,
}

/// How a view is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    Materialized,
    Plain,
    Local,
}

/// A view.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct View {
    pub(crate) name: String,
    pub(crate) keeping: Keeping,
    pub(crate) query: Query,
    pub(crate) lateness: Option<ViewLateness>,
}

/// How late changes of a view may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ViewLateness {
    /// A column, of type INT, BIGINT or TIMESTAMP.
    pub(crate) column: usize,
    /// A number, or seconds.
    pub(crate) by: i64,
}

/// A change of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Write {
    Insert(usize, Vec<Vec<Value>>),
    Delete(usize, Expr),
    Update(usize, Vec<(usize, Expr)>, Expr),
    /// Inserts the rows of a table for which a condition holds once more.
    Again(usize, Expr),
    /// An insert of a NULL into a NOT NULL column, which is refused.
    Refused(usize, Vec<Value>),
}

/// A change of the columns of a table, of those that no view and no other statement names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Alteration {
    /// Adds a column of a type, with a DEFAULT.
    Add(String, &'static str),
    /// Gives a column another name.
    Rename(String, String),
    /// Drops a column.
    Drop(String),
}

impl Alteration {
    fn sql(&self) -> String {
        match self {
            Alteration::Add(name, definition) => format!("ADD COLUMN {name} {definition}"),
            Alteration::Rename(from, to) => format!("RENAME COLUMN {from} TO {to}"),
            Alteration::Drop(name) => format!("DROP COLUMN {name}"),
        }
    }
}

/// A step of a script.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Begin,
    Commit,
    Rollback,
    Write(Write),
    Create(usize),
    Drop(usize),
    /// Alters a table that no view reads, outside of transactions.
    Alter(usize, Alteration),
    /// Subscribes to every view a second time.
    Watch,
}

/// Who merges batches of state, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merges {
    /// The worker, in the call that makes a merge due.
    AtOnce,
    /// The worker, in slices.
    InSlices,
    /// Other threads, at any speed and in any order, which depend on a seed.
    InBackground(u64),
}

impl Merges {
    /// The choice for the program of this number.
    pub(crate) fn of(number: u64) -> Self {
        match number % 4 {
            0 => Merges::AtOnce,
            1 => Merges::InSlices,
            _ => Merges::InBackground(number),
        }
    }
}

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    pub(crate) number: u64,
    pub(crate) workers: usize,
    /// The memory budget for state in bytes; `None` without a limit.
    pub(crate) memory: Option<usize>,
    /// When the engine merges batches of state.
    pub(crate) merging: Merging,
    /// Who does the merges.
    pub(crate) merges: Merges,
    /// After which step the engine ends, and another resumes what it did; `None` for never.
    pub(crate) reopen: Option<usize>,
    /// Whether the other one has followed the first since some step before.
    pub(crate) follows: bool,
    pub(crate) tables: Vec<Table>,
    pub(crate) indexes: Vec<Index>,
    pub(crate) views: Vec<View>,
    pub(crate) steps: Vec<Step>,
}

impl Table {
    /// Its definition.
    pub(crate) fn sql(&self) -> String {
        let mut items: Vec<String> = self
            .columns
            .iter()
            .map(|column| {
                let not_null = if column.not_null { " NOT NULL" } else { "" };
                format!("{} {}{not_null}{}", column.name, column.kind.sql(), self.late(column))
            })
            .collect();
        if self.key > 0 {
            let key: Vec<_> =
                self.columns[..self.key].iter().map(|column| column.name.as_str()).collect();
            items.push(format!("PRIMARY KEY ({})", key.join(", ")));
        }
        let options = match (self.append_only, self.replaces) {
            (true, _) => " WITH ('append_only' = 'true')",
            (false, true) => " WITH ('on_conflict' = 'replace')",
            (false, false) => "",
        };
        format!("CREATE TABLE {} ({}){options}", self.name, items.join(", "))
    }

    /// Whether an INSERT of rows is refused if one of their keys is taken. Where nothing replaces rows by itself, those of several
    /// rows say that they do.
    pub(crate) fn refuses_taken_keys(&self, rows: &[Vec<Value>]) -> bool {
        self.key > 0 && !self.replaces && rows.len() == 1
    }

    /// The names of its columns: an altered table may have more.
    fn names(&self) -> String {
        let names: Vec<_> = self.columns.iter().map(|column| column.name.as_str()).collect();
        names.join(", ")
    }

    /// The lateness of a column, if it has one.
    fn late(&self, column: &Column) -> String {
        match self.lateness {
            Some((place, by)) if self.columns[place] == *column => {
                format!(" LATENESS {}", amount(column.kind, by))
            }
            _ => String::new(),
        }
    }

    /// The value of a row by which it may come late, as a number or in seconds.
    pub(crate) fn time(&self, row: &[Value]) -> Option<i64> {
        row[self.lateness?.0].as_time()
    }

    /// A row in VALUES.
    fn row(row: &[Value]) -> String {
        let values: Vec<_> = row.iter().map(Value::literal).collect();
        format!("({})", values.join(", "))
    }
}

/// A lateness in SQL.
fn amount(kind: Kind, by: i64) -> String {
    match kind {
        Kind::Moment => format!("INTERVAL '{by}' SECONDS"),
        _ => by.to_string(),
    }
}

impl View {
    /// The lateness declared for it before it exists.
    pub(crate) fn lateness_sql(&self) -> Option<String> {
        let ViewLateness { column, by } = self.lateness?;
        let (column, kind) = &self.query.columns()[column];
        Some(format!("LATENESS {}.{column} {}", self.name, amount(*kind, by)))
    }

    /// Its definition.
    pub(crate) fn sql(&self) -> String {
        self.with_query(text::sql(&self.query, text::Dialect::Alluvium, 0))
    }

    /// Its definition for an engine that has functions of its own.
    pub(crate) fn sql_with_own(&self) -> String {
        self.with_query(text::sql_with_own(&self.query))
    }

    fn with_query(&self, query: Option<String>) -> String {
        let keeping = match self.keeping {
            Keeping::Materialized => "MATERIALIZED ",
            Keeping::Plain => "",
            Keeping::Local => "LOCAL ",
        };
        format!("CREATE {keeping}VIEW {} AS {}", self.name, query.unwrap_or_default())
    }

    /// The definition of a view of its rows that are final by a column.
    pub(crate) fn sql_of_final(&self, name: &str, column: &str) -> String {
        let query = text::sql_with_own(&self.query).unwrap_or_default();
        format!("CREATE VIEW {name} WITH ('emit_final' = '{column}') AS {query}")
    }
}

impl Program {
    /// Whether NaN or -0.0 are among the rows that are inserted.
    pub(crate) fn has_nan(&self) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Write(Write::Insert(_, rows)) => rows.iter().flatten().any(Value::is_special),
            _ => false,
        })
    }

    /// The definition of an index.
    pub(crate) fn index_sql(&self, index: &Index) -> String {
        let table = &self.tables[index.table];
        let columns: Vec<_> =
            index.columns.iter().map(|column| table.columns[*column].name.as_str()).collect();
        format!("CREATE INDEX {} ON {} ({})", index.name, table.name, columns.join(", "))
    }

    /// A change as a statement.
    pub(crate) fn write(&self, write: &Write) -> String {
        match write {
            Write::Insert(table, rows) => {
                let table = &self.tables[*table];
                let is_plain = table.key == 0 || table.replaces || table.refuses_taken_keys(rows);
                let insert = if is_plain { "INSERT" } else { "INSERT OR REPLACE" };
                let rows: Vec<_> = rows.iter().map(|row| Table::row(row)).collect();
                let (name, names) = (&table.name, table.names());
                format!("{insert} INTO {name} ({names}) VALUES {}", rows.join(", "))
            }
            Write::Refused(table, row) => {
                let table = &self.tables[*table];
                format!("INSERT INTO {} ({}) VALUES {}", table.name, table.names(), Table::row(row))
            }
            Write::Delete(table, condition) => {
                format!(
                    "DELETE FROM {} WHERE {}",
                    self.tables[*table].name,
                    text::condition(condition)
                )
            }
            Write::Update(table, sets, condition) => {
                let table = &self.tables[*table];
                let sets: Vec<_> = sets
                    .iter()
                    .map(|(column, value)| {
                        format!("{} = {}", table.columns[*column].name, text::condition(value))
                    })
                    .collect();
                format!(
                    "UPDATE {} SET {} WHERE {}",
                    table.name,
                    sets.join(", "),
                    text::condition(condition)
                )
            }
            Write::Again(table, condition) => {
                let table = &self.tables[*table];
                let (name, names) = (&table.name, table.names());
                let condition = text::condition(condition);
                format!("INSERT INTO {name} ({names}) SELECT {names} FROM {name} WHERE {condition}")
            }
        }
    }

    /// A step as a statement, if it is one.
    pub(crate) fn statement(&self, step: &Step) -> Option<String> {
        Some(match step {
            Step::Begin => "BEGIN".to_owned(),
            Step::Commit => "COMMIT".to_owned(),
            Step::Rollback => "ROLLBACK".to_owned(),
            Step::Write(write) => self.write(write),
            Step::Create(view) => {
                let view = &self.views[*view];
                let lateness = view.lateness_sql().map(|lateness| format!("{lateness};\n"));
                format!("{}{}", lateness.unwrap_or_default(), view.sql())
            }
            Step::Drop(view) => {
                let view = &self.views[*view];
                let word = if view.keeping == Keeping::Materialized { "MATERIALIZED " } else { "" };
                format!("DROP {word}VIEW {}", view.name)
            }
            Step::Alter(table, alteration) => {
                format!("ALTER TABLE {} {}", self.tables[*table].name, alteration.sql())
            }
            Step::Watch => return None,
        })
    }
}
