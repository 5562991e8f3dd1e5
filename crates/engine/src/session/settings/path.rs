//! Names without a schema, completed by the search path.

use alluvium_sql::catalog::Catalog as _;
use alluvium_sql::name::{self, SCHEMA, TEMPORARY};
use alluvium_sql::statement::{
    NamedKind, Qualified, Statement, Unqualified, unqualified, with_schemas,
};

use crate::catalog::{Entries, Scope, named_index};
use crate::error::{Error, Result};
use crate::session::Session;

impl Session {
    /// The statement with schemas before the names that have none, if the search path is not the default schema alone; `None` if
    /// it means the same without.
    pub(in crate::session) fn qualified(&self, statement: &Statement) -> Result<Option<Qualified>> {
        let default = [SCHEMA.to_owned()];
        let path = match &self.settings.effects.search_path {
            Some(path) => &path[..],
            None if self.temporary.are_none() => return Ok(None),
            None => &default,
        };
        let entries = self.catalog_entries();
        let mut schemas: Vec<(Unqualified, String)> = Vec::new();
        for name in unqualified(statement) {
            let schema = match name.kind {
                NamedKind::Relation => {
                    let schema = self.schema_of_relation(&name, path, &entries);
                    // Those of the program come after those of users.
                    let is_there = schema.as_ref().is_some_and(|schema| {
                        let relation = name::qualified(Some(schema), &name.name);
                        Scope(&entries).relation(&relation).is_some()
                    });
                    let short = name::qualified(None, &name.name);
                    if !is_there && self.instance().definitions.planner.system().has_view(&short) {
                        continue;
                    }
                    schema
                }
                NamedKind::Index => {
                    let has = |schema: &String| {
                        let index = name::qualified(Some(schema), &name.name);
                        named_index::find(&entries, &index).is_some()
                    };
                    path.iter().find(|schema| has(schema)).or(path.first()).cloned()
                }
                NamedKind::Sequence => {
                    let has = |schema: &&String| {
                        let sequence = name::qualified(Some(schema), &name.name);
                        entries.sequence(&sequence).is_some()
                    };
                    path.iter().find(has).or(path.first()).cloned()
                }
                NamedKind::New => Some(self.schema_for_new(&name, path)?),
            };
            let Some(schema) = schema else {
                let message =
                    format!("no table or view \"{}\": the search path is empty", name.name);
                return Err(Error::sql(message).at(name.position));
            };
            // Without a schema it is in the default one.
            if schema != SCHEMA {
                schemas.push((name, schema));
            }
        }
        match schemas.is_empty() {
            true => Ok(None),
            false => Ok(Some(with_schemas(statement, &schemas)?)),
        }
    }

    /// The first schema of the path with a relation of a name; where none has it, the first one, whose relation is then missed.
    fn schema_of_relation(
        &self,
        name: &Unqualified,
        path: &[String],
        entries: &Entries,
    ) -> Option<String> {
        let has = |schema: &&String| {
            let relation = name::qualified(Some(schema), &name.name);
            Scope(entries).relation(&relation).is_some()
        };
        let temporary = TEMPORARY.to_owned();
        if !self.temporary.are_none() && has(&&temporary) {
            return Some(temporary);
        }
        path.iter().find(has).or(path.first()).cloned()
    }

    /// The first schema of the path that exists.
    fn schema_for_new(&self, name: &Unqualified, path: &[String]) -> Result<String> {
        let entries = self.catalog_entries();
        path.iter().find(|schema| entries.has_schema(schema)).cloned().ok_or_else(|| {
            let message =
                format!("no schema of the search path exists, in which \"{}\" could be", name.name);
            Error::sql(message).at(name.position)
        })
    }
}
