//! The files that statements read, and where they are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium_sql::name;
use alluvium_sql::statement::{FileName, Setting, TableDefinition, files, relations};
use datafusion::sql::sqlparser::ast::Visit;

use crate::catalog::Entries;
use crate::connectors::{self, Asked};
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
            let file = self.found(instance, &FileName::read(&written))?.file;
            Ok((name::qualified(None, &written), file))
        });
        let mut found = named.collect::<Result<Files>>()?;
        if let Some(replacement) = self.replacement {
            let names = relations(statement).into_iter().map(|written| name::of_text(&written));
            let missing = names.filter(|name| entries.get(name).is_none());
            for name in missing {
                if let Some(path) = replacement(&name) {
                    let file = self.read(instance, vec![path], &[])?.file;
                    found.insert(name, file);
                }
            }
        }
        Ok(found)
    }

    /// A file that a statement names, with its columns.
    pub(super) fn found(&self, instance: &Instance, named: &FileName) -> Result<FoundFile> {
        let paths = named.paths.iter().map(|written| self.file(written, Purpose::Read));
        self.read(instance, paths.collect::<Result<_>>()?, &named.options)
    }

    fn read(
        &self,
        instance: &Instance,
        paths: Vec<PathBuf>,
        options: &[Setting],
    ) -> Result<FoundFile> {
        let asked = Asked::of(options)?;
        let formats = &instance.connectors.formats;
        let first = paths.first().map(PathBuf::as_path).unwrap_or(Path::new(""));
        let source = formats.source(asked.format.map(|format| format.value.as_str()), first)?;
        let options = connectors::checked(&asked.others, |name, value| source.check(name, value))?;
        let inferred = formats.infer(&*source, (&paths, self.base), &options)?;
        let (remarks, read_with) = (inferred.remarks.clone(), inferred.options.clone());
        let format = source.name().to_owned();
        let schema = TableDefinition::columns(&inferred.schema)?;
        let mut file = File::new(source, paths, schema, inferred, &instance.settings);
        file.request.base = self.base.to_owned();
        file.ignores_errors = asked.ignores_errors == Some(true);
        Ok(FoundFile { file, format, read_with, remarks })
    }
}

/// A file, and how it is read.
pub(super) struct FoundFile {
    pub(super) file: File,
    pub(super) format: String,
    /// The options, with those that were found.
    pub(super) read_with: Vec<(String, String)>,
    /// For each column why it is of its type, if there is something to tell.
    pub(super) remarks: Vec<Option<String>>,
}
