//! The files that statements read, and where they are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium_sql::name;
use alluvium_sql::statement::{TableDefinition, files, relations};
use datafusion::sql::sqlparser::ast::Visit;

use crate::catalog::Entries;
use crate::error::Result;
use crate::file_access::{FileAccess, Purpose};
use crate::instance::Instance;
use crate::query::{File, Files};

/// Finds a path to read in place of a relation that does not exist.
pub(super) type Replacement = Arc<dyn Fn(&str) -> Option<PathBuf> + Send + Sync>;

/// Where the files are that statements name, and which of them may be used.
#[derive(Clone, Copy)]
pub(super) struct Paths<'a> {
    pub(super) base: &'a Path,
    /// Those that may be read.
    pub(super) reads: &'a FileAccess,
    /// Those that may be written.
    pub(super) writes: &'a FileAccess,
    pub(super) replacement: Option<&'a Replacement>,
}

impl Paths<'_> {
    /// The path of a file that a statement names, if it may be used.
    pub(super) fn file(&self, written: &str, purpose: Purpose) -> Result<PathBuf> {
        let path = self.base.join(written);
        let access = match purpose {
            Purpose::Read => self.reads,
            Purpose::Write => self.writes,
        };
        access.check(written, &path, purpose)?;
        Ok(path)
    }

    /// The files that a part of a statement reads, with their columns: those that it names, and those in place of relations
    /// that are not among `entries`.
    pub(super) fn files(
        &self,
        instance: &Instance,
        entries: &Entries,
        statement: &impl Visit,
    ) -> Result<Files> {
        let named = files(statement).into_iter().map(|written| {
            let path = self.file(&written, Purpose::Read)?;
            Ok((name::qualified(None, &written), path))
        });
        let mut paths = named.collect::<Result<Vec<_>>>()?;
        if let Some(replacement) = self.replacement {
            let names = relations(statement).into_iter().map(|written| name::of_text(&written));
            let missing = names.filter(|name| entries.get(name).is_none());
            paths.extend(missing.filter_map(|name| replacement(&name).map(|path| (name, path))));
        }
        let file = |(name, path): (String, PathBuf)| {
            let source = instance.connectors.formats.source(None, &path)?;
            let inferred = instance.connectors.formats.infer(&*source, &path, &[])?;
            let schema = TableDefinition::columns(&inferred.schema)?;
            Ok((name, File::new(source, path, schema, inferred, &instance.settings)))
        };
        paths.into_iter().map(file).collect()
    }
}
