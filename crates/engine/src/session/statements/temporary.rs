//! Temporary tables: those of one session, which it alone sees, by the schema `pg_temp`.
//!
//! They shadow others of their names: a name without a schema is looked for [among them first](Session::qualified), and is completed
//! as by a search path. So what others have defined, as the query of a view, means what it did. A table is
//! a dataflow like any other, but in no catalog, journal or checkpoint: the relations that a session sees are those of the catalog
//! with its own. It goes with the last map that has it, so ROLLBACK is to go back to the map of before.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use alluvium_sql::name::{TEMPORARY, is_temporary};
use alluvium_sql::statement::{
    self, Drop, IfTaken, OnCommit, Statement, StatementKind, TableDefinition,
};
use parking_lot::Mutex;

use crate::catalog::{Entries, Entry};
use crate::error::{Error, Result, SqlState};
use crate::session::{Outcome, Session};

/// Tables by their names.
pub(in crate::session) type Tables = Arc<BTreeMap<String, Arc<Entry>>>;

/// The temporary tables of a session.
#[derive(Default)]
pub(in crate::session) struct TemporaryTables {
    tables: Tables,
    /// Those that there were before the open transaction.
    before: Option<Tables>,
    seen: Mutex<Option<Seen>>,
}

/// The relations that the session sees.
struct Seen {
    /// Those of others among them.
    of_others: Weak<Entries>,
    all: Arc<Entries>,
}

impl TemporaryTables {
    /// Whether there are none.
    pub(in crate::session) fn are_none(&self) -> bool {
        self.tables.is_empty()
    }

    /// Others with these.
    pub(in crate::session) fn with(&self, others: Arc<Entries>) -> Arc<Entries> {
        if self.are_none() {
            return others;
        }
        let mut seen = self.seen.lock();
        if let Some(Seen { of_others, all }) = &*seen
            // As long as it is referred to, nothing else has its address, and a definition changes a copy.
            && std::ptr::eq(of_others.as_ptr(), Arc::as_ptr(&others))
        {
            return all.clone();
        }
        let mut all = Entries::clone(&others);
        all.schemas.insert(TEMPORARY.to_owned());
        all.extend(self.tables.iter().map(|(name, entry)| (name.clone(), entry.clone())));
        let all = Arc::new(all);
        *seen = Some(Seen { of_others: Arc::downgrade(&others), all: all.clone() });
        all
    }

    fn change(&mut self, change: impl FnOnce(&mut BTreeMap<String, Arc<Entry>>)) {
        change(Arc::make_mut(&mut self.tables));
        *self.seen.get_mut() = None;
    }

    /// A transaction begins.
    pub(in crate::session) fn begin(&mut self) {
        self.before = Some(self.tables.clone());
    }

    /// The open transaction has ended.
    pub(in crate::session) fn end(&mut self, is_committed: bool) {
        let before = self.before.take();
        match before {
            Some(before) if !is_committed => self.return_to(&before),
            _ if self.are_none() => {}
            _ => self.change(|tables| {
                let goes = |entry: &Entry| {
                    entry.temporary().is_some_and(|it| it.on_commit == OnCommit::Drop)
                };
                tables.retain(|_, entry| !goes(entry));
                // From now on they have rows of their own.
                for entry in tables.values_mut().filter(|entry| entry.is_staged) {
                    Arc::make_mut(entry).is_staged = false;
                }
            }),
        }
    }

    /// Those that there are now.
    pub(in crate::session) fn mark(&self) -> Tables {
        self.tables.clone()
    }

    /// Those again that there were.
    pub(in crate::session) fn return_to(&mut self, mark: &Tables) {
        self.tables = mark.clone();
        *self.seen.get_mut() = None;
    }

    /// There are none any more.
    pub(in crate::session) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Session {
    /// Runs a statement that is about a temporary table and none of rows; `None` if it is another one. Fails if it cannot be about one.
    pub(in crate::session) fn run_temporary(
        &mut self,
        statement: &Statement,
    ) -> Result<Option<Outcome>> {
        match &statement.kind {
            StatementKind::CreateTable(table) => {
                let Some(on_commit) = table.temporary else { return Ok(None) };
                if self.create_temporary(table, on_commit)? && self.transaction.is_none() {
                    self.temporary.end(true);
                }
                Ok(Some(Outcome::Done))
            }
            StatementKind::DropTable(drop) if is_temporary(&drop.name) => {
                self.drop_temporary(drop).map_err(|error| error.at(drop.position))?;
                Ok(Some(Outcome::Done))
            }
            kind => match refused(kind) {
                Some((what, name)) => {
                    let (_, table) = alluvium_sql::name::split(&name);
                    let message = format!(
                        "{what} a temporary table is not supported, and \"{table}\" is one: it ends with the session"
                    );
                    Err(Error::sql(message).with_sqlstate(SqlState::NOT_SUPPORTED))
                }
                None => Ok(None),
            },
        }
    }

    /// Creates a temporary table. Returns false, and does nothing, if there is one that stays.
    pub(in crate::session) fn create_temporary(
        &mut self,
        definition: &TableDefinition,
        on_commit: OnCommit,
    ) -> Result<bool> {
        let name = &definition.name;
        if self.temporary.tables.contains_key(name) {
            match definition.if_taken {
                IfTaken::Keep => return Ok(false),
                IfTaken::Replace => {}
                IfTaken::Fail => return Err(there_is(name).at(definition.position)),
            }
        }
        let entries = self.catalog_entries();
        let definitions = &self.instance().definitions;
        let mut entry = definitions.temporary_table(definition, on_commit, &entries)?;
        // As of the version that the transaction reads it has no rows but those that that inserts.
        entry.is_staged = self.transaction.is_some();
        self.temporary.change(|tables| {
            tables.insert(name.clone(), Arc::new(entry));
        });
        Ok(true)
    }

    /// Creates a temporary table, and has `insert` insert rows into it. If that fails, there is no table.
    pub(in crate::session) fn create_temporary_with_rows<R>(
        &mut self,
        definition: &TableDefinition,
        on_commit: OnCommit,
        mut insert: impl FnMut(&mut Self, &Entry) -> Result<R>,
    ) -> Result<(R, Option<alluvium_trace::Epoch>)> {
        let (before, mark) =
            (self.temporary.mark(), self.transaction.as_ref().map(|open| open.mark()));
        self.create_temporary(definition, on_commit)?;
        // The session has asked for rights to what there was before.
        let entries = self.temporary.with(self.catalog_entries());
        let inserted = entries
            .relation(&definition.name)
            .and_then(|created| self.in_one_transaction(|session| insert(session, &created)));
        if inserted.is_err() {
            self.temporary.return_to(&before);
            if let (Some(mark), Some(open)) = (&mark, &mut self.transaction) {
                open.return_to(mark);
            }
        } else if mark.is_none() {
            self.temporary.end(true);
        }
        inserted
    }

    /// Whether no temporary table has this name; fails if one has and may not.
    pub(in crate::session) fn is_temporary_free(
        &self,
        name: &str,
        if_taken: IfTaken,
    ) -> Result<bool> {
        match self.temporary.tables.contains_key(name) {
            false => Ok(true),
            true if if_taken == IfTaken::Keep => Ok(false),
            true => Err(there_is(name)),
        }
    }

    fn drop_temporary(&mut self, drop: &Drop) -> Result<()> {
        if !self.temporary.tables.contains_key(&drop.name) {
            return match drop.if_exists {
                true => Ok(()),
                false => self.catalog_entries().relation(&drop.name).map(|_| ()),
            };
        }
        self.temporary.change(|tables| {
            tables.remove(&drop.name);
        });
        Ok(())
    }
}

fn there_is(name: &str) -> Error {
    let (_, table) = alluvium_sql::name::split(name);
    Error::sql(format!("there is already a temporary table \"{table}\""))
        .with_sqlstate(SqlState::DUPLICATE_RELATION)
}

/// An action of a statement that a temporary table does not support, and the table.
fn refused(statement: &StatementKind) -> Option<(&'static str, String)> {
    let of = |what, name: &str| is_temporary(name).then(|| (what, name.to_owned()));
    let reads = |what, read: Vec<String>| read.iter().find_map(|name| of(what, name));
    match statement {
        StatementKind::CreateView(view) => reads("a view over", statement::relations(&*view.query)),
        StatementKind::CreateFunction(function) => {
            reads("a function that reads", statement::relations(&*function.body))
        }
        StatementKind::CreateIndex(index) => of("an index of", &index.relation),
        StatementKind::Alter(alter) => of("to alter", &alter.name),
        StatementKind::Comment(comment) => of("a comment on", &comment.name),
        StatementKind::Subscribe(changes) | StatementKind::CopyChanges { changes, .. } => {
            of("to subscribe to", &changes.name)
        }
        StatementKind::CreateTableFrom { name, .. } => of("the columns of a file for", name),
        _ => None,
    }
}
