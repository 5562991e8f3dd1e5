//! One file: its tables in an engine and in DataFusion, and its queries as views.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use alluvium::arrow::array::RecordBatch;
use alluvium::arrow::datatypes::SchemaRef;
use alluvium::{Engine, RelationKind, Session};
use alluvium_sql::statement::{StatementKind, parse};
use fastrand::Rng;
use sqllogictest::{DefaultColumnType, Record, parse_file};
use sqlparser::ast::{Expr, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, Statement, Value};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

use super::deviations::deviation;
use super::report::{Judged, Report, Verdict};
use super::tables::{Table, change};
use crate::answers::batch::Batch;
use crate::answers::compare::{Measure, difference};
use crate::answers::contents::contents;
use crate::answers::row::{Row, line, rows};
use crate::answers::words::in_words_of_others;

/// After how many transactions views are compared.
const STEPS: usize = 3;

/// How many views there are at most at once.
const TOGETHER: usize = 50;

/// An engine and DataFusion with the tables of a file.
pub(super) struct File {
    engine: Engine,
    session: Session,
    batch: Batch,
    /// The tables that DataFusion has.
    tables: BTreeSet<String>,
    /// The plain views that DataFusion has.
    views: BTreeSet<String>,
    rng: Rng,
    /// The chance of a row to be in its table after a transaction.
    presence: f64,
    /// Queries that are not judged yet: where they are, and what they say.
    waiting: Vec<(String, String)>,
    report: Report,
}

/// A view that is judged.
struct Candidate {
    name: String,
    judged: Judged,
}

impl File {
    pub(super) fn new(seed: u64) -> Self {
        Self::with(Batch::new(), seed, 0.5)
    }

    /// For queries that join many tables, and need most of the rows of each to find some.
    pub(super) fn with_many_joins(seed: u64, presence: f64) -> Self {
        Self::with(Batch::with_many_joins(), seed, presence)
    }

    fn with(batch: Batch, seed: u64, presence: f64) -> Self {
        let engine = Engine::builder().workers(2).open().expect("an engine in memory opens");
        Self {
            session: engine.session(),
            engine,
            batch,
            tables: BTreeSet::new(),
            views: BTreeSet::new(),
            rng: Rng::with_seed(seed),
            presence,
            waiting: Vec::new(),
            report: Report::default(),
        }
    }

    /// Judges all queries of the file.
    pub(super) fn run(mut self, path: &Path, name: &Path) -> Report {
        let records = match parse_file::<DefaultColumnType>(path) {
            Ok(records) => records,
            Err(error) => {
                eprintln!("{}: {error}", name.display());
                return self.report;
            }
        };
        for record in records {
            match record {
                Record::Statement { sql, .. } => {
                    self.judge();
                    self.follow(&sql);
                }
                Record::Query { loc, sql, .. } => {
                    if is_query(&sql) {
                        self.ask(format!("{}:{}", name.display(), loc.line()), &sql);
                    } else {
                        self.judge();
                        self.follow(&sql);
                    }
                }
                _ => {}
            }
        }
        self.finish()
    }

    /// Judges a query, sooner or later.
    pub(super) fn ask(&mut self, place: String, query: &str) {
        self.waiting.push((place, query.to_owned()));
        if self.waiting.len() == TOGETHER {
            self.judge();
        }
    }

    /// The verdicts on all queries.
    pub(super) fn finish(mut self) -> Report {
        self.judge();
        self.report
    }

    /// Judges a query with a limit, without leaving open which of equal rows come first: they come in the order of all
    /// columns.
    pub(super) fn ask_in_full_order(&mut self, place: String, query: &str) {
        let ordered = self.batch.width(query).ok().and_then(|width| in_full_order(query, width));
        // DataFusion may fail where a column and its number are both in the order.
        let ordered = ordered.filter(|ordered| self.batch.ask(ordered).is_ok());
        self.ask(place, ordered.as_deref().unwrap_or(query));
    }

    /// Gives a table its rows.
    pub(super) fn fill(&self, table: &str, rows: impl FnOnce(&SchemaRef) -> RecordBatch) {
        let (schema, _) = contents(&self.engine, table).expect("the table was made");
        let mut transaction = self.engine.begin().expect("no other transaction is open");
        transaction.upsert(table, rows(&schema)).expect("the rows are the table's");
        transaction.commit().expect("a transaction in memory is committed");
    }

    /// Runs a statement, and makes what it has made in DataFusion, too. A statement that the engine refuses is run nowhere.
    pub(super) fn follow(&mut self, sql: &str) {
        if self.session.execute(sql).is_err() {
            return;
        }
        let Ok(relations) = self.engine.relations() else { return };
        let is_there = |name: &String| relations.iter().any(|relation| relation.name == *name);
        for gone in self.tables.extract_if(.., |name| !is_there(name)) {
            let _ = self.batch.drop(&gone);
        }
        for gone in self.views.extract_if(.., |name| !is_there(name)) {
            let _ = self.batch.drop(&gone);
        }
        for relation in relations.iter().filter(|relation| relation.kind == RelationKind::Table) {
            if self.tables.contains(&relation.name) {
                continue;
            }
            let Ok((schema, _)) = contents(&self.engine, &relation.name) else { continue };
            if self.batch.create_table(&relation.name, schema).is_ok() {
                self.tables.insert(relation.name.clone());
            }
        }
        for statement in parse(sql).flatten() {
            if let StatementKind::CreateView(view) = statement.kind {
                let query = in_words_of_others(&view.query);
                if self.batch.create_view(&view.name, &view.columns, &query).is_ok() {
                    self.views.insert(view.name);
                }
            }
        }
    }

    /// Whether DataFusion finds a row for a query.
    pub(super) fn finds_rows(&mut self, query: &str) -> bool {
        let tables = self.read_tables();
        self.answer(query, &tables).flatten().is_some_and(|rows| !rows.is_empty())
    }

    /// The tables as they are, but for large ones: of these DataFusion has no rows, and queries that read them are not judged.
    fn read_tables(&self) -> Vec<Table> {
        let read = |name: &String| Table::read(name, &self.engine).ok().flatten();
        self.tables.iter().filter_map(read).collect()
    }

    /// Judges the queries that wait.
    fn judge(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return;
        }
        let mut tables = self.read_tables();
        let mut candidates: Vec<Candidate> = waiting
            .into_iter()
            .enumerate()
            .map(|(number, (place, query))| {
                let name = format!("judged_{number}");
                let verdict = self.admit(&name, &query, &tables);
                Candidate { name, judged: Judged { place, query, verdict, rows: 0 } }
            })
            .collect();
        for step in 0..=STEPS {
            let changed = match step {
                0 => Ok(()),
                STEPS => change(&mut tables, &self.engine, &mut self.rng, 1.0),
                _ => change(&mut tables, &self.engine, &mut self.rng, self.presence),
            };
            for Candidate { name, judged } in &mut candidates {
                if matches!(judged.verdict, Verdict::Passed | Verdict::Deviates(_)) {
                    match &changed {
                        Ok(()) => self.look(name, judged, &tables),
                        Err(error) => judged.verdict = Verdict::Wrong(error.clone()),
                    }
                }
            }
        }
        for Candidate { name, judged } in candidates {
            let _ = self.session.execute(&format!("DROP VIEW IF EXISTS {name}"));
            self.report.add(judged);
        }
    }

    /// Makes a view of a query, if DataFusion has an answer to it; [`Verdict::Passed`] if it is there.
    fn admit(&mut self, view: &str, query: &str, tables: &[Table]) -> Verdict {
        let words: Vec<String> = query
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .map(str::to_lowercase)
            .collect();
        let reads = |name: &str| words.contains(&name.to_lowercase());
        let is_left_out = |name: &&String| tables.iter().all(|table| table.name() != **name);
        let reads_one = self.tables.iter().chain(&self.views).any(|name| reads(name));
        if !reads_one || self.tables.iter().filter(is_left_out).any(|name| reads(name)) {
            return Verdict::NotJudged;
        }
        match self.answer(query, tables) {
            Some(Some(_)) => {}
            Some(None) => return Verdict::Ambiguous,
            None => return Verdict::NotJudged,
        }
        let mut create = |columns: &str| {
            self.session.execute(&format!("CREATE MATERIALIZED VIEW {view}{columns} AS {query}"))
        };
        let named = create("");
        let created = named.or_else(|error| match self.batch.width(query) {
            // A view's columns need names of their own.
            Ok(width) if error.to_string().contains("appears twice") => {
                let names: Vec<_> = (1..=width).map(|number| format!("c{number}")).collect();
                create(&format!(" ({})", names.join(", ")))
            }
            _ => Err(error),
        });
        match created {
            Ok(_) => Verdict::Passed,
            Err(error) => Verdict::Refused(error.to_string()),
        }
    }

    /// Compares a view with DataFusion's answer.
    fn look(&mut self, view: &str, judged: &mut Judged, tables: &[Table]) {
        match self.equal(view, &judged.query, tables) {
            Ok(rows) => judged.rows = judged.rows.max(rows),
            Err(Verdict::Wrong(difference)) => {
                judged.verdict = self.explained(view, judged, difference);
            }
            Err(verdict) => judged.verdict = verdict,
        }
    }

    /// The verdict on a view that differs from DataFusion's answer.
    fn explained(&self, view: &str, judged: &Judged, found: String) -> Verdict {
        let query = judged.query.to_lowercase();
        if ["now()", "current_timestamp", "current_date"].iter().any(|now| query.contains(now)) {
            // DataFusion reads the clock later than the view.
            return Verdict::Ambiguous;
        }
        let Some(known) = deviation(&judged.place, &judged.query) else {
            return Verdict::Wrong(found);
        };
        let is_own = match (self.engine.query(&judged.query), contents(&self.engine, view)) {
            (Ok(own), Ok((_, held))) => {
                difference(&rows(&own), &rows(&held), Measure::Rough).is_none()
            }
            _ => false,
        };
        match is_own || !known.is_of_queries {
            true => Verdict::Deviates(known.reason),
            false => Verdict::Wrong(found),
        }
    }

    /// The number of rows of a view that is equal to DataFusion's answer.
    fn equal(&mut self, view: &str, query: &str, tables: &[Table]) -> Result<usize, Verdict> {
        let errors = format!(
            "SELECT expression || ': ' || message FROM alluvium.errors WHERE view = '{view}' LIMIT 1"
        );
        if let Some(error) = self.engine.query(&errors).ok().and_then(|error| rows(&error).pop()) {
            return Err(Verdict::Failing(line(&error)));
        }
        let expected = match self.answer(query, tables) {
            Some(Some(rows)) => rows,
            Some(None) => return Err(Verdict::Ambiguous),
            // It fails for some row, and the view may leave that out.
            None => return Ok(0),
        };
        let (_, batches) = contents(&self.engine, view).map_err(Verdict::Wrong)?;
        let actual = rows(&batches);
        match difference(&expected, &actual, Measure::Short) {
            None => Ok(actual.len()),
            Some(difference) => Err(Verdict::Wrong(difference)),
        }
    }

    /// DataFusion's answer, if it has one; within, `None` if it depends on the order of rows.
    fn answer(&mut self, query: &str, tables: &[Table]) -> Option<Option<Vec<Row>>> {
        let mut answers = [false, true].map(|is_backwards| {
            tables.iter().for_each(|table| table.fill(&mut self.batch, is_backwards));
            // It may panic.
            let answer = catch_unwind(AssertUnwindSafe(|| self.batch.ask(query)));
            answer.ok().and_then(Result::ok)
        });
        let (forwards, backwards) = (answers[0].take()?, answers[1].take()?);
        let is_clear = difference(&forwards, &backwards, Measure::Rough).is_none();
        Some(is_clear.then_some(forwards))
    }
}

/// Whether a text is a query, rather than EXPLAIN or another statement with rows.
fn is_query(sql: &str) -> bool {
    let first = sql.trim_start().split(|letter: char| !letter.is_alphanumeric()).next();
    sql.trim_start().starts_with('(')
        || first.is_some_and(|word| {
            ["select", "with", "values"].iter().any(|known| word.eq_ignore_ascii_case(known))
        })
}

/// A query with a limit, ordered by all of its columns last; `None` if it has no limit or is none.
fn in_full_order(query: &str, width: usize) -> Option<String> {
    let mut statements = Parser::parse_sql(&GenericDialect {}, query).ok()?;
    let Some(Statement::Query(query)) = statements.first_mut() else { return None };
    query.limit_clause.as_ref()?;
    let mut order = match query.order_by.take().map(|order| order.kind) {
        Some(OrderByKind::Expressions(order)) => order,
        _ => Vec::new(),
    };
    order.extend((1..=width).map(|column| OrderByExpr {
        expr: Expr::value(Value::Number(column.to_string(), false)),
        options: OrderByOptions { asc: None, nulls_first: None },
        with_fill: None,
    }));
    query.order_by = Some(OrderBy { kind: OrderByKind::Expressions(order), interpolate: None });
    Some(query.to_string())
}

#[test]
fn only_queries_with_a_limit_are_ordered_by_all_columns() {
    let ordered = |query| in_full_order(query, 2);
    assert_eq!(ordered("SELECT a, b FROM t ORDER BY b"), None);
    assert_eq!(
        ordered("SELECT a, b FROM t ORDER BY b DESC LIMIT 3").as_deref(),
        Some("SELECT a, b FROM t ORDER BY b DESC, 1, 2 LIMIT 3")
    );
    assert_eq!(
        ordered("SELECT a, b FROM t LIMIT 3").as_deref(),
        Some("SELECT a, b FROM t ORDER BY 1, 2 LIMIT 3")
    );
}
