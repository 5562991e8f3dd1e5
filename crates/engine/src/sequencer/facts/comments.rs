//! Comments on relations, their columns and indexes.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_sql::statement::Comment;
use arrow::datatypes::Schema;

use super::{Persisted, SavePoint, Saving};
use crate::durable::checkpoint::Checkpoint;
use crate::durable::record::Record;
use crate::error::Result;

/// The comments on a relation or an index, by `None`, and on its columns.
pub(crate) type Said<T> = BTreeMap<Option<String>, T>;

/// Comments, by the names of relations and indexes. They change under the definitions' lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comments(Arc<BTreeMap<String, Said<Arc<str>>>>);

impl Comments {
    /// The comments on a relation or an index.
    pub(crate) fn of(&self, name: &str) -> Option<&Said<Arc<str>>> {
        self.0.get(name)
    }

    /// The comment of a relation or an index, or of a column.
    pub(crate) fn get(&self, name: &str, column: Option<&str>) -> Option<&str> {
        self.of(name)?.get(&column.map(str::to_owned)).map(|text| &**text)
    }

    /// The statements of the comments on a relation or an index.
    pub(crate) fn statements(&self, name: &str) -> Vec<String> {
        let said = self.of(name).into_iter().flatten();
        let said =
            said.map(|(column, text)| Comment::statement(name, column.as_deref(), Some(text)));
        said.collect()
    }

    /// Notes a comment, or that there is none from now on.
    pub(crate) fn set(&mut self, name: &str, column: Option<&str>, text: Option<Arc<str>>) {
        let column = column.map(str::to_owned);
        match text {
            Some(text) => {
                let said = Arc::make_mut(&mut self.0).entry(name.to_owned()).or_default();
                said.insert(column, text);
            }
            None => self.retain(name, |said| *said != column),
        }
    }

    /// Takes out the comments on a relation, for another name or a definition that is made again.
    pub(crate) fn take(&mut self, name: &str) -> Said<Arc<str>> {
        match self.0.contains_key(name) {
            true => Arc::make_mut(&mut self.0).remove(name).unwrap_or_default(),
            false => Said::new(),
        }
    }

    /// Gives a relation the comments on the one that it replaces.
    pub(crate) fn put(&mut self, name: &str, said: Said<Arc<str>>) {
        if !said.is_empty() {
            Arc::make_mut(&mut self.0).insert(name.to_owned(), said);
        }
    }

    /// Forgets a dropped relation or index.
    pub(crate) fn forget(&mut self, name: &str) {
        self.take(name);
    }

    /// A relation has these columns from now on: comments of others go.
    pub(crate) fn retain_columns(&mut self, relation: &str, schema: &Schema) {
        self.retain(relation, |said| match said {
            Some(column) => schema.index_of(column).is_ok(),
            None => true,
        });
    }

    fn retain(&mut self, name: &str, keeps: impl Fn(&Option<String>) -> bool) {
        if self.of(name).is_none_or(|said| said.keys().all(&keeps)) {
            return;
        }
        let mut said = self.take(name);
        said.retain(|column, _| keeps(column));
        self.put(name, said);
    }
}

/// The comments on a relation whose columns have other names, at the same places.
pub(crate) fn with_columns<T>(said: Said<T>, before: &Schema, after: &Schema) -> Said<T> {
    let renamed = |column: String| match before.index_of(&column) {
        Ok(place) => after.fields().get(place).map_or(column, |field| field.name().clone()),
        Err(_) => column,
    };
    said.into_iter().map(|(column, text)| (column.map(renamed), text)).collect()
}

impl Persisted for Comments {
    /// As statements after those that define their subjects.
    fn save(&self, _: &SavePoint<'_>) -> Box<dyn Saving> {
        let comments = self.clone();
        Box::new(move |checkpoint: &mut Checkpoint| {
            for name in comments.0.keys() {
                let said = comments.statements(name).into_iter();
                let said = said.map(|text| (name.clone(), Record::comment(text)));
                checkpoint.definitions.extend(said);
            }
        })
    }

    /// They are executed again.
    fn restore(&mut self, _: &mut Checkpoint) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};

    use super::*;

    fn columns(names: &[&str]) -> Schema {
        let field = |name: &&str| Field::new(*name, DataType::Int32, true);
        Schema::new(names.iter().map(field).collect::<Vec<_>>())
    }

    #[test]
    fn comments_follow_names_and_columns() {
        let mut comments = Comments::default();
        comments.set("t", None, Some("it's".into()));
        comments.set("t", Some("a"), Some("first".into()));
        comments.set("t", Some("b"), Some("second".into()));
        let before = comments.clone();
        let said = with_columns(comments.take("t"), &columns(&["a", "b"]), &columns(&["b", "a"]));
        comments.put("s.u", said);
        assert_eq!(
            comments.statements("s.u"),
            [
                "COMMENT ON TABLE s.u IS 'it''s'",
                "COMMENT ON COLUMN s.u.a IS 'second'",
                "COMMENT ON COLUMN s.u.b IS 'first'"
            ]
        );
        comments.retain_columns("s.u", &columns(&["b"]));
        comments.set("s.u", None, None);
        assert_eq!(comments.statements("s.u"), ["COMMENT ON COLUMN s.u.b IS 'first'"]);
        comments.forget("s.u");
        assert!(comments.0.is_empty());
        assert_eq!(before.statements("t").len(), 3);
    }
}
