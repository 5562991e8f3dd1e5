//! Files being written.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use alluvium::Visibility;
use alluvium::unstable::platform;
use flate2::write::GzEncoder;

use crate::options::Compression;

/// How much is collected before it is written.
const BUFFER: usize = 128 << 10;

/// A file being written, compressed or not.
///
/// A file that becomes visible when it is finished has a temporary name in the same folder until then, and is removed if
/// it is never finished. It is locked meanwhile: one that can be locked is what a process has left that was killed, and
/// is removed when the same file is written again.
pub struct Target {
    path: PathBuf,
    temporary: Option<PathBuf>,
    /// `None` once it has ended.
    to: Option<To>,
    ended: io::Sink,
}

/// The temporary names of this process; `None` when it is about to end.
static UNFINISHED: Mutex<Option<BTreeSet<PathBuf>>> = Mutex::new(Some(BTreeSet::new()));

/// Removes the files of this process that are not finished, also while other threads write them. For a process that is
/// about to end.
pub fn remove_unfinished() {
    for temporary in unfinished().take().into_iter().flatten() {
        // It may just have been finished.
        let _ = fs::remove_file(temporary);
    }
}

fn unfinished() -> MutexGuard<'static, Option<BTreeSet<PathBuf>>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

enum To {
    Plain(BufWriter<File>),
    Gzip(Box<GzEncoder<BufWriter<File>>>),
}

impl Target {
    /// Whether writing can resume after a restart.
    pub fn resumes(path: &Path, compression: Compression) -> bool {
        compression == Compression::None && fs::metadata(path).map_or(true, |found| found.is_file())
    }

    /// Begins to write, or resumes after the first bytes of a file. A path that is not a regular file, such as a pipe, is
    /// written to directly.
    pub fn create(
        path: &Path,
        compression: Compression,
        visibility: Visibility,
        start: Option<u64>,
    ) -> io::Result<Self> {
        if let Some(start) = start {
            return Self::go_on(path, start);
        }
        let before = fs::metadata(path).ok();
        if before.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        let special = before.as_ref().is_some_and(|found| !found.is_file());
        let (file, temporary) = match visibility {
            Visibility::WhenFinished if !special => {
                let (file, temporary) = create_temporary(path)?;
                (file, Some(temporary))
            }
            _ => (File::create(path)?, None),
        };
        if let (Some(before), Some(_)) = (before, &temporary) {
            file.set_permissions(before.permissions())?;
        }
        let file = BufWriter::with_capacity(BUFFER, file);
        let to = match compression {
            Compression::None => To::Plain(file),
            Compression::Gzip => {
                To::Gzip(Box::new(GzEncoder::new(file, flate2::Compression::default())))
            }
        };
        Ok(Self { path: path.to_owned(), temporary, to: Some(to), ended: io::sink() })
    }

    fn go_on(path: &Path, start: u64) -> io::Result<Self> {
        let mut file = File::options().write(true).open(path)?;
        let length = file.metadata()?.len();
        if length < start {
            return Err(io::Error::other(format!(
                "it has {length} bytes, and {start} were written to it before; put the file back as it was"
            )));
        }
        file.set_len(start)?;
        file.seek(SeekFrom::End(0))?;
        let to = Some(To::Plain(BufWriter::with_capacity(BUFFER, file)));
        Ok(Self { path: path.to_owned(), temporary: None, to, ended: io::sink() })
    }

    /// Makes the text written durable, and returns its length; a compressed file has none.
    pub fn sync(&mut self) -> io::Result<u64> {
        let Some(To::Plain(file)) = &mut self.to else {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        };
        file.flush()?;
        file.get_ref().sync_all()?;
        platform::sync(folder_of(&self.path))?;
        file.get_mut().stream_position()
    }

    /// Its final path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all that is left, and gives the file its name, durably: after a crash the name has the old file or the new one.
    pub fn finish(mut self) -> io::Result<()> {
        let file = match self.to.take() {
            Some(To::Plain(file)) => file,
            Some(To::Gzip(gzip)) => gzip.finish()?,
            None => return Ok(()),
        };
        let file = file.into_inner()?;
        if let Some(temporary) = &self.temporary {
            file.sync_all()?;
            fs::rename(temporary, &self.path)?;
            forget(temporary);
            self.temporary = None;
            platform::sync(folder_of(&self.path))?;
        }
        Ok(())
    }

    fn to(&mut self) -> &mut dyn Write {
        match &mut self.to {
            Some(To::Plain(file)) => file,
            Some(To::Gzip(gzip)) => gzip,
            None => &mut self.ended,
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to().flush()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // An error is ignored: no caller could handle it.
            let _ = fs::remove_file(temporary);
            forget(temporary);
        }
    }
}

fn forget(temporary: &Path) {
    if let Some(unfinished) = &mut *unfinished() {
        unfinished.remove(temporary);
    }
}

/// The folder that a path is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// A new file beside `path` that is locked, and what killed processes have left of earlier ones removed.
fn create_temporary(path: &Path) -> io::Result<(File, PathBuf)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = folder_of(path);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = folder.join(format!(".{name}.{}.{number}.partial", process::id()));
        let mut unfinished = unfinished();
        let Some(all) = &mut *unfinished else {
            return Err(io::Error::other("the process is ending"));
        };
        let file = File::create(&temporary)?;
        // Some file systems have no locks. Then no other process can lock the file either.
        let taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        // Another process may have taken it for a leftover before it was locked.
        if !taken && temporary.exists() {
            all.insert(temporary.clone());
            drop(unfinished);
            // A leftover that cannot be removed only takes up space.
            let _ = remove_leftovers(folder, &name, &file.metadata()?);
            return Ok((file, temporary));
        }
    }
}

/// Removes unfinished files of this name, of the owner of `own`, that no process writes.
fn remove_leftovers(folder: &Path, name: &str, own: &Metadata) -> io::Result<()> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let file = entry.file_name();
        let rest = file.to_str().and_then(|file| file.strip_prefix('.')?.strip_prefix(name));
        let numbers = rest.and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".partial"));
        if numbers
            .and_then(|numbers| numbers.split_once('.'))
            .is_some_and(|(process, number)| is_number(process) && is_number(number))
            && let Ok(metadata) = entry.metadata()
            && metadata.is_file()
            && platform::is_same_owner(&metadata, own)
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
