//! JSON files, compressed with gzip or not: an object per row.
//!
//! [`records`] cuts a file into objects, [`names`] finds the columns of their members, [`new_members`] counts others, [`decode`] makes rows of them with the
//! typed arrays of [`values`], [`infer`] guesses types from the [kinds](kind) of values, and [`write`](mod@write) writes. A
//! file that begins with `[` is read as one array of objects, one of the format `json` whose first line has a part of an
//! object, or several, as objects one after the other, any other as an object per line; a file is written as one array ([`Json::ARRAY`]) or as an object
//! per line ([`Json::LINES`]).
//!
//! - A member belongs to the column of its name, as it stands or else without regard to case, unless columns, or members
//!   of one object, differ only by case. Members that are no columns are passed over, or told at the end; a column that an
//!   object does not have gets its DEFAULT.
//! - A column of texts has the JSON of what is no text.
//! - A row is refused, and reading continues, if it is not one JSON object, has a value that is not of its
//!   column's type, or none where there has to be one.

mod brackets;
mod decode;
mod infer;
mod kind;
mod names;
mod new_members;
mod options;
mod records;
mod values;
mod write;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alluvium::{
    Inferred, Portion, Refusal, Result, Sink, SinkRequest, SinkWriter, Source, SourceFiles,
    SourcePosition, SourceReader, SourceRequest,
};
use arrow::json::writer::{JsonArray, LineDelimited};

use crate::blocks::{self, Block, BlockReader, Blocks, Decode, Lines};
use crate::files::{self, File, Files};
use crate::input::{self, Counter, Text as Input, failed};
use crate::options::Compression;
use crate::target::Target;
#[cfg(feature = "kafka")]
pub(crate) use brackets::Scanner;
pub(crate) use decode::Decoder;
use new_members::NewMembers;
use options::Options;
pub(crate) use records::Batch;
use records::Records;
#[cfg(feature = "kafka")]
pub(crate) use records::name;
pub(crate) use values::{Text, values};
use write::JsonWriter;

/// JSON files: either one array of objects, or an object a line.
///
/// Both read the same files. They differ in their names, in the file names they handle, and in the layout they write.
#[derive(Clone, Copy, Debug)]
pub struct Json {
    name: &'static str,
    extensions: &'static [&'static str],
    layout: Layout,
}

/// How objects are written.
#[derive(Clone, Copy, Debug)]
enum Layout {
    Array,
    Lines,
}

impl Json {
    /// The format `json`: files whose names end with `.json`, written as one array.
    pub const ARRAY: Self = Self { name: "json", extensions: &[".json"], layout: Layout::Array };

    /// The format `jsonl`: files whose names end with `.jsonl` or `.ndjson`, written as an object a line.
    pub const LINES: Self =
        Self { name: "jsonl", extensions: &[".jsonl", ".ndjson"], layout: Layout::Lines };
}

impl Json {
    /// Whether its files may have objects one after the other over several lines; those of the format `jsonl` have lines.
    fn may_be_sequence(&self) -> bool {
        matches!(self.layout, Layout::Array)
    }
}

impl Source for Json {
    fn name(&self) -> &str {
        self.name
    }

    fn handles(&self, path: &Path) -> bool {
        input::ends_with(path, self.extensions)
    }

    fn check(&self, option: &str, value: &str) -> Result<()> {
        files::check(option, value, || Options::default().set(option, value))
    }

    fn follows(&self) -> bool {
        true
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
        let may_be_sequence = self.may_be_sequence();
        let one = |path: &Path, options: &[(String, String)]| {
            infer::infer(path, options, may_be_sequence)
        };
        files::infer(paths, base, options, &one)
    }

    fn files(&self, paths: &[PathBuf], request: &SourceRequest) -> Result<Option<SourceFiles>> {
        files::list(paths, request)
    }

    fn open(&self, request: &SourceRequest) -> Result<Box<dyn SourceReader>> {
        JsonReader::open_all(request, self.may_be_sequence())
    }
}

impl Sink for Json {
    fn name(&self) -> &str {
        self.name
    }

    fn handles(&self, path: &Path) -> bool {
        input::ends_with(path, self.extensions)
    }

    fn check(&self, option: &str, value: &str) -> Result<()> {
        Options::default().set(option, value)
    }

    /// The end of an array is written only once.
    fn resumes(&self, request: &SinkRequest) -> bool {
        let compression = Options::read(&request.options).ok().and_then(|read| read.compression);
        let path = &request.path;
        match self.layout {
            Layout::Array => false,
            Layout::Lines => Target::resumes(path, compression.unwrap_or(Compression::of(path))),
        }
    }

    fn create(&self, request: &SinkRequest) -> Result<Box<dyn SinkWriter>> {
        Ok(match self.layout {
            Layout::Array => Box::new(JsonWriter::<JsonArray>::create(request)?),
            Layout::Lines => Box::new(JsonWriter::<LineDelimited>::create(request)?),
        })
    }
}

/// Reads the rows of one file.
struct JsonReader {
    path: PathBuf,
    records: Records,
    counter: Counter,
    lasts: bool,
    request: SourceRequest,
    decoder: Decoder,
}

impl JsonReader {
    fn open_all(request: &SourceRequest, may_be_sequence: bool) -> Result<Box<dyn SourceReader>> {
        let open = move |file: File<'_>| -> Result<Box<dyn SourceReader>> {
            let File { path, request, passed } = file;
            let options = Options { passed, ..Options::read(&request.options)? };
            Self::open(path, request, &options, may_be_sequence)?.in_blocks(options)
        };
        Ok(Box::new(Files::open(request, open)?))
    }

    fn open(
        path: &Path,
        request: &SourceRequest,
        options: &Options,
        may_be_sequence: bool,
    ) -> Result<Self> {
        let failed = |error| failed("open", path, &error);
        let live = request.live.as_ref();
        let mut input = input::open(path, options.compression, live).map_err(failed)?;
        let mut records = Records::new(input.bytes, may_be_sequence).map_err(failed)?;
        let passed = options.tells_new_members.then_some(&options.passed[..]);
        let decoder =
            Decoder::new(request, passed).map_err(|error| failed(io::Error::other(error)))?;
        if input.lasts {
            // Wherever reading begins, objects stand as at the start of the file.
            let is_blank = records.is_blank();
            let start = request.file_start()?;
            let (offset, lines) =
                start.as_ref().map_or((0, 0), |start| (start.offset, start.lines));
            input = input::open_at(path, options.compression, offset, live).map_err(failed)?;
            records = match start {
                Some(_) => records.behind(input.bytes, (offset, lines)),
                // Rows that come later are on lines. They are not waited for here.
                None if is_blank => records.behind(input.bytes, records.place()),
                None => Records::new(input.bytes, may_be_sequence).map_err(failed)?,
            };
        }
        Ok(Self {
            path: path.to_owned(),
            records,
            counter: input.counter,
            lasts: input.lasts,
            request: request.clone(),
            decoder,
        })
    }
}

impl JsonReader {
    /// The same rows, of which several threads decode parts at once if so many are asked for and lines are objects.
    fn in_blocks(self, options: Options) -> Result<Box<dyn SourceReader>> {
        let Self { path, records, lasts, request, decoder, .. } = &self;
        if request.threads <= 1 || request.live.is_some() || !lasts || !records.has_lines() {
            return Ok(Box::new(self));
        }
        let failed = |error| failed("open", path, &error);
        let (offset, lines) = records.place();
        let input = input::open_at(path, options.compression, offset, None).map_err(failed)?;
        let blocks = Blocks::new(input.bytes, Lines, blocks::bytes(request), lines);
        let (threads, file) = (request.threads, path.clone());
        let records = records.behind(Input::of(Vec::new()), (0, 0));
        let all = decoder.tells_new_members().then(NewMembers::default);
        let all = Arc::new(Mutex::new(all));
        let (path, request) = (path.clone(), request.clone());
        let make = move || {
            let passed = options.tells_new_members.then_some(&options.passed[..]);
            let wrong = |error| input::failed("open", &path, &io::Error::other(error));
            let decoder = Decoder::new(&request, passed).map_err(wrong)?;
            let records = records.behind(Input::of(Vec::new()), (0, 0));
            let (path, request, counter) = (path.clone(), request.clone(), Counter::default());
            let reader = Self { path, records, counter, lasts: false, request, decoder };
            Ok(Part { reader, new_members: all.clone() })
        };
        Ok(Box::new(BlockReader::new(file, blocks, input.counter, threads, None, make)?))
    }

    /// The next rows, without what is told at the end.
    fn next_rows(&mut self) -> Result<Option<Portion>> {
        let failed = |error| failed("read", &self.path, &error);
        let SourceRequest { batch_rows, batch_bytes, .. } = self.request;
        let batch = self.records.read(batch_rows, batch_bytes, &self.path).map_err(failed)?;
        let Some((records, refused)) = batch else { return Ok(None) };
        let decoded = self.decoder.decode(records, &self.path);
        let mut portion = decoded.map_err(|error| failed(io::Error::other(error)))?;
        portion.refused.extend(refused);
        portion.refused.sort_by_key(|refusal| refusal.line);
        portion.bytes = self.counter.take();
        Ok(Some(portion))
    }

    /// What is told of members that were no columns, if there were any.
    fn told(&mut self, told: Vec<(String, u64, u64)>) -> Result<Option<Portion>> {
        if told.is_empty() {
            return Ok(None);
        }
        let tell = |(name, count, line): (String, u64, u64)| {
            let objects = if count == 1 { "one object" } else { &format!("{count} objects") };
            let message = format!(
                "{objects} from here on have a member \"{name}\", which is no column: none of the first objects has it; \
                 SAMPLE -1 looks at all for columns, NEW_MEMBERS 'pass' passes over it"
            );
            Refusal::new(&self.path, line, message)
        };
        let nothing = self.decoder.decode(Batch::default(), &self.path);
        let mut portion =
            nothing.map_err(|error| failed("read", &self.path, &io::Error::other(error)))?;
        portion.refused = told.into_iter().map(tell).collect();
        Ok(Some(portion))
    }
}

/// Reads blocks of lines, with the members that are no columns of all of them.
struct Part {
    reader: JsonReader,
    new_members: Arc<Mutex<Option<NewMembers>>>,
}

impl Part {
    fn all(&self) -> MutexGuard<'_, Option<NewMembers>> {
        self.new_members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Decode for Part {
    fn decode(&mut self, block: Block, give: &mut dyn FnMut(Portion) -> bool) -> Result<()> {
        let reader = &mut self.reader;
        reader.records = reader.records.behind(Input::of(block.text), (0, block.lines));
        while let Some(portion) = reader.next_rows()? {
            if !give(portion) {
                return Ok(());
            }
        }
        let found = self.reader.decoder.take_new_members();
        if let (Some(all), Some(found)) = (&mut *self.all(), found) {
            all.add(found);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Option<Portion>> {
        let told = self.all().take().map_or(Vec::new(), NewMembers::in_order);
        self.reader.told(told)
    }
}

impl SourceReader for JsonReader {
    fn next(&mut self) -> Result<Option<Portion>> {
        match self.next_rows()? {
            Some(portion) => Ok(Some(portion)),
            None => {
                let told = self.decoder.take_new_members().map_or(Vec::new(), NewMembers::in_order);
                self.told(told)
            }
        }
    }

    fn position(&self) -> Option<SourcePosition> {
        let (offset, lines) = self.records.place();
        self.lasts.then(|| SourcePosition::in_file(&self.path, offset, lines))
    }
}
