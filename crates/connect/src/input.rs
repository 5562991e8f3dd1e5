//! A file to read, compressed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium::unstable::{MOST_COLUMNS, MOST_NAME_BYTES};
use alluvium::{Error, Live, Result};
use flate2::bufread::MultiGzDecoder;

use crate::live::LiveText;
use crate::options::Compression;

/// How much is read from the system, or decompressed, at a time.
const BUFFER: usize = 128 << 10;

/// How many rows of a file are looked at to find its columns.
pub const SAMPLE: usize = 20_480;

/// How many bytes of it are, give or take one row.
pub const SAMPLE_BYTES: usize = 8 << 20;

/// The bytes of a file, and how many of them, as they are stored, have been read.
pub struct Input {
    pub bytes: Text,
    pub counter: Counter,
    /// Whether it can be opened and read again, as a pipe cannot.
    pub lasts: bool,
}

/// The text of a file.
pub enum Text {
    /// All of it is there.
    Whole(Box<dyn BufRead + Send>),
    /// It may come while it is read.
    Live(LiveText),
}

impl Text {
    /// A text that was read already.
    pub fn of(text: Vec<u8>) -> Self {
        Self::Whole(Box::new(Cursor::new(text)))
    }

    /// A portion begins.
    pub fn begin_portion(&mut self) {
        if let Self::Live(live) = self {
            live.begin_portion();
        }
    }

    /// Whether the next line belongs to the portion, too; false if its rows would have to wait too long for it.
    pub fn goes_on(&mut self) -> io::Result<bool> {
        match self {
            Self::Whole(_) => Ok(true),
            Self::Live(live) => live.goes_on(),
        }
    }
}

impl Read for Text {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Whole(text) => text.read(to),
            Self::Live(text) => text.read(to),
        }
    }
}

impl BufRead for Text {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::Whole(text) => text.fill_buf(),
            Self::Live(text) => text.fill_buf(),
        }
    }

    fn consume(&mut self, length: usize) {
        match self {
            Self::Whole(text) => text.consume(length),
            Self::Live(text) => text.consume(length),
        }
    }
}

/// Counts bytes as they are read.
#[derive(Clone, Default)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    /// How many bytes were read since this was last asked.
    pub fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }

    pub fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

struct Counted<R> {
    input: R,
    counter: Counter,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.counter.add(read);
        Ok(read)
    }
}

/// The first bytes of a file that is compressed with gzip.
const GZIP: &[u8] = &[0x1F, 0x8B];

/// Opens a file to read what is there of it, or a pipe, whose rows may come while it is read. If nothing else is said, what
/// begins as gzip does is decompressed, whatever the file's name.
pub fn open(
    path: &Path,
    compression: Option<Compression>,
    live: Option<&Live>,
) -> io::Result<Input> {
    let file = File::open(path)?;
    match live.filter(|_| file.metadata().is_ok_and(|metadata| !metadata.is_file())) {
        Some(live) => open_live(file, compression, 0, live),
        None => open_whole(file, compression, 0),
    }
}

/// As [`open`], after the first `offset` bytes of the text of a file, which may grow. A compressed file has to be read up
/// to there.
pub fn open_at(
    path: &Path,
    compression: Option<Compression>,
    offset: u64,
    live: Option<&Live>,
) -> io::Result<Input> {
    let file = File::open(path)?;
    match live.filter(|live| live.follow) {
        Some(live) => open_live(file, compression, offset, live),
        None => open_whole(file, compression, offset),
    }
}

fn open_live(
    mut file: File,
    compression: Option<Compression>,
    offset: u64,
    live: &Live,
) -> io::Result<Input> {
    let counter = Counter::default();
    let lasts = file.metadata()?.is_file();
    let mut start = Vec::new();
    if lasts && compression.is_none() {
        (&mut file).take(GZIP.len() as u64).read_to_end(&mut start)?;
        file.rewind()?;
    }
    let mut text = LiveText::new(file, live.clone(), counter.clone(), offset)?;
    let gzip = match compression {
        Some(compression) => compression == Compression::Gzip,
        None if lasts => start == GZIP,
        None => text.fill_buf()?.starts_with(GZIP),
    };
    let bytes = match gzip {
        true if live.follow => {
            return Err(io::Error::other("it is compressed, so that \"follow\" cannot read it"));
        }
        true => Text::Whole(Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(text)))),
        false => Text::Live(text),
    };
    Ok(Input { bytes, counter, lasts })
}

fn open_whole(file: File, compression: Option<Compression>, offset: u64) -> io::Result<Input> {
    let counter = Counter::default();
    let lasts = file.metadata()?.is_file();
    let file = Counted { input: file, counter: counter.clone() };
    let mut bytes = BufReader::with_capacity(BUFFER, file);
    let gzip = match compression {
        Some(compression) => compression == Compression::Gzip,
        None => bytes.fill_buf()?.starts_with(GZIP),
    };
    let bytes: Box<dyn BufRead + Send> = match gzip {
        true => {
            let mut text = BufReader::with_capacity(BUFFER, MultiGzDecoder::new(bytes));
            let skipped = io::copy(&mut (&mut text).take(offset), &mut io::sink())?;
            check_length(skipped, offset)?;
            Box::new(text)
        }
        false if offset > 0 => {
            let Counted { mut input, counter } = bytes.into_inner();
            check_length(input.metadata()?.len(), offset)?;
            input.seek(SeekFrom::Start(offset))?;
            counter.take();
            Box::new(BufReader::with_capacity(BUFFER, Counted { input, counter }))
        }
        false => Box::new(bytes),
    };
    Ok(Input { bytes: Text::Whole(bytes), counter, lasts })
}

/// Fails if a file is shorter than its text that was read before.
pub fn check_length(length: u64, read: u64) -> io::Result<()> {
    match length < read {
        true => Err(io::Error::other(format!(
            "it is shorter than what was read of it before ({length} of {read})"
        ))),
        false => Ok(()),
    }
}

/// Fails if a file has more columns than tables can have, or their names have more bytes. They are counted before there is
/// anything for each of them.
pub fn check_columns(path: &Path, columns: usize, name_bytes: usize) -> Result<()> {
    let file = path.display();
    if columns > MOST_COLUMNS {
        return Err(Error::source(format!("\"{file}\" has more than {MOST_COLUMNS} columns")));
    }
    if name_bytes > MOST_NAME_BYTES {
        return Err(Error::source(format!(
            "the names of the columns of \"{file}\" have more than {MOST_NAME_BYTES} bytes together"
        )));
    }
    Ok(())
}

/// The error of a file, and what to look at.
pub fn failed(verb: &str, path: &Path, error: &io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => hint(path),
        _ => "",
    };
    Error::source(format!("cannot {verb} \"{}\": {error}{hint}", path.display()))
}

/// What to look at if there is no file.
pub fn hint(path: &Path) -> &'static str {
    match path.is_absolute() {
        true => "; check the path",
        false => {
            "; a relative path counts from the SQL file's folder, or from where the program runs"
        }
    }
}

/// Whether a file's name ends with one of these, with or without `.gz` after it.
pub fn ends_with(path: &Path, extensions: &[&str]) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    extensions.iter().any(|extension| name.ends_with(extension))
}
