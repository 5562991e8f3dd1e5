//! Files being written.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium::Visibility;
use flate2::write::GzEncoder;

use crate::options::Compression;

/// How much is collected before it is written.
const BUFFER: usize = 128 << 10;

/// A file being written, compressed or not.
///
/// A file that becomes visible when it is finished has a temporary name in the same folder until then, and is removed if
/// it is never finished.
pub struct Target {
    path: PathBuf,
    temporary: Option<PathBuf>,
    /// `None` once it has ended.
    to: Option<To>,
    ended: io::Sink,
}

enum To {
    Plain(BufWriter<File>),
    Gzip(Box<GzEncoder<BufWriter<File>>>),
}

impl Target {
    /// Begins to write. A path that is not a regular file, such as a pipe, is written to directly.
    pub fn create(
        path: &Path,
        compression: Compression,
        visibility: Visibility,
    ) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let special = fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
        if path.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        let temporary = (visibility == Visibility::WhenFinished && !special).then(|| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            path.with_file_name(format!(".{name}.{}.{number}.partial", process::id()))
        });
        let file = File::create(temporary.as_deref().unwrap_or(path))?;
        let file = BufWriter::with_capacity(BUFFER, file);
        let to = match compression {
            Compression::None => To::Plain(file),
            Compression::Gzip => {
                To::Gzip(Box::new(GzEncoder::new(file, flate2::Compression::default())))
            }
        };
        Ok(Self { path: path.to_owned(), temporary, to: Some(to), ended: io::sink() })
    }

    /// Its final path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all that is left, and gives the file its name.
    pub fn finish(mut self) -> io::Result<()> {
        let file = match self.to.take() {
            Some(To::Plain(file)) => file,
            Some(To::Gzip(gzip)) => gzip.finish()?,
            None => return Ok(()),
        };
        file.into_inner()?;
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.path)?;
            self.temporary = None;
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
        }
    }
}
