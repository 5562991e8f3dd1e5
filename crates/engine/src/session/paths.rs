//! Where the files are that statements name.

use std::path::{Path, PathBuf};

use alluvium_sql::name;
use alluvium_sql::statement::{TableDefinition, files};
use datafusion::sql::sqlparser::ast::Visit;

use crate::error::Result;
use crate::file_access::{FileAccess, Purpose};
use crate::instance::Instance;
use crate::query::{File, Files};

/// Where the files are that statements name, and which of them may be used.
#[derive(Clone, Copy)]
pub(super) struct Paths<'a> {
    pub(super) base: &'a Path,
    pub(super) access: &'a FileAccess,
}

impl Paths<'_> {
    /// The path of a file that a statement names, if it may be used.
    pub(super) fn file(&self, written: &str, purpose: Purpose) -> Result<PathBuf> {
        let path = self.base.join(written);
        self.access.check(written, &path, purpose)?;
        Ok(path)
    }

    /// The files that a part of a statement reads, with their columns.
    pub(super) fn files(&self, instance: &Instance, statement: &impl Visit) -> Result<Files> {
        let file = |name: String| {
            let path = self.file(&name, Purpose::Read)?;
            let name = name::qualified(None, &name);
            let source = instance.connectors.formats.source(None, &path)?;
            let inferred = instance.connectors.formats.infer(&*source, &path, &[])?;
            let schema = TableDefinition::columns(&inferred.schema)?;
            Ok((name, File::new(source, path, schema, inferred, &instance.settings)))
        };
        files(statement).into_iter().map(file).collect()
    }
}
