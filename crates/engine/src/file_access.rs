//! Which files statements may read and write.

use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};

/// Which files the statements of a session may read and write: `SELECT … FROM 'file'`, `COPY`, `CREATE TABLE … FROM`, inputs of
/// tables and outputs of views.
///
/// It is asked when a statement names a file. A definition that was allowed stays so: its inputs and outputs are opened again
/// when an engine is started again, whatever sessions may do then. A program's own calls, as
/// [`Engine::output`](crate::Engine::output), are not limited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileAccess {
    /// None, and no other [system](crate::Transport) either.
    Nothing,
    /// Regular files below these directories, and below no other place: `..` and symbolic links are followed before a path is
    /// judged. New files may be written there, not new directories.
    ///
    /// A path is judged when its statement runs, just before the file is opened. So directories must be the program's own:
    /// another user who can rename directories there, or put symbolic links in their place, at that very moment, can lead a
    /// statement out. Statements cannot: they write regular files only.
    Below(Vec<PathBuf>),
    /// All that the process may read and write.
    #[default]
    Everything,
}

/// The use that a statement makes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Read,
    Write,
}

/// Letters of patterns of files.
const PATTERN: [char; 3] = ['*', '?', '['];

impl FileAccess {
    /// Fails unless a file may be read or written. A statement names it as `written`, which stands for `path`.
    pub(crate) fn check(&self, written: &str, path: &Path, purpose: Purpose) -> Result<()> {
        let directories = match self {
            Self::Everything => return Ok(()),
            Self::Nothing => return Err(denied(written, purpose)),
            Self::Below(directories) => directories,
        };
        // A missing one has nothing below it.
        let roots: Vec<PathBuf> =
            directories.iter().filter_map(|directory| directory.canonicalize().ok()).collect();
        let is_pattern = |part: &str| part.contains(PATTERN);
        let text = path.to_str().filter(|text| is_pattern(text));
        let Some(pattern) = text.filter(|_| purpose == Purpose::Read && !path.exists()) else {
            return check_one(written, path, purpose, &roots);
        };
        // Nothing is looked for elsewhere.
        let fixed: PathBuf = path
            .components()
            .take_while(|part| part.as_os_str().to_str().is_some_and(|part| !is_pattern(part)))
            .collect();
        let fixed = or_here(&fixed).canonicalize();
        let leaves = path.components().any(|part| part == Component::ParentDir);
        if leaves || !fixed.is_ok_and(|fixed| is_below(&fixed, &roots)) {
            return Err(denied(written, purpose));
        }
        // Its reader reports errors in the pattern and unreadable files.
        let found = glob::glob(pattern).into_iter().flatten().flatten();
        let mut files = found.filter(|found| found.is_file());
        files.try_for_each(|found| check_one(written, &found, purpose, &roots))
    }
}

impl FileAccess {
    /// An error in the words of the statement: where the paths are that it names is not for its client to know.
    pub(crate) fn worded(&self, mut error: Error, base: &Path) -> Error {
        let message = match &mut error {
            Error::Source { message, .. } | Error::Data { message, .. } => message,
            _ => return error,
        };
        if *self != Self::Everything && !base.as_os_str().is_empty() {
            // Recorded paths begin at the root.
            for base in
                [std::path::absolute(base).ok().as_deref(), Some(base)].into_iter().flatten()
            {
                *message = message.replace(&format!("{}/", base.display()), "");
            }
        }
        error
    }
}

/// Fails unless this is a regular file below one of the roots, or none that could be.
fn check_one(written: &str, path: &Path, purpose: Purpose, roots: &[PathBuf]) -> Result<()> {
    if let Ok(found) = path.canonicalize() {
        if !is_below(&found, roots) {
            return Err(denied(written, purpose));
        }
        return match found.is_file() {
            true => Ok(()),
            false => {
                let message =
                    format!("\"{written}\" is no regular file, and this session uses no other");
                Err(Error::denied(message))
            }
        };
    }
    // Nothing is created through a link that leads nowhere.
    let is_link = path.symlink_metadata().is_ok();
    let is_named = matches!(path.components().next_back(), Some(Component::Normal(_)));
    // The first existing directory: missing ones are reported when the file is opened.
    let mut directory = path.parent();
    while let Some(missing) = directory
        && or_here(missing).symlink_metadata().is_err()
        && matches!(missing.components().next_back(), Some(Component::Normal(_)))
    {
        directory = missing.parent();
    }
    let directory = directory.and_then(|directory| or_here(directory).canonicalize().ok());
    match directory {
        Some(directory) if is_named && !is_link && is_below(&directory, roots) => Ok(()),
        _ => Err(denied(written, purpose)),
    }
}

/// The directory of a path without one.
fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn is_below(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}

/// It says the same whether there is such a file or not.
fn denied(written: &str, purpose: Purpose) -> Error {
    let verb = match purpose {
        Purpose::Read => "read",
        Purpose::Write => "write",
    };
    Error::denied(format!("this session may not {verb} the file \"{written}\""))
}
