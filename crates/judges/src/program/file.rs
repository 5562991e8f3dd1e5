//! Writing a program as an SQL file for the suite.

use std::fmt::Write as _;

use super::model::Model;
use super::run::{Judges, run};
use super::{Keeping, Program, Step, View, Write};
use crate::answers::row::line;
use crate::query::construct;
use crate::query::{Dialect, Kind, sql};

/// The program as a file, below a line that describes it. The expected contents of views are the judges' answers;
/// where there is none, they are the engine's, which may be wrong.
pub(crate) fn file(program: &Program, story: &str) -> String {
    let mut text = format!("# {story}\n");
    let nested = |kind: Kind| kind.is_nested();
    let made: Vec<&View> = program
        .views
        .iter()
        .enumerate()
        .filter(|(view, _)| program.steps.contains(&Step::Create(*view)))
        .map(|(_, view)| view)
        .collect();
    let used: Vec<usize> = (0..program.tables.len())
        .filter(|table| {
            let name = &program.tables[*table].name;
            let writes = |step: &Step| match step {
                Step::Write(
                    Write::Insert(to, _)
                    | Write::Delete(to, _)
                    | Write::Update(to, ..)
                    | Write::Again(to, _)
                    | Write::Refused(to, _),
                ) => to == table,
                _ => false,
            };
            program.steps.iter().any(writes)
                || made.iter().any(|view| crate::generate::reads(&view.query, name))
        })
        .collect();
    let without_sqlite = used
        .iter()
        .any(|table| program.tables[*table].columns.iter().any(|column| nested(column.kind)))
        || made
            .iter()
            .any(|view| view.lateness.is_some() || construct::of(&view.query).contains("error"));
    if without_sqlite {
        text += "# sqlite: none, it has no lists, structs and maps, and no errors in rows.\n";
    }
    for table in used {
        let _ = writeln!(text, "\nstatement ok\n{}", program.tables[table].sql());
        for index in program.indexes.iter().filter(|index| index.table == table) {
            let _ = writeln!(text, "\nstatement ok\n{}", program.index_sql(index));
        }
    }
    let (mut model, mut before) = (Model::of(&program.tables), None);
    for step in &program.steps {
        let is_refused = matches!(step, Step::Write(write) if model.refuses(program, write));
        match step {
            Step::Begin => before = Some(model.clone()),
            Step::Commit => before = None,
            Step::Rollback => model = before.take().unwrap_or(model),
            // A write that the model cannot execute, no judge can.
            Step::Write(write) if !is_refused => model.write(program, write).unwrap_or_default(),
            _ => {}
        }
        if before.is_none() {
            model.commit(&program.tables);
        }
        let Some(mut statement) = program.statement(step) else { continue };
        text += "\n";
        if let Step::Create(view) = step {
            let View { query, lateness, .. } = &program.views[*view];
            if let Some(lateness) = program.views[*view].lateness_sql() {
                let _ = writeln!(text, "statement ok\n{lateness}\n");
                statement = program.views[*view].sql();
            }
            if !without_sqlite
                && sql(query, Dialect::Sqlite, 0).as_deref()
                    != sql(query, Dialect::Alluvium, 0).as_deref()
            {
                text += "skipif sqlite\n";
            }
            if lateness.is_some() || sql(query, Dialect::DataFusion, 0).is_none() {
                text += "skipif datafusion\n";
            }
        }
        let word = if is_refused { "error" } else { "ok" };
        let _ = writeln!(text, "statement {word}\n{statement}");
    }
    // The naive evaluator's answer is the expectation, if there is one.
    let judges =
        Judges { datafusion: false, sqlite: false, naive: true, duckdb: false, variations: false };
    let report = run(program, judges);
    for (view, definition) in program.views.iter().enumerate() {
        if definition.keeping == Keeping::Local || !program.steps.contains(&Step::Create(view)) {
            continue;
        }
        let Some(rows) = report.judged.get(view).and_then(Option::as_ref) else { continue };
        let letters: String =
            definition.query.columns().iter().map(|(_, kind)| letter(*kind)).collect();
        let _ =
            writeln!(text, "\nquery {letters} rowsort\nSELECT * FROM {}\n----", definition.name);
        let mut lines: Vec<String> = rows.iter().map(line).collect();
        lines.sort();
        lines.iter().for_each(|line| {
            let _ = writeln!(text, "{line}");
        });
    }
    text
}

fn letter(kind: Kind) -> char {
    match kind {
        Kind::Boolean => 'B',
        kind if kind.is_whole() => 'I',
        Kind::Float | Kind::Real => 'R',
        Kind::Decimal => 'N',
        Kind::Text => 'T',
        Kind::Date => 'D',
        Kind::Moment | Kind::Zoned => 'P',
        _ => '?',
    }
}
