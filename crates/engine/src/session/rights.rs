//! The rights of a session: questions to its [authorizer](Authorizer).

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use alluvium_sql::catalog::Catalog as _;
use alluvium_sql::planner::{How, Use};
use alluvium_sql::statement::{Change, CommentedKind, IfTaken, Shape, Statement, StatementKind};

use super::settings::SessionRoles;
use super::{Session, one_statement};
use crate::authorizer::{Action, Authorizer, Object, Rights};
use crate::catalog::{Entries, named_index};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::query::{FileScope, Files};

/// How many statements are remembered with their uses.
const STATEMENTS: usize = 256;

/// How long the text of such a statement may be, in bytes.
const LONGEST: usize = 16 << 10;

/// The uses of statements by their texts, as of one moment of the catalog, so that they are not planned for it again.
#[derive(Default)]
pub(super) struct KnownUses {
    entries: Weak<Entries>,
    uses: HashMap<String, Arc<[Use]>>,
}

impl KnownUses {
    /// Forgets those over other relations than these.
    fn set_entries(&mut self, entries: &Arc<Entries>) {
        // As long as it is referred to, nothing else has its address, and a definition changes a copy.
        if !std::ptr::eq(self.entries.as_ptr(), Arc::as_ptr(entries)) {
            *self = Self { entries: Arc::downgrade(entries), ..Self::default() };
        }
    }

    fn keep(&mut self, text: &str, uses: &Arc<[Use]>) {
        // Long texts are not kept.
        if text.len() > LONGEST {
            return;
        }
        if self.uses.len() >= STATEMENTS {
            self.uses.clear();
        }
        self.uses.insert(text.to_owned(), uses.clone());
    }
}

/// An error of a statement that makes these uses of relations, without what the session may not know: values of rows that it may not
/// select, and names.
pub(super) fn told(error: Error, rights: &Rights, uses: &[Use], entries: &Entries) -> Error {
    let error = error.without_name(|name| rights.tells(Object::Relation(name)));
    let reads_more = |used: &Use| match used.how {
        How::Read => !entries.reads_only(&used.relation, |input| rights.shows(input)),
        _ => false,
    };
    let quotes = |used: &Use| used.how != How::Read && !rights.shows(&used.relation);
    match uses.iter().any(reads_more) {
        true => error.without_values(true),
        false if uses.iter().any(quotes) => error.without_values(false),
        false => error,
    }
}

/// Whether a statement makes or changes definitions, or runs others.
fn defines(statement: &StatementKind) -> bool {
    !matches!(
        statement,
        StatementKind::Query(_)
            | StatementKind::LockingQuery(_)
            | StatementKind::Insert(_)
            | StatementKind::Update(_)
            | StatementKind::Delete(_)
            | StatementKind::Truncate(_)
            | StatementKind::Copy { .. }
            | StatementKind::CopyTo { .. }
            | StatementKind::CreateTableAs { .. }
            | StatementKind::ExplainSelect { .. }
            | StatementKind::ExplainView { .. }
            | StatementKind::ExplainState { .. }
            | StatementKind::ExplainAnalyze { .. }
            | StatementKind::Describe { .. }
            | StatementKind::DescribeFile { .. }
    )
}

impl Session {
    /// Makes the session that of a role, and asks `authorizer` from now on what its statements may do.
    pub fn set_authorizer(&mut self, role: impl Into<String>, authorizer: Arc<dyn Authorizer>) {
        let role = role.into();
        self.identity = None;
        let (current, session) = (role.clone(), role.clone());
        self.settings.set_roles(Some(SessionRoles { current, session, is_superuser: false }));
        self.rights = Some(Box::new(Rights::new(role, authorizer)));
        self.known_uses = KnownUses::default();
    }

    /// The role whose rights its statements have: the one that it [was made](Session::set_role), another one after SET ROLE, or the one
    /// that it was given with its [authorizer](Session::set_authorizer).
    pub fn role(&self) -> Option<&str> {
        self.current_role().or_else(|| self.rights.as_ref().map(|rights| rights.role()))
    }

    /// Fails if the session has no right to a statement over the relations of this moment, which are returned. Only existing and
    /// created relations are asked for.
    ///
    /// The statement has to read these: others may have the names by now, to which the session has no right.
    pub(super) fn authorize(&mut self, statement: &Statement) -> Result<Arc<Entries>> {
        self.authorized = None;
        // The rights come after: those to a relation that is dropped have ended before another one has its name.
        let entries = self.catalog_entries();
        self.update_rights();
        if self.rights.is_none() || self.is_redoing {
            return Ok(entries);
        }
        let uses = self.uses(statement, &entries);
        self.asked = uses.clone();
        self.check_uses(&uses, &entries)?;
        let Some(rights) = &self.rights else { return Ok(entries) };
        self.authorize_definition(rights, &statement.kind, &entries)?;
        Ok(entries)
    }

    /// Fails if the session has no right to one of these uses of relations.
    fn check_uses(&self, uses: &[Use], entries: &Entries) -> Result<()> {
        let Some(rights) = &self.rights else { return Ok(()) };
        for Use { relation, how, columns } in uses {
            let action = match how {
                How::Read => Action::Select,
                How::Insert => Action::Insert,
                How::Update => Action::Update,
                How::Delete => Action::Delete,
            };
            if entries.contains_key(relation) {
                rights.check(action, Object::Relation(relation), columns)?;
            }
        }
        Ok(())
    }

    /// Runs a statement that the session has the right to, over the relations to which it has it. If others have taken their places
    /// meanwhile, it is asked for the right to these.
    pub(super) fn run_authorized<R>(
        &mut self,
        statement: &Statement,
        mut run: impl FnMut(&mut Self) -> Result<R>,
    ) -> Result<R> {
        self.update_rights();
        if self.rights.is_none() || self.is_redoing {
            return run(self);
        }
        let creates = matches!(statement.kind, StatementKind::CreateView(_));
        let is_held = creates || !defines(&statement.kind);
        loop {
            let catalog = self.instance().definitions.catalog.entries();
            let key = self.key.clone();
            let entries = self.authorize(statement)?;
            self.authorized = (is_held && !creates).then_some(entries);
            self.defines_over = (is_held && creates).then(|| catalog.clone());
            let ran = run(self);
            (self.authorized, self.defines_over) = (None, None);
            let is_old = || !Arc::ptr_eq(&catalog, &self.instance().definitions.catalog.entries());
            match ran {
                Err(Error::Conflict { .. })
                    if is_held && self.transaction.is_none() && is_old() =>
                {
                    interrupt::check()?;
                    self.key = key;
                }
                ran => return ran,
            }
        }
    }

    /// As [`Session::authorize`], of a statement that is described: also for what a cursor's query or a prepared statement asks when
    /// it runs.
    pub(super) fn authorize_described(&mut self, statement: &Statement) -> Result<Arc<Entries>> {
        match &statement.kind {
            StatementKind::DeclareCursor(cursor) => self.authorize(&cursor.query),
            StatementKind::Execute { name, values } => {
                // One that is not there is an error of the description.
                if let Ok(prepared) = self.named(name).cloned() {
                    self.authorize(prepared.statement())?;
                }
                self.authorize(values.as_deref().unwrap_or(statement))
            }
            _ => self.authorize(statement),
        }
    }

    /// Asks for rights other than those on rows.
    fn authorize_definition(
        &self,
        rights: &Rights,
        statement: &StatementKind,
        entries: &Entries,
    ) -> Result<()> {
        let there = |action, name: &str, columns: &[String]| match entries.contains_key(name) {
            true => rights.check(action, Object::Relation(name), columns),
            false => Ok(()),
        };
        let relation = |action, name: &str| there(action, name, &[]);
        let of_index = |name: &str| match named_index::find(entries, name) {
            Some((entry, _)) => relation(Action::Alter, &entry.name),
            None => Ok(()),
        };
        let subscribe = |name: &str| {
            let fields = entries.get(name).into_iter().flat_map(|entry| entry.schema.fields());
            let columns: Vec<String> = fields.map(|field| field.name().clone()).collect();
            there(Action::Subscribe, name, &columns)
        };
        let create = |name: &str, if_taken| {
            rights.check(Action::Create, Object::Relation(name), &[])?;
            match if_taken {
                IfTaken::Replace => relation(Action::Drop, name),
                IfTaken::Fail | IfTaken::Keep => Ok(()),
            }
        };
        match statement {
            StatementKind::CreateTable(table) => {
                for sequence in table.defaults.iter().flatten().flat_map(|it| it.named_sequences())
                {
                    let of = entries.generated(&sequence).map(|(table, _)| &*table.name);
                    rights.check_sequence(Action::Update, &sequence, of)?;
                }
                create(&table.name, table.if_taken)
            }
            StatementKind::CreateView(view) => create(&view.name, view.if_taken),
            StatementKind::DeclareView(view) => create(&view.name, IfTaken::Fail),
            StatementKind::CreateTableFrom { name, .. }
            | StatementKind::CreateTableAs { name, .. } => create(name, IfTaken::Fail),
            StatementKind::DropTable(dropped) | StatementKind::DropView(dropped) => {
                relation(Action::Drop, &dropped.name)
            }
            StatementKind::Alter(alter) => {
                relation(Action::Alter, &alter.name)?;
                match &alter.change {
                    Change::Rename { to, .. } => create(to, IfTaken::Fail),
                    _ => Ok(()),
                }
            }
            StatementKind::CreateSecret(secret) => {
                rights.check(Action::Create, Object::Secret(&secret.name), &[])
            }
            StatementKind::DropSecret(dropped) => {
                rights.check(Action::Drop, Object::Secret(&dropped.name), &[])
            }
            StatementKind::CreateConnection(connection) => {
                rights.check(Action::Create, Object::Connection(&connection.name), &[])
            }
            StatementKind::DropConnection(dropped) => {
                rights.check(Action::Drop, Object::Connection(&dropped.name), &[])
            }
            StatementKind::CreateSink(sink) => {
                relation(Action::Alter, &sink.relation)?;
                subscribe(&sink.relation)
            }
            StatementKind::DropSink(dropped) => match entries.systems.sinks.get(&dropped.name) {
                Some(sink) => relation(Action::Alter, &sink.relation),
                None => Ok(()),
            },
            StatementKind::AlterSource(change) => relation(Action::Alter, &change.name),
            StatementKind::Lateness(late) => relation(Action::Alter, &late.view),
            StatementKind::CreateIndex(index) => relation(Action::Alter, &index.relation),
            StatementKind::DropIndex(dropped) => of_index(&dropped.name),
            StatementKind::Comment(comment) => match comment.kind {
                CommentedKind::Index => of_index(&comment.name),
                _ => relation(Action::Alter, &comment.name),
            },
            StatementKind::CreateSchema(schema) => {
                rights.check(Action::Create, Object::Schema(&schema.name), &[])
            }
            StatementKind::DropSchema(dropped) => {
                rights.check(Action::Drop, Object::Schema(&dropped.name), &[])
            }
            StatementKind::CreateSequence(sequence) => {
                rights.check(Action::Create, Object::Sequence(&sequence.name), &[])
            }
            StatementKind::DropSequence(dropped) => {
                rights.check(Action::Drop, Object::Sequence(&dropped.name), &[])
            }
            StatementKind::RestartSequence(restart) => match entries.generated(&restart.name) {
                Some((table, _)) if self.current_role().is_some() => {
                    relation(Action::Alter, &table.name)
                }
                _ => rights.check(Action::Alter, Object::Sequence(&restart.name), &[]),
            },
            StatementKind::CreateFunction(function) => {
                rights.check(Action::Create, Object::Function(&function.name), &[])
            }
            StatementKind::DropFunction(dropped) => {
                rights.check(Action::Drop, Object::Function(&dropped.name), &[])
            }
            StatementKind::Describe { name, .. }
            | StatementKind::ExplainView { name, .. }
            | StatementKind::ExplainState { name, .. }
            | StatementKind::ExplainAnalyze { name, .. } => relation(Action::Select, name),
            StatementKind::Subscribe(changes) | StatementKind::CopyChanges { changes, .. } => {
                subscribe(&changes.name)
            }
            StatementKind::Listen(named) => subscribe(&named.name),
            StatementKind::Checkpoint if self.current_role().is_some() => {
                Err(Error::denied("only a superuser may have a checkpoint taken"))
            }
            _ => Ok(()),
        }
    }

    /// The uses that a statement makes of rows of relations.
    fn uses(&mut self, statement: &Statement, entries: &Arc<Entries>) -> Arc<[Use]> {
        self.known_uses.set_entries(entries);
        if let Some(uses) = self.known_uses.uses.get(&statement.text) {
            return uses.clone();
        }
        let files = match &statement.kind {
            StatementKind::Query(query) | StatementKind::ExplainSelect { query, .. } => {
                self.files(&**query)
            }
            StatementKind::CopyTo { query, .. } | StatementKind::CreateTableAs { query, .. } => {
                self.files(&**query)
            }
            StatementKind::Insert(insert) => self.files(&**insert),
            StatementKind::Update(update) => self.files(update),
            StatementKind::Delete(delete) => self.files(delete),
            _ => Ok(Files::new()),
        };
        // The statement fails for a file that cannot be read.
        let files = files.unwrap_or_default();
        let scope = FileScope { entries, files: &files };
        let planner = &self.instance().definitions.planner;
        let mut uses = planner.uses(&statement.kind, &scope);
        uses.retain(|used| {
            !files.contains_key(&used.relation) && scope.relation(&used.relation).is_some()
        });
        let uses: Arc<[Use]> = uses.into();
        // The columns of a file may change.
        if files.is_empty() {
            self.known_uses.keep(&statement.text, &uses);
        }
        uses
    }

    /// Whether the session has the right to a read by key of this text, of which others of its shape differ in keys alone.
    pub(super) fn may_read(&mut self, sql: &str, shape: &Shape, entries: &Arc<Entries>) -> bool {
        if self.rights.is_none() {
            return true;
        }
        self.known_uses.set_entries(entries);
        let known = self.known_uses.uses.get(shape.text()).cloned();
        let uses = known.or_else(|| {
            let uses = self.uses(&one_statement(sql).ok()?, entries);
            self.known_uses.keep(shape.text(), &uses);
            Some(uses)
        });
        uses.is_some_and(|uses| {
            self.asked = uses.clone();
            self.check_uses(&uses, entries).is_ok()
        })
    }

    /// The error of the statement that has run, as the session may know it.
    pub(super) fn told(&self, error: Error) -> Error {
        match &self.rights {
            None => error,
            Some(rights) => told(error, rights, &self.asked, &self.catalog_entries()),
        }
    }
}
