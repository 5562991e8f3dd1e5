//! COMMENT ON.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_sql::name;
use alluvium_sql::statement::{Comment, CommentedKind};
use arrow::datatypes::Schema;

use super::Definitions;
use super::staged::StagedDefinitions;
use crate::catalog::{Entries, Entry, RelationKind, named_index};
use crate::durable::record::Record;
use crate::error::{Error, Result, SqlState};
use crate::sequencer::{Comments, Said, with_columns};

impl Definitions {
    /// Notes a comment, durably.
    pub(crate) fn comment(&self, comment: &Comment) -> Result<()> {
        let lock = self.lock();
        let replays = self.sequencer.durable().is_replaying();
        check(comment, &self.catalog.entries(), replays)?;
        let (name, column) = subject(comment);
        let text = comment.text.as_deref();
        if self.sequencer.comments().get(name, column) != text {
            let record = Record::comment(Comment::statement(name, column, text));
            self.sequencer.comment(&record, name, column, text.map(Arc::from))?;
        }
        drop(lock);
        self.sequencer.durable().sync_all()
    }

    /// Has comments and rights follow a relation that is altered.
    pub(super) fn move_comments(&self, before: &Entry, name: &str, schema: &Schema) {
        self.sequencer.change_comments(|comments| {
            let said = comments.take(&before.name);
            comments.put(name, altered(said, &before.schema, schema));
        });
        self.sequencer.change_roles(|roles| roles.rename(&before.name, name));
    }

    /// Has a transaction note a comment.
    pub(crate) fn stage_comment(
        &self,
        staged: &mut StagedDefinitions,
        comment: &Comment,
    ) -> Result<()> {
        check(comment, staged.entries(), false)?;
        let (name, column) = subject(comment);
        let relation = match named_index::find(staged.entries(), name) {
            Some((relation, _)) => relation.name.clone(),
            None => name.to_owned(),
        };
        staged.depend_on(&relation);
        staged.comments.set(name, column, comment.text.as_deref().map(Arc::from));
        Ok(())
    }
}

/// The subject of a comment: a relation or an index, and a column.
fn subject(comment: &Comment) -> (&str, Option<&str>) {
    let column = comment.column.as_ref().map(|(column, _)| &**column);
    (name::short(&comment.name), column)
}

/// Fails if the comment has no subject of its kind. A replayed comment is on whatever has the name.
fn check(comment: &Comment, entries: &Entries, replays: bool) -> Result<()> {
    let (name, _) = subject(comment);
    let index = || named_index::find(entries, name);
    if let Some((relation, index)) = index()
        && index.unique.is_some()
    {
        // It goes by the names of its table and columns.
        return Err(Error::sql(format!(
            "\"{name}\" is a UNIQUE constraint of \"{}\": a comment on it is not supported yet",
            relation.name
        ))
        .with_sqlstate(SqlState::NOT_SUPPORTED));
    }
    if replays && index().is_some() {
        return Ok(());
    }
    if comment.kind == CommentedKind::Index {
        return match (index(), entries.get(name)) {
            (Some(_), _) => Ok(()),
            (None, Some(entry)) => Err(of_other_kind(entry)),
            (None, None) => Err(Error::sql(format!("there is no index \"{name}\""))
                .with_sqlstate(SqlState::NO_OBJECT)),
        };
    }
    let entry = entries.relation(name)?;
    let fits = match (comment.kind, entry.kind()) {
        _ if replays => true,
        (CommentedKind::Column, _) => true,
        (CommentedKind::Table, kind) => kind == RelationKind::Table,
        (CommentedKind::MaterializedView, kind) => kind == RelationKind::MaterializedView,
        (_, kind) => kind != RelationKind::Table,
    };
    if !fits {
        return Err(of_other_kind(&entry));
    }
    comment.check_column(entry.schema.fields().iter().map(|field| field.name().as_str()))?;
    Ok(())
}

fn of_other_kind(entry: &Entry) -> Error {
    let what = match entry.kind() {
        RelationKind::Table => "TABLE",
        RelationKind::MaterializedView => "MATERIALIZED VIEW",
        _ => "VIEW",
    };
    let (name, kind) = (&entry.name, entry.kind().noun());
    Error::sql(format!("\"{name}\" is a {kind}: write COMMENT ON {what}"))
        .with_sqlstate(SqlState::WRONG_KIND)
}

/// The comments of an open transaction on relations and indexes, by the names that they have in it.
#[derive(Clone, Default)]
pub(super) struct StagedComments(BTreeMap<String, Said<Option<Arc<str>>>>);

impl StagedComments {
    fn set(&mut self, name: &str, column: Option<&str>, text: Option<Arc<str>>) {
        let said = self.0.entry(name.to_owned()).or_default();
        said.insert(column.map(str::to_owned), text);
    }

    /// A relation takes the place of another one, of which this was said.
    pub(super) fn put(&mut self, name: &str, said: &Said<Arc<str>>) {
        for (column, text) in said {
            self.set(name, column.as_deref(), Some(text.clone()));
        }
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// A relation has other names, and perhaps other columns.
    pub(super) fn alter(&mut self, before: &Entry, after: &Entry) {
        let Some(said) = self.0.remove(&before.name) else { return };
        let said = altered(said, &before.schema, &after.schema);
        self.0.insert(after.name.clone(), said);
    }

    /// The comments once the transaction is committed, given those on the relations that are then there.
    pub(super) fn apply(&self, comments: &mut Comments) {
        for (name, said) in &self.0 {
            for (column, text) in said {
                comments.set(name, column.as_deref(), text.clone());
            }
        }
    }

    /// The statements that say so.
    pub(super) fn statements(&self) -> impl Iterator<Item = Record> {
        let all = self.0.iter().flat_map(|(name, said)| said.iter().map(move |said| (name, said)));
        all.map(|(name, (column, text))| {
            Record::comment(Comment::statement(name, column.as_deref(), text.as_deref()))
        })
    }
}

/// The comments on an altered relation: on columns by their places if there are as many or more, else by their names.
pub(super) fn altered<T>(said: Said<T>, before: &Schema, after: &Schema) -> Said<T> {
    if after.fields().len() >= before.fields().len() {
        return with_columns(said, before, after);
    }
    let stays = |column: &Option<String>| {
        column.as_ref().is_none_or(|column| after.index_of(column).is_ok())
    };
    said.into_iter().filter(|(column, _)| stays(column)).collect()
}
