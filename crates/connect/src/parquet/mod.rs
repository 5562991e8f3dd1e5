//! Parquet files, which compress their pages themselves.
//!
//! [`read`] reads row groups in batches, [`groups`] several of them at once, [`write`](mod@write) writes, and [`options`] says what may be said.
//!
//! - A column of the table has the values of the file's column of its name, as it stands or else without regard to
//!   case, cast to the table's type. Other columns of the file are passed over, of whatever type they are; a column that the
//!   file does not have gets its DEFAULT. Columns that are taken from the file are texts where tables have no such type.
//! - A row is refused, and reading continues, if it has a value that its column cannot hold, or none where there has
//!   to be one.
//! - A file is never compressed as a whole, as its end is read first and then parts of it. A name that
//!   ends in `.gz` is refused.

mod groups;
mod options;
mod read;
mod write;

use std::path::{Path, PathBuf};

use alluvium::{
    Error, Inferred, Result, Sink, SinkRequest, SinkWriter, Source, SourceFiles, SourceReader,
    SourceRequest,
};

use crate::files::{self, File, Files};
use crate::input;
use groups::GroupReader;
use options::Options;

/// Files whose names end with `.parquet`, or are said to be Parquet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parquet;

impl Parquet {
    const NAME: &str = "parquet";
    const EXTENSIONS: &[&str] = &[".parquet"];

    /// Refuses a file whose name says that it is compressed as a whole.
    fn check_name(path: &Path) -> Result<()> {
        match path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz")) {
            true => Err(Error::source(format!(
                "\"{}\": a Parquet file inside of gzip is not supported; Parquet compresses its own pages \
                 (COMPRESSION 'gzip'): gunzip the file, or leave out .gz",
                path.display()
            ))),
            false => Ok(()),
        }
    }
}

impl Source for Parquet {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn handles(&self, path: &Path) -> bool {
        input::ends_with(path, Self::EXTENSIONS)
    }

    fn check(&self, option: &str, value: &str) -> Result<()> {
        files::check(option, value, || options::check_read(option, value))
    }

    fn infer(&self, path: &Path, options: &[(String, String)]) -> Result<Inferred> {
        self.infer_all(&[path.to_owned()], Path::new(""), options)
    }

    fn infer_all(
        &self,
        paths: &[PathBuf],
        base: &Path,
        options: &[(String, String)],
    ) -> Result<Inferred> {
        paths.iter().try_for_each(|path| Self::check_name(path))?;
        files::infer(paths, base, options, &read::infer)
    }

    fn files(&self, paths: &[PathBuf], request: &SourceRequest) -> Result<Option<SourceFiles>> {
        files::list(paths, request)
    }

    fn finds_by_name(&self) -> bool {
        true
    }

    fn open(&self, request: &SourceRequest) -> Result<Box<dyn SourceReader>> {
        Self::check_name(&request.path)?;
        let open = |file: File<'_>| -> Result<Box<dyn SourceReader>> {
            let File { path, request, .. } = file;
            let check = |(name, value): &(String, String)| options::check_read(name, value);
            request.options.iter().try_for_each(check)?;
            let plan = read::Plan::new(path, request)?;
            let start = request.file_start()?.map(|start| start.offset);
            Ok(match start {
                None if request.threads > 1 && plan.groups() > 1 => {
                    Box::new(GroupReader::new(&plan, request.threads)?)
                }
                start => Box::new(plan.behind(start.unwrap_or(0))?),
            })
        };
        Ok(Box::new(Files::open(request, open)?))
    }
}

impl Sink for Parquet {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn handles(&self, path: &Path) -> bool {
        input::ends_with(path, Self::EXTENSIONS)
    }

    fn check(&self, option: &str, value: &str) -> Result<()> {
        Options::default().set(option, value)
    }

    fn create(&self, request: &SinkRequest) -> Result<Box<dyn SinkWriter>> {
        Self::check_name(&request.path)?;
        Ok(Box::new(write::ParquetWriter::create(request, &Options::read(&request.options)?)?))
    }
}
