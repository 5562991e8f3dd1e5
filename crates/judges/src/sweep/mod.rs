//! The sweep: every function and operator over the edges of every type, beside DuckDB and Postgres.
//!
//! - [`kind`]: kinds of arguments, and the values at their edges; [`form`]: the expressions of `forms.txt` over them;
//! - [`own`]: the engine's answers, as a constant, in a query and in a view, which must agree;
//! - [`duckdb`] and [`postgres`]: the others, asked at once, or read from a [`record`];
//! - [`answer`]: answers that can be compared; [`deviations`]: where the engine differs on purpose;
//! - [`report`]: the findings.

mod answer;
mod deviations;
mod duckdb;
mod form;
mod kind;
mod own;
mod postgres;
mod record;
mod report;

use std::path::Path;

use alluvium::Engine;

pub use self::record::Others;
pub use self::report::{Counts, Report};

use self::answer::Answer;
use self::deviations::{Answers, deviation};
use self::form::{Form, forms, rows};
use self::kind::{Dialect, Kind};
use self::record::{Asked, Recorded, ask, read, write};
use self::report::Verdict;

/// The expressions of a sweep.
pub struct Sweep {
    /// Forms over one list of kinds, with the rows that they are asked with.
    groups: Vec<Group>,
}

struct Group {
    kinds: Vec<&'static Kind>,
    rows: Vec<Vec<&'static str>>,
    forms: Vec<Form>,
}

impl Sweep {
    /// At most `rows` combinations of values for each signature, of functions and operators whose names begin with `only`.
    ///
    /// Fails if the list of forms cannot be read.
    pub fn new(limit: usize, only: &str) -> Result<Self, String> {
        let mut groups: Vec<Group> = Vec::new();
        for form in forms()?.into_iter().filter(|form| form.name.starts_with(only)) {
            let names =
                |kinds: &[&'static Kind]| kinds.iter().map(|kind| kind.name).collect::<Vec<_>>();
            match groups.iter_mut().find(|group| names(&group.kinds) == names(&form.kinds)) {
                Some(group) => group.forms.push(form),
                None => groups.push(Group {
                    kinds: form.kinds.clone(),
                    rows: rows(&form.kinds, limit),
                    forms: vec![form],
                }),
            }
        }
        Ok(Self { groups })
    }

    /// Asks DuckDB and Postgres for everything.
    fn ask(&self, others: &Others) -> Result<Recorded, String> {
        let mut expressions = Vec::new();
        for group in &self.groups {
            for form in &group.forms {
                expressions.extend(group.rows.iter().filter_map(|row| {
                    let own = form.constant(Dialect::Own, row)?;
                    let others = [Dialect::DuckDb, Dialect::Postgres];
                    let [duckdb, postgres] = others.map(|dialect| form.constant(dialect, row));
                    Some(Asked { own, duckdb, postgres })
                }));
            }
        }
        ask(others, &expressions)
    }

    /// Asks DuckDB and Postgres, and writes their answers to a file.
    pub fn record(&self, others: &Others, path: &Path) -> Result<(), String> {
        write(path, &self.ask(others)?)
    }

    /// Compares the engine with DuckDB and Postgres.
    pub fn run(&self, others: &Others) -> Result<Report, String> {
        self.judge(&self.ask(others)?)
    }

    /// Compares the engine with answers that were recorded.
    pub fn replay(&self, text: &str) -> Result<Report, String> {
        self.judge(&read(text)?)
    }

    fn judge(&self, recorded: &Recorded) -> Result<Report, String> {
        let engine =
            Engine::builder().workers(1).open_in_memory().map_err(|error| error.to_string())?;
        let mut report = Report::default();
        for group in &self.groups {
            let signature: Vec<_> = group.kinds.iter().map(|kind| kind.name).collect();
            let signature = signature.join(", ");
            let forms: Vec<&Form> = group.forms.iter().collect();
            let answers = match own::answers(&engine, &group.kinds, &group.rows, &forms) {
                Ok(answers) => answers,
                Err(why) => {
                    report.add("INSERT", &signature, &why, Verdict::Wrong(String::new()));
                    engine
                        .execute("DROP TABLE IF EXISTS s CASCADE")
                        .map_err(|error| error.to_string())?;
                    continue;
                }
            };
            for (form, own) in group.forms.iter().zip(answers) {
                let mut contradictions = own.contradictions.into_iter();
                if let Some((row, what)) = contradictions.next() {
                    let more = contradictions.count();
                    let what = format!("contradicts itself: {what}; {more} more");
                    let expression =
                        form.constant(Dialect::Own, &group.rows[row]).unwrap_or_default();
                    report.add(&form.name, &signature, &expression, Verdict::Wrong(what));
                }
                for (row, own) in group.rows.iter().zip(&own.answers) {
                    let expression = form.constant(Dialect::Own, row).unwrap_or_default();
                    let others = recorded
                        .get(&expression)
                        .ok_or_else(|| format!("no answer is recorded to {expression}"))?;
                    let [duckdb, postgres] = [Answer::read(&others[0]), Answer::read(&others[1])];
                    let (duckdb, postgres) = (duckdb.as_ref(), postgres.as_ref());
                    let answers = Answers { own, duckdb, postgres, values: row };
                    report.add(&form.name, &signature, &expression, verdict(form, &answers));
                }
            }
        }
        Ok(report)
    }
}

/// DuckDB judges what it takes, Postgres what DuckDB does not take.
fn verdict(form: &Form, answers: &Answers<'_>) -> Verdict {
    let takes =
        |other: Option<&Answer>| other.is_some_and(|answer| !matches!(answer, Answer::Refused(_)));
    let (in_duckdb, in_postgres) = (takes(answers.duckdb), takes(answers.postgres));
    let judge = match (in_duckdb, in_postgres) {
        (true, _) => answers.duckdb,
        (false, true) => answers.postgres,
        (false, false) => return Verdict::Alone,
    };
    let Some(judge) = judge else { return Verdict::Alone };
    if let Answer::Refused(why) = answers.own {
        return match judge {
            Answer::Value(_) => Verdict::Refused(why.clone()),
            _ => Verdict::Agrees,
        };
    }
    let is_rounded = form.name.ends_with("epoch") || form.name.contains("_cosine_");
    if answers.own.is_same(judge) || is_rounded && answers.own.is_close(judge) {
        return Verdict::Agrees;
    }
    match deviation(form, answers) {
        Some(deviation) => Verdict::Deviates(deviation.line),
        None => {
            let said = |other: Option<&Answer>| other.map_or("-".to_owned(), ToString::to_string);
            let (duckdb, postgres) = (said(answers.duckdb), said(answers.postgres));
            Verdict::Wrong(format!("{}; DuckDB: {duckdb}; Postgres: {postgres}", answers.own))
        }
    }
}
