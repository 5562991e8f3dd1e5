//! Comparing views with the answers of the judges.

use std::collections::HashSet;

use alluvium::arrow::array::{AsArray, RecordBatch};

use super::bench::Bench;
use super::{Mode, text};
use crate::answers::compare::{Measure, difference};
use crate::answers::deltas::Watch;
use crate::answers::duckdb;
use crate::answers::evidence::{Answer, Evidence};
use crate::answers::row::{Cell, Row, rows};
use crate::generate::{may_fail, reads};
use crate::naive::{Relation, World};
use crate::program::{Keeping, View};
use crate::query::{Dialect, Value, construct, sql};

/// Views with more rows are not compared with other databases.
const MOST_ROWS: usize = 5_000;

/// A view that is being judged.
#[derive(Clone, Copy)]
struct Case<'a> {
    view: usize,
    definition: &'a View,
    /// Whether the slower judges are consulted too.
    thorough: bool,
    /// Whether an expression of the query can fail.
    may_fail: bool,
    /// Whether the engine reports errors of the view.
    reports_errors: bool,
    /// The number of rows that fail according to the naive evaluator.
    failures: u64,
}

impl Case<'_> {
    fn is_materialized(&self) -> bool {
        self.definition.keeping == Keeping::Materialized
    }

    /// Whether it holds the answer of its query.
    fn is_its_query(&self) -> bool {
        self.definition.lateness.is_none()
    }

    /// Whether rows of the view fail now.
    fn fails(&self) -> bool {
        self.reports_errors || self.failures > 0
    }

    /// The query for a database, if its dialect can express it.
    fn query(&self, dialect: Dialect, now: i64) -> Option<String> {
        sql(&self.definition.query, dialect, now)
    }
}

/// The sums of the changes that the two subscriptions to a view delivered.
struct Sums {
    early: Option<Answer>,
    late: Option<Answer>,
}

impl Bench<'_> {
    /// Compares every view with the judges' answers.
    pub(super) fn judge(&mut self) -> Result<(), String> {
        let is_last = self.is_last_step();
        if !is_last && !matches!(self.mode, Mode::Stepwise) {
            return Ok(());
        }
        self.judged_last = is_last;
        self.settle()?;
        // DataFusion is slow.
        let midway = self.place == self.program.steps.len() * 2 / 3;
        let thorough = is_last || midway && self.program.number.is_multiple_of(3);
        let failing = self.failing()?;
        self.batched = self.program.tables.iter().map(|table| table.name.clone()).collect();
        if thorough {
            self.judge_tables()?;
        }
        self.judge_indexes()?;
        for table in &self.program.tables {
            self.fill_sqlite(&table.name)?;
        }
        for (view, sums) in self.sum_changes() {
            self.judge_view(view, sums, &failing, thorough)?;
        }
        Ok(())
    }

    fn is_last_step(&self) -> bool {
        self.place + 1 == self.program.steps.len()
    }

    /// Compares the tables with the model, and copies them to DataFusion.
    fn judge_tables(&mut self) -> Result<(), String> {
        for table in &self.program.tables {
            let (_, batches) = self.read(&table.name)?;
            let (batches, added) = apart(&batches, table.columns.len())?;
            let mut added = rows(&added).into_iter();
            let first = added.next();
            if added.any(|other| Some(&other) != first.as_ref()) {
                return Err(format!("added columns of table {} differ by rows", table.name));
            }
            let expected: Vec<Row> = cells(self.model.rows(&table.name));
            if let Some(difference) = difference(&expected, &rows(&batches), Measure::Typed) {
                return Err(format!("table {} is wrong: {difference}", table.name));
            }
            if let Some(batch) = &mut self.batch {
                batch.fill(&table.name, batches);
            }
        }
        Ok(())
    }

    fn judge_view(
        &mut self,
        view: usize,
        Sums { early: deltas, late: late_deltas }: Sums,
        failing: &HashSet<String>,
        thorough: bool,
    ) -> Result<(), String> {
        let definition = &self.program.views[view];
        let world = World::new(&self.model.relations, self.now);
        let naive = if self.judges.naive { world.answer(&definition.query).ok() } else { None };
        let case = Case {
            view,
            definition,
            thorough,
            may_fail: may_fail(&definition.query),
            reports_errors: failing.contains(&definition.name),
            failures: world.failures.get(),
        };
        let naive = match self.views.get_mut(&view).and_then(|watched| watched.late_view.as_mut()) {
            Some(late) if matches!(self.mode, Mode::Stepwise) => late.step(naive),
            Some(_) => None,
            None => naive,
        };
        self.report.fates[view].failed |= case.reports_errors;
        let is_local = definition.keeping == Keeping::Local;
        if naive.is_some() && !is_local && case.reports_errors != (case.failures > 0) {
            let what = if case.reports_errors { "errors" } else { "no errors" };
            self.wrong(view, format!("the engine reports {what}, but {} rows fail", case.failures));
        }

        let has_rows = naive.as_ref().is_some_and(|rows| !rows.is_empty());
        let contents =
            if thorough || deltas.is_none() { self.read_view(case, has_rows) } else { None };
        let held = match deltas.as_ref().or(contents.as_ref()) {
            Some(Ok(rows)) => rows.clone(),
            Some(Err(reason)) => {
                self.wrong(view, reason.clone());
                Vec::new()
            }
            None => return Ok(()),
        };
        self.report.fates[view].filled |= !held.is_empty();
        // Without a read, the sum of its changes stands for the contents of a materialized view.
        let summed = || deltas.clone().filter(|_| case.is_materialized());
        let is_small = held.len() < MOST_ROWS;
        let evidence = Evidence {
            cancels: construct::of(&definition.query).contains("sums that cancel"),
            contents: contents.or_else(summed),
            materialized: case.is_materialized(),
            batch: if is_small { self.ask_datafusion(case) } else { None },
            sqlite: if is_small { self.ask_sqlite(case) } else { None },
            naive: naive.as_ref().map(|rows| Ok(cells(rows))),
            duckdb: self.ask_duckdb(case),
            deltas,
            late_deltas,
        };
        self.report.fates[view].judged[0] += u32::from(evidence.naive.is_some());
        let objections = evidence.objections();
        if !objections.is_empty() {
            self.wrong(view, objections.join("\n"));
        }
        self.judge_sibling(view, &held);
        self.report.judged[view] = naive.as_deref().map(cells);
        self.set_contents(definition, naive, &held);
        self.report.contents[view] = Some(held);
        self.fill_sqlite(&definition.name)
    }

    /// The sums of the changes that were delivered for each view.
    fn sum_changes(&mut self) -> Vec<(usize, Sums)> {
        let (epoch, is_last) = (self.epoch, self.is_last_step());
        let sum = |watch: &mut Watch| watch.catch_up(epoch).map(|()| watch.sum.rows());
        let mut sums = Vec::with_capacity(self.views.len());
        for (&view, watched) in &mut self.views {
            let early = watched.early.as_mut().map(sum);
            sums.push((view, Sums { early, late: watched.late.as_mut().map(sum) }));
            if is_last {
                let changes = watched.early.as_ref().map(|watch| watch.sum.log().to_vec());
                self.report.changes[view] = changes.unwrap_or_default();
            }
        }
        sums
    }

    /// Reads a view, where the result can be compared with others. `has_rows` says that the naive answer has.
    fn read_view(&mut self, case: Case<'_>, has_rows: bool) -> Option<Answer> {
        let is_materialized = case.is_materialized();
        // A view that is not materialized is evaluated by the query that reads it. That fails if one of its rows does, and, as
        // in PostgreSQL, if a constant does, whether there are rows or not.
        let can_read = is_materialized || !case.may_fail || has_rows && !case.fails();
        if !can_read || !is_materialized && !self.is_deterministic(case.view) {
            return None;
        }
        let name = &case.definition.name;
        let found = self.read(name);
        if let (Some(batch), Ok((_, batches))) = (&mut self.batch, &found) {
            self.batched.insert(name.clone());
            batch.fill(name, batches.clone());
        }
        // DataFusion evaluates that query, and does not support or plan all of them.
        let unsupported = !is_materialized && found.as_ref().is_err_and(|error| contradicts(error));
        (!unsupported).then(|| found.map(|(_, batches)| rows(&batches)))
    }

    /// Whether all views that a view reads pass a test.
    fn reads_only(&self, definition: &View, test: impl Fn(&str) -> bool) -> bool {
        let mut read =
            self.program.views.iter().filter(|other| reads(&definition.query, &other.name));
        read.all(|other| test(&other.name))
    }

    /// Whether a query names floats, and NaN or -0.0 may be among them: SQLite has no NaN, and DataFusion tells zeros apart.
    fn has_special_floats(&self, definition: &View) -> bool {
        let constructs = construct::of(&definition.query);
        let names = constructs.contains("type DOUBLE") || constructs.contains("type REAL");
        let is_special = |relation: &Relation| match &relation.rows {
            Some(rows) => rows.iter().flatten().any(Value::is_special),
            None => self.program.has_nan(),
        };
        let mut relations = self.model.relations.iter();
        names
            && relations
                .any(|(name, relation)| is_special(relation) && reads(&definition.query, name))
    }

    fn ask_datafusion(&mut self, case: Case<'_>) -> Option<Answer> {
        let batch = self.batch.as_ref()?;
        let has_inputs = || self.reads_only(case.definition, |name| self.batched.contains(name));
        if !case.thorough || case.fails() || !case.is_its_query() || !has_inputs() {
            return None;
        }
        if self.has_special_floats(case.definition) {
            return None;
        }
        let query = case.query(Dialect::DataFusion, self.now)?;
        let answer = batch.ask(&query);
        // DataFusion also evaluates, and fails in, expressions whose values are not needed.
        if answer.as_ref().is_err_and(|error| case.may_fail || gives_up(error)) {
            return None;
        }
        self.report.fates[case.view].judged[2] += 1;
        Some(answer.map_err(|error| format!("DataFusion: {error}\n{query}")))
    }

    fn ask_sqlite(&mut self, case: Case<'_>) -> Option<Answer> {
        let sqlite = self.sqlite.as_ref()?;
        let relations = &self.model.relations;
        let is_known =
            |name: &str| relations.get(name).is_some_and(|relation| relation.rows.is_some());
        let can_fail = case.fails() || case.may_fail;
        if can_fail || !case.is_its_query() || !self.reads_only(case.definition, is_known) {
            return None;
        }
        if self.has_special_floats(case.definition) {
            return None;
        }
        let query = case.query(Dialect::Sqlite, self.now)?;
        self.report.fates[case.view].judged[1] += 1;
        Some(sqlite.ask(&query).map_err(|error| format!("SQLite: {error}\n{query}")))
    }

    fn ask_duckdb(&mut self, case: Case<'_>) -> Option<Answer> {
        let can_fail = case.fails() || case.may_fail;
        if !self.judges.duckdb || !case.thorough || can_fail || !case.is_its_query() {
            return None;
        }
        let query = case.query(Dialect::DuckDb, self.now)?;
        let answer = duckdb::ask(&self.model.relations, &query);
        self.report.fates[case.view].judged[3] += u32::from(answer.is_some());
        answer
    }

    /// Sets the rows over which views that read this one are judged: the naive answer, or else what it holds.
    fn set_contents(&mut self, definition: &View, naive: Option<Vec<Vec<Value>>>, held: &[Row]) {
        let columns = definition.query.columns();
        let rows = naive.or_else(|| {
            let of_row = |row: &Row| {
                let cells = row.iter().zip(&columns);
                cells.map(|(cell, (_, kind))| Value::of_cell(cell, *kind)).collect()
            };
            held.iter().map(of_row).collect::<Option<Vec<_>>>()
        });
        if let Some(relation) = self.model.relations.get_mut(&definition.name) {
            relation.rows = rows;
        }
    }

    /// Whether evaluating a view's query in DataFusion, as reading a view that is not materialized does, must give
    /// what the view holds: no aggregate depends on the order of its input, here or in the views it reads.
    fn is_deterministic(&self, view: usize) -> bool {
        let query = &self.program.views[view].query;
        let inner = self.program.views.iter().enumerate();
        let mut inner = inner.filter(|(_, other)| reads(query, &other.name));
        !construct::of(query).contains("in no order")
            && inner.all(|(place, other)| {
                other.keeping == Keeping::Materialized || self.is_deterministic(place)
            })
    }

    /// Records an error of a view, unless there is an earlier one.
    pub(super) fn wrong(&mut self, view: usize, what: String) {
        let place = self.place;
        self.report.fates[view].wrong.get_or_insert((place, what));
    }

    /// The names of the views for which the engine reports errors.
    fn failing(&mut self) -> Result<HashSet<String>, String> {
        let mut created = self.views.keys();
        if !created.any(|view| may_fail(&self.program.views[*view].query)) {
            return Ok(HashSet::new());
        }
        let batches =
            self.engine.query("SELECT DISTINCT view FROM alluvium.errors").map_err(text)?;
        let names = batches.iter().flat_map(|batch| {
            let names = batch.column(0).as_string::<i32>().iter().flatten().map(str::to_owned);
            names.collect::<Vec<_>>()
        });
        Ok(names.collect())
    }
}

/// Whether DataFusion contradicted itself while planning, or does not support a query.
fn contradicts(error: &str) -> bool {
    let known = [
        "SanityCheckPlan",
        "does not satisfy order requirements",
        "a bug in DataFusion's code",
        "This feature is not implemented",
        "Conflicting ordering requirements in aggregate functions",
    ];
    known.iter().any(|known| error.contains(known))
}

/// Whether DataFusion contradicted itself, or confused columns, which the engine prevents when it plans.
fn gives_up(error: &str) -> bool {
    contradicts(error)
        || error.contains("which would be ambiguous")
        || error.contains("Schema contains duplicate")
}

pub(super) fn cells(rows: &[Vec<Value>]) -> Vec<Row> {
    rows.iter().map(|row| row.iter().map(Value::cell).collect::<Vec<Cell>>()).collect()
}

/// The first columns of some rows, and those that ALTER TABLE has added, which have their defaults.
fn apart(
    batches: &[RecordBatch],
    columns: usize,
) -> Result<(Vec<RecordBatch>, Vec<RecordBatch>), String> {
    let split = batches.iter().map(|batch| {
        let (own, added): (Vec<_>, Vec<_>) =
            (0..batch.num_columns()).partition(|column| *column < columns);
        Ok((batch.project(&own).map_err(text)?, batch.project(&added).map_err(text)?))
    });
    split.collect::<Result<Vec<_>, String>>().map(|split| split.into_iter().unzip())
}
