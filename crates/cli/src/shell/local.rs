//! Statements on an engine of this process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use alluvium::arrow::error::ArrowError;
use alluvium::{Engine, Outcome, RelationInfo, Session, Statement, Subscription};
use futures::StreamExt;

use super::backend::{Answer, Around, Backend, Changes, Failure, Listed, is_meant};
use super::changes::{change_rows, changes_schema};
use super::errors::ErrorRows;
use super::stop::Stop;
use super::wake::SourcesEnd;
use crate::diagnostic::Refused;

/// An engine of this process, and a session.
pub(crate) struct Local {
    pub(super) engine: Engine,
    session: Session,
    /// The number of refused rows already reported, by table and input.
    reported: BTreeMap<(String, PathBuf), u64>,
    /// The errors of views that were reported.
    errors: ErrorRows,
}

impl Local {
    /// A new session of an engine.
    pub(crate) fn new(engine: Engine) -> Self {
        let mut session = engine.session();
        session.set_awaits_sources(true);
        Self { engine, session, reported: BTreeMap::new(), errors: ErrorRows::default() }
    }
}

impl Backend for Local {
    fn set_base(&mut self, base: &Path) {
        self.session.set_base(base);
    }

    fn at_prompt(&mut self) {
        // The user can repeat a query.
        self.session.set_awaits_sources(false);
    }

    fn run(
        &mut self,
        statement: &Statement,
        around: &mut dyn Around,
    ) -> Result<Answer<'_>, Failure> {
        if !around.before(&mut self.session, statement)? {
            return Ok(answer(Outcome::Done));
        }
        let outcome = self.session.run(statement)?;
        around.after(statement, &outcome)?;
        Ok(answer(outcome))
    }

    /// As COPY or CREATE TABLE does.
    fn import(&mut self, path: &str, table: &str) -> Result<Vec<Answer<'_>>, Failure> {
        let relations = self.engine.relations()?;
        let statement = match relations.iter().any(|relation| is_meant(table, &relation.name)) {
            true => "COPY",
            false => "CREATE TABLE",
        };
        let sql = format!("{statement} {table} FROM '{}'", path.replace('\'', "''"));
        self.session.set_base("");
        Ok(self.session.execute(&sql)?.into_iter().map(answer).collect())
    }

    fn relations(&mut self) -> Result<Vec<Listed>, Failure> {
        Ok(self.engine.relations()?.into_iter().map(listed).collect())
    }

    fn names(&self) -> Box<dyn Fn() -> Vec<Listed>> {
        let engine = self.engine.clone();
        // An engine that has stopped has no names; the next statement reports why.
        Box::new(move || engine.relations().unwrap_or_default().into_iter().map(listed).collect())
    }

    fn functions(&mut self) -> Vec<String> {
        self.engine.functions().into_iter().map(|function| function.sql).collect()
    }

    fn refused(&mut self) -> Refused {
        let mut refused = Refused::default();
        for source in self.engine.progress().sources {
            let reported = self.reported.entry((source.table, source.path)).or_default();
            let before = std::mem::replace(reported, source.refused);
            let new = source.messages.into_iter().skip(before as usize).collect();
            refused.add(source.refused.saturating_sub(before), new);
        }
        refused
    }

    fn gained_errors(&mut self, waits: bool) -> Result<Vec<(String, i64, String)>, Failure> {
        if waits {
            self.settle()?;
        }
        Ok(self.errors.gained(&self.engine)?)
    }

    fn sources_end(&self) -> Result<Option<SourcesEnd>, Stop> {
        SourcesEnd::watch(&self.engine).map(Some)
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(self.engine.wait(self.engine.progress().committed)?)
    }
}

fn answer<'a>(outcome: Outcome) -> Answer<'a> {
    match outcome {
        Outcome::Rows(rows) => {
            let schema = rows.schema().clone();
            Answer::Rows(schema, Box::new(rows.map(|rows| Ok(rows?))))
        }
        Outcome::Text(text) => Answer::Text(text),
        Outcome::Subscribed(subscription) => Answer::Changes(changes(subscription)),
        Outcome::Changed { rows, .. } => Answer::Changed(rows),
        Outcome::Copied { rows, refused, messages, .. } => {
            Answer::Copied { rows, refused, messages }
        }
        Outcome::Moved { rows, .. } => Answer::Moved(rows),
        Outcome::RolledBack => Answer::RolledBack,
        _ => Answer::Done,
    }
}

fn changes(subscription: Subscription) -> Changes {
    let schema = changes_schema(subscription.schema());
    let of = schema.clone();
    let rows = StreamExt::map(subscription, move |change| {
        change_rows(&of, &change?).map_err(|error: ArrowError| Failure::new(error.to_string()))
    });
    Changes { schema, rows: rows.boxed_local() }
}

fn listed(relation: RelationInfo) -> Listed {
    let columns = relation.schema.fields().iter().map(|field| field.name().clone());
    let indexes = relation.indexes.into_iter().map(|index| index.sql);
    Listed {
        kind: relation.kind.noun().to_owned(),
        columns: columns.collect(),
        reads: relation.reads,
        statements: [relation.sql].into_iter().chain(indexes).chain(relation.comments).collect(),
        name: relation.name,
    }
}
