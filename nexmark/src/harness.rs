//! Running and measuring queries.
//!
//! Each run has its own engine. It creates the tables and the view, and then inserts the events: one transaction of
//! three batches per epoch, with the complete rows of all streams, whatever the query reads of them. Epochs are
//! pipelined; at most [`IN_FLIGHT`] of them are incomplete. With a [rate](Options::rate) epochs arrive by the clock
//! instead, whether the earlier ones are complete or not (an *open loop*), and latency counts from the scheduled
//! arrival: an engine that stalls is charged for all that it keeps waiting.
//!
//! [`measure`] runs a query twice. In the first run, which is timed, the view is not materialized and has no
//! subscribers: its changes are computed, and dropped at the end of the dataflow, as in engines that only emit
//! changes. The second run subscribes to the changes, to compute the checksum of the contents.

use std::collections::VecDeque;
use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use alluvium::{Builder, Change, Durability, Engine};
use arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use crossbeam_channel::unbounded;

use crate::checksum::Checksum;
use crate::error::{Error, Result};
use crate::latency::Latency;
use crate::measurement::Measurement;
use crate::query::Query;
use crate::resources;
use crate::source::revised::Revision;
use crate::source::{Events, Extent, Input, Source};
use crate::stream::Stream;
use crate::tables::{Keeping, Tables};

/// The largest number of incomplete epochs.
pub const IN_FLIGHT: usize = 4;

/// The number of keys of the side input of q13.
const SIDE_KEYS: i64 = 10_000;

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The events, and their division into epochs.
    pub extent: Extent,
    /// How the tables are declared.
    pub tables: Tables,
    /// The number of workers.
    pub workers: NonZeroUsize,
    /// The source of the events.
    pub source: Source,
    /// Some bids are deleted or changed in the epoch after theirs; see [`crate::source::revised`].
    pub revisions: bool,
    /// The memory budget in bytes; see [`Builder::memory`].
    pub memory: Option<usize>,
    /// How many events arrive per second; without a rate, as many as the engine takes.
    pub rate: Option<NonZeroU64>,
    /// How many threads merge state in the background; see [`Builder::merge_threads`].
    pub merge_threads: usize,
    /// The directory that keeps the state of each query, in a folder of its name. A run resumes where the last one ended.
    pub state: Option<PathBuf>,
    /// When epochs are on the disk, if there is such a directory.
    pub durability: Durability,
    /// Called when memory gets scarce; see [`Builder::on_pressure`].
    pub on_pressure: fn(usize),
}

impl Options {
    fn builder(&self) -> Builder {
        let Self { workers, memory, merge_threads, on_pressure, .. } = self;
        let builder = Engine::builder().workers(workers.get()).memory(*memory);
        builder.merge_threads(*merge_threads).on_pressure(*on_pressure)
    }
}

/// Measures a query.
///
/// Memory is that of the whole process since its start. In a process that has measured another query before, the
/// peaks may belong to that query.
pub fn measure(query: &Query, options: &Options) -> Result<Measurement> {
    let input = Input::prepare(&options.source, options.extent, options.revisions)?;
    let mut builder = options.builder();
    if let Some(directory) = &options.state {
        builder = builder.state(format!("file:{}", directory.join(query.name).display()));
        builder = builder.durability(options.durability);
    }
    let engine = start(query, options.tables, builder)?;

    let accounted = || {
        let state = engine.state();
        state.memory_bytes + state.kept_bytes + state.mapped_bytes
    };
    // The memory in which the source builds an epoch is allocated before the first row is inserted.
    let done = committed(&engine, options.extent)?;
    let mut epochs = input.epochs().skip(done).peekable();
    epochs.peek();
    let timed = || {
        let begun = Instant::now();
        let processor = resources::processor_time()?;
        let driven = drive(&engine, options, done, epochs)?;
        let elapsed = begun.elapsed().as_secs_f64();
        Ok((driven, elapsed, resources::processor_time()? - processor))
    };
    let (((latency, entered), elapsed, processor), used) = resources::sampled(accounted, timed)?;
    let memory = resources::memory()?;
    let state = engine.state();
    check(query, &engine)?;
    drop(engine);

    let (mut contents, mut decided) = (Checksum::default(), Checksum::default());
    let mut add = |Change { rows, weights, .. }: Change| {
        contents.add(&rows, &weights)?;
        decided.add(&without(&rows, query.open())?, &weights)
    };
    changes(query, options.tables, &input, options.builder(), &mut add)?;
    Ok(Measurement {
        query: query.name.to_owned(),
        events: options.extent.epochs().skip(done).map(|epoch| epoch.end - epoch.start).sum(),
        workers: options.workers.get() as u64,
        elapsed,
        processor,
        peak_bytes: memory.peak,
        anonymous_bytes: memory.anonymous,
        file_bytes: memory.file,
        used_bytes: used.most,
        used_anonymous_bytes: used.anonymous,
        accounted_bytes: used.accounted,
        input_bytes: input.bytes() as u64,
        entered_bytes: entered,
        state_rows: state.rows,
        memory_bytes: state.memory_bytes,
        memory_peak_bytes: state.memory_peak_bytes,
        disk_bytes: state.disk_bytes,
        spilled_bytes: state.spilled_bytes,
        contents,
        decided,
        latency,
    })
}

/// The rows without these columns.
pub fn without(rows: &RecordBatch, open: &[&str]) -> Result<RecordBatch> {
    let schema = rows.schema();
    let is_decided = |column: &usize| !open.contains(&schema.field(*column).name().as_str());
    let decided: Vec<usize> = (0..rows.num_columns()).filter(is_decided).collect();
    Ok(rows.project(&decided)?)
}

/// Runs a query over the whole input in a new engine, and returns the changes of its view in order.
pub fn changes(
    query: &Query,
    tables: Tables,
    input: &Input,
    builder: Builder,
    take: &mut dyn FnMut(Change) -> Result<()>,
) -> Result<()> {
    let engine = start(query, tables, builder)?;
    let mut subscription = engine.subscribe(query.name)?;
    let mut last = 0;
    for events in input.epochs() {
        last = commit(&engine, tables, &events?, None)?;
        engine.wait(last.saturating_sub(IN_FLIGHT as u64))?;
        while let Some(change) = subscription.try_next()? {
            take(change)?;
        }
    }
    engine.wait(last)?;
    while let Some(change) = subscription.try_next()? {
        take(change)?;
    }
    check(query, &engine)
}

/// An engine with the tables, the side input and the query's view, unless they are there.
fn start(query: &Query, tables: Tables, builder: Builder) -> Result<Engine> {
    let engine = builder.open()?;
    let known = engine.relations()?;
    let is_known = |name: &str| known.iter().any(|relation| relation.name == name);
    if !is_known("side_input") {
        execute(&engine, "tables.sql", &tables.sql())?;
    }
    let mut transaction = engine.begin()?;
    transaction.set_key("side_input");
    transaction.insert("side_input", side_input()?)?;
    engine.wait(transaction.commit()?)?;
    if !is_known(query.name) {
        execute(&engine, &format!("{}.sql", query.name), query.sql)?;
    }
    Ok(engine)
}

/// The key of an epoch's transaction: the numbers of its first event and of the one after its last.
fn key(epoch: &Range<u64>) -> String {
    format!("events {} to {}", epoch.start, epoch.end)
}

/// How many epochs an engine has.
fn committed(engine: &Engine, extent: Extent) -> Result<usize> {
    for (number, epoch) in extent.epochs().enumerate() {
        if engine.committed(&key(&epoch))?.is_none() {
            return Ok(number);
        }
    }
    Ok(extent.epochs().count())
}

fn execute(engine: &Engine, file: &str, sql: &str) -> Result<()> {
    engine.execute(sql).map(drop).map_err(|error| match error.position() {
        Some((line, column)) => Error::Statement { file: file.to_owned(), line, column, error },
        None => Error::Engine(error),
    })
}

/// The rows of `side_input`: each key with itself as text.
pub fn side_input() -> Result<RecordBatch> {
    let schema = Schema::new(vec![
        Field::new("key", DataType::Int64, false),
        Field::new("value", DataType::Utf8, false),
    ]);
    let keys = Int64Array::from_iter_values(0..SIDE_KEYS);
    let values = StringArray::from_iter_values((0..SIDE_KEYS).map(|key| key.to_string()));
    Ok(RecordBatch::try_new(Arc::new(schema), vec![Arc::new(keys), Arc::new(values)])?)
}

/// Commits all events after the first `done` epochs and waits for their completion. Returns the latencies of epochs and the
/// bytes of the events.
fn drive(
    engine: &Engine,
    options: &Options,
    done: usize,
    all: impl Iterator<Item = Result<Events>>,
) -> Result<(Latency, u64)> {
    let mut arrivals = Arrivals::of(options);
    let Options { extent, tables, .. } = *options;
    let (committed, epochs) = unbounded::<(u64, Instant)>();
    thread::scope(|scope| {
        // A separate thread observes the completion of each epoch.
        let observer = scope.spawn(move || {
            let mut latencies = Vec::new();
            for (epoch, begun) in epochs {
                engine.wait(epoch)?;
                latencies.push(begun.elapsed());
            }
            Ok(Latency::of(latencies))
        });
        let commit_all = || {
            let mut entered = 0;
            for (events, numbers) in all.zip(extent.epochs().skip(done)) {
                let events = events?;
                let begun = arrivals.next(engine)?;
                entered += events.bytes() as u64;
                let epoch = commit(engine, tables, &events, Some(key(&numbers)))?;
                arrivals.committed(epoch);
                // The observer runs until the channel closes, unless the engine fails.
                let _ = committed.send((epoch, begun));
            }
            Ok(entered)
        };
        let all: Result<u64> = commit_all();
        drop(committed);
        let latency: Result<Latency> =
            observer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let entered = all?;
        Ok((latency?, entered))
    })
}

/// When epochs are committed.
enum Arrivals {
    /// As soon as fewer than [`IN_FLIGHT`] are incomplete.
    Closed(VecDeque<u64>),
    /// At equal intervals.
    Open { next: Instant, interval: Duration },
}

impl Arrivals {
    /// The arrivals of a run that starts now.
    fn of(options: &Options) -> Self {
        match options.rate {
            None => Self::Closed(VecDeque::with_capacity(IN_FLIGHT)),
            Some(rate) => {
                let seconds = options.extent.epoch_rows as f64 / rate.get() as f64;
                let interval = Duration::from_secs_f64(seconds);
                // An epoch arrives with its last event.
                Self::Open { next: Instant::now() + interval, interval }
            }
        }
    }

    /// Waits for the arrival of the next epoch. Returns the time from which its latency counts.
    fn next(&mut self, engine: &Engine) -> Result<Instant> {
        match self {
            Self::Closed(in_flight) => {
                if in_flight.len() == IN_FLIGHT
                    && let Some(oldest) = in_flight.pop_front()
                {
                    engine.wait(oldest)?;
                }
                Ok(Instant::now())
            }
            Self::Open { next, interval } => {
                let scheduled = *next;
                *next += *interval;
                thread::sleep(scheduled.saturating_duration_since(Instant::now()));
                Ok(scheduled)
            }
        }
    }

    /// Notes the epoch that was committed.
    fn committed(&mut self, epoch: u64) {
        if let Self::Closed(in_flight) = self {
            in_flight.push_back(epoch);
        }
    }
}

/// Inserts events as one epoch.
fn commit(engine: &Engine, tables: Tables, events: &Events, key: Option<String>) -> Result<u64> {
    let mut transaction = engine.begin()?;
    if let Some(key) = key {
        transaction.set_key(key);
    }
    for (stream, rows) in Stream::ALL.into_iter().zip(events.arrive()?) {
        transaction.insert(stream.name(), rows)?;
    }
    if let Some(Revision { deleted, inserted }) = events.revision.clone() {
        let bid = Stream::Bid.name();
        match tables.keeping {
            Keeping::Unchecked => {
                let weights = vec![-1; deleted.num_rows()];
                transaction.change(bid, deleted, &weights)?;
            }
            _ => transaction.delete(bid, deleted)?,
        }
        transaction.insert(bid, inserted)?;
    }
    Ok(transaction.submit()?)
}

/// Fails if some rows of the view could not be computed.
fn check(query: &Query, engine: &Engine) -> Result<()> {
    let errors = engine.query("SELECT message FROM alluvium.errors")?;
    let count = errors.iter().map(RecordBatch::num_rows).sum();
    match errors.iter().find(|errors| errors.num_rows() > 0) {
        None => Ok(()),
        Some(errors) => {
            let message = errors.column(0).as_string::<i32>().value(0).to_owned();
            Err(Error::Rows { query: query.name.to_owned(), count, message })
        }
    }
}
