//! Running many programs, and counting what they exercise.

use std::collections::BTreeMap;
use std::fmt;

use crate::generate::program;
use crate::own;
use crate::program::file::file;
use crate::program::run::{Fate, Judges, run};
use crate::program::shrink::shrink;
use crate::program::variation::Variation;
use crate::program::{Alteration, Keeping, Program, Step, Write};
use crate::query::{construct, uses};

/// Statistics about pairs of a query and a script of changes.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The number of pairs.
    pub pairs: u64,
    /// Pairs whose view the engine refused.
    pub refused: u64,
    /// Pairs whose view ever held a row.
    pub filled: u64,
    /// Pairs in which an expression failed.
    pub failed: u64,
    /// Pairs that no judge could answer.
    pub unjudged: u64,
    /// Answers compared, by judge: the naive evaluator, SQLite, DataFusion, DuckDB.
    pub looks: [u64; 4],
    /// The number of pairs with each SQL construct.
    pub constructs: BTreeMap<String, u64>,
    /// The reasons for refusals, and how often each occurred.
    pub refusals: BTreeMap<String, u64>,
    /// Programs that were also run with a variation.
    pub varied: u64,
    /// The programs that went wrong, and how.
    pub wrong: Vec<(u64, String)>,
}

/// A program as an SQL file.
pub fn printed(seed: u64, number: u64) -> String {
    file(&program(seed, number), &format!("Program {number}."))
}

/// Shrinks a program that goes wrong; returns it as an SQL file, and the error.
pub fn shrunk(seed: u64, number: u64, judges: Judges) -> Option<(String, String)> {
    let small = shrink(&program(seed, number), judges);
    let (.., what) = run(&small, judges).wrong()?;
    let story = what.lines().next().unwrap_or_default();
    Some((file(&small, story), what))
}

impl Tally {
    /// Runs programs until `each`, which receives the statistics after each program, returns false.
    pub fn run(
        seed: u64,
        programs: impl IntoIterator<Item = u64>,
        judges: Judges,
        mut each: impl FnMut(&Tally) -> bool,
    ) -> Tally {
        let mut tally = Tally::default();
        for number in programs {
            let program = program(seed, number);
            let report = run(&program, judges);
            tally.add(&program, &report.fates);
            if let Some((step, view, what)) = report.wrong() {
                let view = view.map_or(String::new(), |view| program.views[view].sql());
                tally.wrong.push((number, format!("step {step}: {view}\n{what}")));
            } else if judges.variations
                && let Some(variation) = Variation::of(&program)
            {
                tally.varied += 1;
                if let Some(what) = variation.difference(&program, &report) {
                    tally.wrong.push((number, what));
                }
            }
            if !each(&tally) {
                break;
            }
        }
        tally
    }

    /// Counts the constructs of programs without running them.
    pub fn dry(seed: u64, programs: impl IntoIterator<Item = u64>) -> Tally {
        let mut tally = Tally::default();
        for number in programs {
            let program = program(seed, number);
            let fates = vec![Fate::default(); program.views.len()];
            tally.add(&program, &fates);
        }
        tally
    }

    fn add(&mut self, program: &Program, fates: &[Fate]) {
        let script = of_script(program);
        for (view, fate) in program.views.iter().zip(fates) {
            self.pairs += 1;
            if let Some(reason) = &fate.refused {
                self.refused += 1;
                *self.refusals.entry(reason.clone()).or_default() += 1;
                continue;
            }
            self.filled += u64::from(fate.filled);
            self.failed += u64::from(fate.failed);
            for (sum, looks) in self.looks.iter_mut().zip(fate.judged) {
                *sum += u64::from(looks);
            }
            self.unjudged += u64::from(fate.judged.iter().all(|looks| *looks == 0));
            let mut constructs = construct::of(&view.query);
            // Floats are a construct of their own where NaN and -0.0 are among them.
            let has_floats = constructs.contains("type DOUBLE") || constructs.contains("type REAL");
            if program.has_nan() && has_floats {
                constructs.insert("floats: NaN and -0.0".to_owned());
            } else {
                constructs.retain(|name| !name.starts_with(uses::FLOATS));
            }
            constructs.insert(
                match view.keeping {
                    Keeping::Materialized => "materialized view",
                    Keeping::Plain => "plain view",
                    Keeping::Local => "local view",
                }
                .to_owned(),
            );
            if view.sql_with_own().contains(own::DEFINED) {
                constructs.insert("function of SQL".to_owned());
            }
            constructs.extend(script.iter().map(|name| (*name).to_owned()));
            for construct in constructs {
                *self.constructs.entry(construct).or_default() += 1;
            }
        }
    }
}

/// The constructs of a script.
fn of_script(program: &Program) -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut note = |name, is_there: bool| {
        if is_there {
            found.push(name);
        }
    };
    let any = |test: &dyn Fn(&Step) -> bool| program.steps.iter().any(test);
    let keyed = |table: &usize| program.tables[*table].key > 0;
    note("script: insert", any(&|step| matches!(step, Step::Write(Write::Insert(..)))));
    note(
        "script: insert into a keyed table",
        any(&|step| matches!(step, Step::Write(Write::Insert(table, _)) if keyed(table))),
    );
    note(
        "script: insert of existing rows",
        any(&|step| matches!(step, Step::Write(Write::Again(..)))),
    );
    note("script: delete", any(&|step| matches!(step, Step::Write(Write::Delete(..)))));
    note("script: update", any(&|step| matches!(step, Step::Write(Write::Update(..)))));
    note(
        "script: update of a keyed table",
        any(&|step| matches!(step, Step::Write(Write::Update(table, ..)) if keyed(table))),
    );
    note("script: refused statement", any(&|step| matches!(step, Step::Write(Write::Refused(..)))));
    note("script: transaction", any(&|step| *step == Step::Commit));
    note("script: rollback", any(&|step| *step == Step::Rollback));
    note("script: view dropped", any(&|step| matches!(step, Step::Drop(_))));
    let alters = |test: fn(&Alteration) -> bool| {
        any(&|step| matches!(step, Step::Alter(_, alteration) if test(alteration)))
    };
    note("script: column added", alters(|how| matches!(how, Alteration::Add(..))));
    note("script: column renamed", alters(|how| matches!(how, Alteration::Rename(..))));
    note("script: column dropped", alters(|how| matches!(how, Alteration::Drop(..))));
    let first_write = program.steps.iter().position(|step| matches!(step, Step::Write(_)));
    let late = program.steps.iter().rposition(|step| matches!(step, Step::Create(_)));
    note("script: view created midway", late > first_write);
    note("script: append-only table", program.tables.iter().any(|table| table.append_only));
    note("script: late rows", program.tables.iter().any(|table| table.lateness.is_some()));
    found
}

impl fmt::Display for Tally {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |part: u64| 100.0 * part as f64 / self.pairs.max(1) as f64;
        writeln!(to, "{:>8} pairs of a view and a script", self.pairs)?;
        writeln!(to, "{:>7.2}% refused", share(self.refused))?;
        writeln!(to, "{:>7.2}% ever not empty", share(self.filled))?;
        writeln!(to, "{:>7.2}% with rows that failed", share(self.failed))?;
        writeln!(to, "{:>7.2}% without any judge's answer", share(self.unjudged))?;
        let [naive, sqlite, datafusion, duckdb] = self.looks;
        writeln!(
            to,
            "{:>8} answers by the naive evaluator, {sqlite} by SQLite, {datafusion} by DataFusion, {duckdb} by DuckDB",
            naive
        )?;
        writeln!(to, "{:>8} programs also run with a variation", self.varied)?;
        writeln!(to, "{:>8} programs wrong", self.wrong.len())?;
        for (name, count) in &self.constructs {
            writeln!(to, "{count:>8} {name}")?;
        }
        Ok(())
    }
}
