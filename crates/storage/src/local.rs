//! Blobs as files of a directory.
//!
//! A sealed blob `name` is the file `name`. While it is written it is the file `.name.unsealed`, which is not a valid name
//! of a blob, and sealing renames it. So a file under the name of a blob is complete, and the file system decides which
//! of several writers gets a name, also between processes. Only their user can read and write the files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::blob::Blob;
use crate::disk::platform;
use crate::error::{Error, Failure, Result};
use crate::heap::HeapBlob;
use crate::mapped::{FAULT_AROUND, MappedBlob};
use crate::name;
use crate::storage::{BlobWriter, Storage};

/// Larger files are mapped, others are read to the heap: mappings are a limited resource, and a small file costs more to
/// map than to read.
const LARGEST_ON_HEAP: u64 = 32 << 10;

/// How many bytes are buffered and then written with one call. The page cache may keep what one call wrote in one folio,
/// which is mapped as a whole.
const PIECE: usize = FAULT_AROUND;

/// A directory whose files are blobs.
///
/// Several of them, also in several processes, may use the same directory. Files whose names are not valid names of blobs
/// are ignored.
///
/// Large blobs are mapped to memory. Other programs must not write to the files or truncate them: that would change bytes
/// that readers take to be constant, or end the process with a signal. Deleting them does not affect readers.
///
/// A process that ends while it writes a blob leaves the file `.name.unsealed`, and the name stays taken until
/// the directory is opened [exclusively](LocalStorage::open_exclusive).
#[derive(Clone, Debug)]
pub struct LocalStorage {
    directory: PathBuf,
    /// Follows the name of a blob in the name of its file.
    suffix: &'static str,
    /// The first sync that failed.
    failure: Arc<OnceLock<Failure>>,
}

impl LocalStorage {
    /// Opens a directory, which is created if it does not exist.
    pub fn open(directory: impl AsRef<Path>) -> Result<LocalStorage> {
        LocalStorage::open_with_suffix(directory, "")
    }

    /// As [`open`](LocalStorage::open), for a directory that no other handle or process uses. Deletes the
    /// unsealed files that processes have left which ended while they wrote.
    pub fn open_exclusive(directory: impl AsRef<Path>) -> Result<LocalStorage> {
        let storage = LocalStorage::open(directory)?;
        let error = |cause| Error::path("list", &storage.directory, cause);
        for entry in fs::read_dir(&storage.directory).map_err(error)? {
            let entry = entry.map_err(error)?;
            if entry.file_name().to_str().is_some_and(is_unsealed)
                && entry.file_type().map_err(error)?.is_file()
            {
                let path = entry.path();
                fs::remove_file(&path).map_err(|cause| Error::path("delete", &path, cause))?;
            }
        }
        Ok(storage)
    }

    /// The blobs of a directory that exists, to look at: opening it changes nothing. It may belong to a running program.
    pub fn existing(directory: impl Into<PathBuf>) -> LocalStorage {
        LocalStorage { directory: directory.into(), suffix: "", failure: Arc::default() }
    }

    /// As [`open`](LocalStorage::open); the file of the blob `name` is `name` and `suffix`.
    pub(crate) fn open_with_suffix(
        directory: impl AsRef<Path>,
        suffix: &'static str,
    ) -> Result<LocalStorage> {
        let given = directory.as_ref();
        let directory = std::path::absolute(given)
            .and_then(|directory| fs::create_dir_all(&directory).map(|()| directory))
            .map_err(|cause| Error::path("open", given, cause))?;
        Ok(LocalStorage { directory, suffix, failure: Arc::default() })
    }

    /// The directory, as an absolute path.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The error of a sync, for this and all later ones.
    fn fail(&self, path: &Path, cause: io::Error) -> Error {
        let failure = Failure::new("sync", path.display().to_string(), cause);
        self.failure.get_or_init(|| failure).final_error()
    }

    /// The path of a blob, if the name is valid.
    fn path(&self, name: &str) -> Result<PathBuf> {
        name::check(name)?;
        Ok(self.directory.join(format!("{name}{}", self.suffix)))
    }
}

impl Storage for LocalStorage {
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>> {
        let path = self.path(name)?;
        let unsealed = self.directory.join(unsealed(name, self.suffix));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let file = platform::private(&mut options)
            .open(&unsealed)
            .map_err(|cause| named("create", &path, cause))?;
        let writer = Writer {
            name: name.to_owned(),
            path,
            unsealed,
            file,
            written: 0,
            waiting: Vec::with_capacity(PIECE),
            sealed: false,
        };
        // Checked now: the unsealed file prevents others from sealing a blob of this name in between.
        match writer.path.try_exists() {
            Ok(false) => Ok(Box::new(writer)),
            Ok(true) => Err(Error::Exists { place: writer.path.display().to_string() }),
            Err(cause) => Err(Error::path("create", &writer.path, cause)),
        }
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Blob>> {
        let path = self.path(name)?;
        let file = File::open(&path).map_err(|cause| named("open", &path, cause))?;
        read_or_map(name, &path, file).map_err(|cause| Error::path("open", &path, cause))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let error = |cause| Error::path("list", &self.directory, cause);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(error)? {
            let entry = entry.map_err(error)?;
            if let Some(name) = entry.file_name().to_str()
                && let Some(name) = name.strip_suffix(self.suffix)
                && name.starts_with(prefix)
                && name::is_valid(name)
                && entry.file_type().map_err(error)?.is_file()
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn delete(&self, name: &str) -> Result<()> {
        let path = self.path(name)?;
        fs::remove_file(&path).map_err(|cause| named("delete", &path, cause))
    }

    fn barrier(&self, names: &[&str]) -> Result<()> {
        if let Some(failure) = self.failure.get() {
            return Err(failure.final_error());
        }
        for name in names {
            let path = self.path(name)?;
            let file =
                platform::open_to_sync(&path).map_err(|cause| named("sync", &path, cause))?;
            file.sync_data().map_err(|cause| self.fail(&path, cause))?;
        }
        // Its own name is in the directory above.
        for path in self.directory.ancestors().take(2) {
            platform::sync(path).map_err(|cause| self.fail(path, cause))?;
        }
        Ok(())
    }
}

/// The name of a blob's file while it is written.
pub(crate) fn unsealed(name: &str, suffix: &str) -> String {
    format!(".{name}{suffix}.unsealed")
}

/// The name that an unsealed file will have.
pub(crate) fn sealed(file: &str) -> Option<&str> {
    file.strip_prefix('.')?.strip_suffix(".unsealed")
}

/// Whether this is the name of a blob's file while it is written.
pub(crate) fn is_unsealed(file: &str) -> bool {
    sealed(file).is_some_and(name::is_valid)
}

/// Whether this is the name of a blob's file, sealed or not.
pub(crate) fn is_file_of_blob(file: &str, suffix: &str) -> bool {
    let name = sealed(file).unwrap_or(file).strip_suffix(suffix);
    name.is_some_and(name::is_valid)
}

/// The error of an operation on a blob's file.
fn named(operation: &'static str, path: &Path, cause: io::Error) -> Error {
    Error::blob(operation, path.display().to_string(), cause)
}

/// The blob in a complete file.
fn read_or_map(name: &str, path: &Path, mut file: File) -> io::Result<Arc<dyn Blob>> {
    let length = file.metadata()?.len();
    if length > LARGEST_ON_HEAP {
        return Ok(Arc::new(MappedBlob::new(name, path, file)?));
    }
    let mut bytes = Vec::with_capacity(length as usize);
    file.read_to_end(&mut bytes)?;
    Ok(Arc::new(HeapBlob::new(name, path.display().to_string(), bytes.into())))
}

struct Writer {
    name: String,
    path: PathBuf,
    unsealed: PathBuf,
    file: File,
    /// The bytes in the file, in whole pieces.
    written: u64,
    /// The bytes after those, less than a piece.
    waiting: Vec<u8>,
    sealed: bool,
}

impl Writer {
    /// Fails if the blob is sealed: readers rely on its bytes.
    fn check(&self, operation: &'static str) -> Result<()> {
        match self.sealed {
            true => Err(Error::Sealed { place: self.path.display().to_string(), operation }),
            false => Ok(()),
        }
    }

    /// Writes at a position, not at the end: this overwrites the rest of a failed write.
    fn write(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        let mut pieces = bytes.chunks(PIECE).zip((position..).step_by(PIECE));
        pieces.try_for_each(|(piece, position)| platform::write_all_at(&self.file, piece, position))
    }

    /// Writes the buffered and these bytes in whole pieces, and buffers the rest.
    fn write_pieces(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (head, rest) = bytes.split_at(PIECE - self.waiting.len());
        let (pieces, tail) = rest.split_at(rest.len() / PIECE * PIECE);
        let waiting = self.waiting.len();
        self.waiting.extend_from_slice(head);
        let written = self
            .write(&self.waiting, self.written)
            .and_then(|()| self.write(pieces, self.written + PIECE as u64));
        if let Err(cause) = written {
            self.waiting.truncate(waiting);
            // Release the space for others. If that fails, the bytes are overwritten later, or cut off at the end.
            let _ = self.file.set_len(self.written);
            return Err(cause);
        }
        self.written += (PIECE + pieces.len()) as u64;
        self.waiting.clear();
        self.waiting.extend_from_slice(tail);
        Ok(())
    }

    /// Writes the buffered bytes, opens the file as a blob, and only then gives it its name.
    fn finish(&mut self) -> io::Result<Arc<dyn Blob>> {
        self.write(&self.waiting, self.written)?;
        // A failed write may have left some bytes.
        self.file.set_len(self.len())?;
        let blob = read_or_map(&self.name, &self.path, File::open(&self.unsealed)?)?;
        fs::rename(&self.unsealed, &self.path)?;
        self.sealed = true;
        Ok(blob)
    }
}

impl BlobWriter for Writer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.check("append to")?;
        if bytes.len() < PIECE - self.waiting.len() {
            self.waiting.extend_from_slice(bytes);
            return Ok(());
        }
        self.write_pieces(bytes).map_err(|cause| Error::path("append to", &self.path, cause))
    }

    fn len(&self) -> u64 {
        self.written + self.waiting.len() as u64
    }

    fn held(&self) -> usize {
        // The part of the allocation that was used stays resident.
        self.len().min(PIECE as u64) as usize
    }

    fn seal(&mut self) -> Result<Arc<dyn Blob>> {
        self.check("seal")?;
        self.finish().map_err(|cause| Error::path("seal", &self.path, cause))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.sealed {
            // There is no caller to report an error to.
            let _ = fs::remove_file(&self.unsealed);
        }
    }
}
