//! Generating a program: tables, views, and a script that creates and drops views.

use std::collections::BTreeSet;

use alluvium_trace::Merging;

use super::{Maker, Source};
use crate::program::{
    Alteration, Index, Keeping, Merges, Program, Step, Table, View, ViewLateness,
};
use crate::query::visit::{self, Visitor};
use crate::query::{From, Kind, Query};

/// The number of views of a program.
const VIEWS: usize = 12;

/// The number of transactions of a program.
const TRANSACTIONS: usize = 9;

/// The program of this number, in the sequence for a seed.
pub(crate) fn program(seed: u64, number: u64) -> Program {
    let mixed =
        (seed ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xD129_0DDB_53C4_3E49).wrapping_add(number);
    let mut maker = Maker {
        rng: fastrand::Rng::with_seed(mixed),
        sources: Vec::new(),
        names: 0,
        transactions: 0,
        latest: Vec::new(),
        has_nan: number % 4 != 3,
    };
    let workers = maker.one_of(&[1, 2, 2, 3]);
    let mut tables = maker.tables(number);
    if number % 5 == 4 {
        tables.iter_mut().for_each(add_end);
    }
    maker.latest = vec![None; tables.len()];
    for table in &tables {
        let columns = table.columns.iter().map(|column| (column.name.clone(), column.kind));
        let columns: Vec<_> = columns.collect();
        maker.sources.push(Source {
            name: table.name.clone(),
            key: columns[..table.key].to_vec(),
            columns,
            size: 13.0,
            time: table.lateness.map(|(place, _)| {
                let column = &table.columns[place];
                (column.name.clone(), column.kind)
            }),
        });
    }
    // Other programs stay what they were.
    let mut lots = fastrand::Rng::with_seed(mixed ^ 0x5DEE_CE66);
    let mut views = Vec::new();
    for place in 0..VIEWS {
        let (query, size) = match number % 5 {
            1 => maker.perhaps_recursive(&mut lots),
            3 => maker.perhaps_tied(&mut lots),
            _ => maker.query(),
        };
        let keeping = maker.one_of(&[
            Keeping::Materialized,
            Keeping::Materialized,
            Keeping::Plain,
            Keeping::Local,
        ]);
        let name = format!("v{place}");
        let can_be_late = number % 5 == 2 && keeping == Keeping::Materialized;
        let lateness = can_be_late.then(|| late_column(&query, &mut lots)).flatten();
        // No views over queries that can fail, because databases differ in whether they evaluate unused
        // expressions, or over queries of the time, which advances.
        if !may_fail(&query) && !names_now(&query) {
            let columns = query.columns();
            let time = lateness.map(|lateness: ViewLateness| columns[lateness.column].clone());
            maker.sources.push(Source { name: name.clone(), columns, size, time, key: Vec::new() });
        }
        views.push(View { name, keeping, query, lateness });
    }
    let indexes = indexes(&tables, &mut fastrand::Rng::with_seed(mixed ^ 0x1DE8_1DE8));
    let mut steps = maker.script(&tables, &views);
    // Changes of tables cannot be recorded and replayed.
    if number % 3 != 1 {
        let is_indexed = |place| indexes.iter().any(|index| index.table == place);
        let fixed: Vec<bool> = (0..tables.len()).map(is_indexed).collect();
        steps = altered(steps, (&tables, &fixed), &views, &mut lots);
    }
    let (merging, merges) = (Merging::default(), Merges::of(number));
    let (memory, reopen, follows) = (None, None, false);
    Program {
        number,
        workers,
        memory,
        merging,
        merges,
        reopen,
        follows,
        tables,
        indexes,
        views,
        steps,
    }
}

/// Indexes of some tables, by columns whose types have an order.
fn indexes(tables: &[Table], lots: &mut fastrand::Rng) -> Vec<Index> {
    let mut indexes = Vec::new();
    for (place, table) in tables.iter().enumerate() {
        let sorts = |column: &usize| !table.columns[*column].kind.is_nested();
        let mut columns: Vec<usize> = (0..table.columns.len()).filter(sorts).collect();
        lots.shuffle(&mut columns);
        columns.truncate(lots.usize(0..3));
        if !columns.is_empty() {
            indexes.push(Index { name: format!("i{place}"), table: place, columns });
        }
    }
    indexes
}

/// How late changes of every other view may come: by the first column that can have lateness. Queries that fail, or name the time,
/// are left out.
fn late_column(query: &Query, lots: &mut fastrand::Rng) -> Option<ViewLateness> {
    if lots.bool() || may_fail(query) || names_now(query) {
        return None;
    }
    let kinds = [Kind::Integer, Kind::Big, Kind::Moment];
    let columns = query.columns();
    let column = columns.iter().position(|(_, kind)| kinds.contains(kind))?;
    let most = if columns[column].1 == Kind::Moment { 60 } else { 4 };
    Some(ViewLateness { column, by: lots.i64(0..most) })
}

impl Maker {
    /// A query, of which every fourth one is a recursion.
    fn perhaps_recursive(&mut self, lots: &mut fastrand::Rng) -> (Query, f64) {
        let recursive =
            if lots.usize(..4) == 0 { (0..4).find_map(|_| self.recursive()) } else { None };
        recursive.unwrap_or_else(|| self.query())
    }

    /// A query, of which every fourth one has the first rows in an order, and their ties.
    fn perhaps_tied(&mut self, lots: &mut fastrand::Rng) -> (Query, f64) {
        let tied = if lots.usize(..4) == 0 { self.tied() } else { None };
        tied.unwrap_or_else(|| self.query())
    }

    fn script(&mut self, tables: &[crate::program::Table], views: &[View]) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut created = 0;
        // Some views are created before the first rows, others later.
        let early = self.below(views.len() + 1);
        let mut create = |steps: &mut Vec<Step>, until: usize| {
            while created < until {
                steps.push(Step::Create(created));
                created += 1;
            }
        };
        create(&mut steps, early);
        for (place, table) in tables.iter().enumerate() {
            let rows = self.first_rows(place, table);
            steps.push(rows);
        }
        let mut until = early;
        let mut gone: Option<usize> = None;
        for transaction in 0..TRANSACTIONS {
            until = views.len().min(until.max(views.len() * transaction / (TRANSACTIONS - 3)));
            create(&mut steps, until);
            self.transaction(tables, &mut steps);
            if transaction == TRANSACTIONS / 2 {
                steps.push(Step::Watch);
            }
            match gone {
                Some(view) if self.once_in(2) => {
                    steps.push(Step::Create(view));
                    gone = None;
                }
                Some(_) => {}
                None if until > 0 && self.once_in(4) => {
                    let view = self.below(until);
                    // Only a view that no other view reads is dropped.
                    let is_read = views.iter().any(|other| reads(&other.query, &views[view].name));
                    if !is_read {
                        steps.push(Step::Drop(view));
                        gone = Some(view);
                    }
                }
                None => {}
            }
        }
        steps
    }
}

/// The steps with ALTER TABLE among them, of tables that no view reads at the time and that are not `fixed`.
fn altered(
    steps: Vec<Step>,
    (tables, fixed): (&[Table], &[bool]),
    views: &[View],
    lots: &mut fastrand::Rng,
) -> Vec<Step> {
    const DEFINITIONS: [&str; 3] = ["INT DEFAULT 5", "TEXT", "DECIMAL(12, 2) NOT NULL DEFAULT 1.5"];
    let mut made = Vec::with_capacity(steps.len());
    let mut there = BTreeSet::new();
    let mut is_inside = false;
    // The columns that tables have got, and how many had been added.
    let (mut added, mut names) = (vec![Vec::new(); tables.len()], 0);
    for step in steps {
        match &step {
            Step::Begin => is_inside = true,
            Step::Commit | Step::Rollback => is_inside = false,
            Step::Create(view) => drop(there.insert(*view)),
            Step::Drop(view) => drop(there.remove(view)),
            _ => {}
        }
        made.push(step);
        let place = lots.usize(..tables.len());
        let table = &tables[place];
        let is_free = |view: &usize| !reads(&views[*view].query, &table.name);
        let can_change = !fixed[place] && table.lateness.is_none();
        if is_inside || !can_change || lots.bool() || !there.iter().all(is_free) {
            continue;
        }
        names += 1;
        let new = format!("added{names}");
        let columns: &mut Vec<String> = &mut added[place];
        let last = columns.pop();
        made.push(Step::Alter(
            place,
            match (last, lots.usize(..4)) {
                (Some(last), 0) => Alteration::Drop(last),
                (Some(last), 1 | 2) => {
                    columns.push(new.clone());
                    Alteration::Rename(last, new)
                }
                (last, _) => {
                    columns.extend(last);
                    columns.push(new.clone());
                    Alteration::Add(new, DEFINITIONS[lots.usize(..DEFINITIONS.len())])
                }
            },
        ));
    }
    made
}

/// Makes the last column of a table with lateness a second time, which can be the end of what begins at the first.
fn add_end(table: &mut Table) {
    if let Some((time, _)) = table.lateness
        && time + 1 < table.columns.len()
        && let kind = table.columns[time].kind
        && let Some(last) = table.columns.last_mut()
    {
        last.kind = kind;
    }
}

struct Finder<'a> {
    name: &'a str,
    found: bool,
}

impl Visitor for Finder<'_> {
    fn from(&mut self, from: &From) {
        if let From::Relation(name, _) | From::Windowed(name, ..) | From::Unnested(name, ..) = from
        {
            self.found |= name == self.name;
        }
    }
}

/// Whether a query reads a relation.
pub(crate) fn reads(query: &Query, name: &str) -> bool {
    let mut finder = Finder { name, found: false };
    visit::query(query, &mut finder);
    finder.found
}

/// Whether an expression of a query may fail for a row.
pub(crate) fn may_fail(query: &Query) -> bool {
    crate::query::construct::of(query).contains("error")
}

fn names_now(query: &Query) -> bool {
    crate::query::construct::of(query).contains("now")
}
