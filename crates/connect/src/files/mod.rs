//! The files that a path names, read one after the other.
//!
//! A path may be a pattern of several files ([`paths`]). Their [`options`] are the same in all formats: folders named
//! `key=value` are columns ([`keys`]), and so is, if it is asked for, the name of the file. All rows of a file share the values of such columns
//! ([`shared`]): a query learns them [before](list) it opens files. [`columns`] finds the columns of several files.

mod columns;
mod keys;
mod list;
mod options;
mod shared;

use std::path::{Path, PathBuf};
use std::vec::IntoIter;

use alluvium::{Error, Portion, Result, SourcePosition, SourceReader, SourceRequest};

use crate::input::{failed, hint};
use shared::SharedReader;

pub use columns::infer;
pub use list::list;
pub use options::{Options, check};
pub use shared::File;

/// The files that a path names, in alphabetical order: several if it is a pattern of `*`, `?`, `[…]` and `**`.
fn paths(path: &Path) -> Result<Vec<PathBuf>> {
    let Some(pattern) = path.to_str() else { return Ok(vec![path.to_owned()]) };
    if !pattern.contains(['*', '?', '[']) || path.exists() {
        return Ok(vec![path.to_owned()]);
    }
    let wrong =
        |error: String| Error::source(format!("\"{pattern}\" is not a pattern of files: {error}"));
    let mut paths = Vec::new();
    for path in glob::glob(pattern).map_err(|error| wrong(error.to_string()))? {
        let path = path.map_err(|error| failed("read", error.path(), error.error()))?;
        if path.is_file() {
            paths.push(path);
        }
    }
    match paths.is_empty() {
        true => Err(Error::source(format!("no file matches \"{pattern}\"{}", hint(path)))),
        false => Ok(paths),
    }
}

/// The files that several paths name, in the order of the paths.
fn all_paths(given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in given {
        files.extend(paths(path)?);
    }
    Ok(files)
}

/// Opens one file.
type OpenFile = Box<dyn Fn(File<'_>) -> Result<Box<dyn SourceReader>> + Send>;

/// Reads several files as if they were one.
pub struct Files {
    open: OpenFile,
    options: Options,
    request: SourceRequest,
    paths: IntoIter<PathBuf>,
    file: Option<SharedReader>,
}

impl Files {
    /// The files that are requested; the first one is opened, and has to be there. `open` opens one to read the columns that
    /// it has itself, and gets the options of its format.
    pub fn open(
        request: &SourceRequest,
        open: impl Fn(File<'_>) -> Result<Box<dyn SourceReader>> + Send + 'static,
    ) -> Result<Self> {
        let mut paths = paths(&request.path)?;
        if request.live.as_ref().is_some_and(|live| live.follow) && paths.len() > 1 {
            let (path, files) = (request.path.display(), paths.len());
            let message = format!("\"{path}\" matches {files} files, and \"follow\" reads one");
            return Err(Error::source(message));
        }
        if let Some(start) = request.file_start()? {
            let Some(read) = paths.iter().position(|path| *path == start.file) else {
                return Err(Error::source(format!(
                    "\"{}\" is gone, of which {} lines or rows were read before; reading goes on there",
                    start.file.display(),
                    start.lines
                )));
            };
            paths.drain(..read);
        }
        let (open, paths, mut request) = (Box::new(open), paths.into_iter(), request.clone());
        let (options, of_format) = Options::split(&request.options)?;
        request.options = of_format;
        let mut files = Self { open, options, request, paths, file: None };
        files.step()?;
        files.request.start = None;
        Ok(files)
    }

    fn step(&mut self) -> Result<()> {
        let open =
            |path: PathBuf| SharedReader::open(&path, &self.request, &self.options, &self.open);
        self.file = self.paths.next().map(open).transpose()?;
        Ok(())
    }
}

impl SourceReader for Files {
    fn next(&mut self) -> Result<Option<Portion>> {
        while let Some(file) = &mut self.file {
            if let Some(portion) = file.next()? {
                return Ok(Some(portion));
            }
            self.step()?;
        }
        Ok(None)
    }

    fn position(&self) -> Option<SourcePosition> {
        self.file.as_ref()?.position()
    }
}
