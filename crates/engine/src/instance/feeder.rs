//! The threads that read inputs into tables.
//!
//! Each table with inputs from files has a thread, which reads them one after the other: rows enter the table in the order of its
//! connectors and their rows, independently of other tables. Each input from elsewhere has a thread of its own, since it has no end.
//! Each portion is a transaction, unless it says that the next one belongs to the same. A source that pauses keeps its connections, and the portion
//! that it has read, for when it goes on; one that pauses when the engine starts is opened then. A thread that is too far ahead of the dataflows
//! waits for them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::thread;

use alluvium_sql::stack;
use alluvium_sql::statement::SourceChange;

use super::Instance;
use crate::durable::portion::{EnteredPortion, ReadPortion, SavedPosition};
use crate::error::{Error, Result};
use crate::source::{
    Holder, Input, InputReader, Live, Origin, Portion, Refusal, Refusing, SourceRequest,
    TransportRequest, named,
};
use crate::transaction::Transaction;

/// How many epochs of one table's inputs may be in flight.
const IN_FLIGHT: usize = 4;

/// The inputs of one table, ready to be read.
type Opened = Vec<(Arc<Input>, InputReader)>;

impl Instance {
    /// Starts all inputs that have not started, or none of them if one cannot be opened. If all have started it returns at
    /// once, without the definitions' lock, which CREATE may hold for long.
    pub(crate) fn start_inputs(self: &Arc<Self>) -> Result<()> {
        self.poison.check()?;
        let all_inputs = &self.connectors.inputs;
        // Those of a standby start when it is promoted.
        if self.is_standby() {
            return Ok(());
        }
        all_inputs.hold_paused();
        if all_inputs.waiting().is_empty() {
            return Ok(());
        }
        let _definitions = self.definitions.lock();
        self.start_these(all_inputs.waiting())
    }

    /// Has the source of a table pause, or go on.
    pub(crate) fn alter_source(self: &Arc<Self>, change: &SourceChange) -> Result<()> {
        let all_inputs = &self.connectors.inputs;
        self.definitions.alter_source(change, all_inputs)?;
        let _definitions = self.definitions.lock();
        self.start_these(all_inputs.held(&change.name))
    }

    /// Starts inputs, or none of them if one cannot be opened. The caller holds the definitions' lock.
    fn start_these(self: &Arc<Self>, inputs: Vec<Arc<Input>>) -> Result<()> {
        let all_inputs = &self.connectors.inputs;
        let mut tables: Vec<(String, Opened)> = Vec::new();
        for input in inputs {
            let views = self.writer.catalog.dependents(&input.table).len();
            let bytes = self.context.budget().policy().portion_for(views);
            let live = self.live(&input);
            let reader = self.open_input(&input, (self.settings.batch_rows, bytes), Some(live))?;
            let of_same = |(table, inputs): &&mut (String, Opened)| {
                *table == input.table && inputs.iter().all(|(input, _)| input.origin.is_files())
            };
            match tables.iter_mut().find(of_same).filter(|_| input.origin.is_files()) {
                Some((_, inputs)) => inputs.push((input, reader)),
                None => tables.push((input.table.clone(), vec![(input, reader)])),
            }
        }
        for (table, inputs) in tables {
            let all: Vec<Arc<Input>> = inputs.iter().map(|(input, _)| input.clone()).collect();
            all.iter().for_each(|input| all_inputs.started(input));
            let instance = Arc::downgrade(self);
            let spawned = thread::Builder::new()
                .name(format!("source-{table}"))
                .stack_size(stack::THREAD)
                .spawn(move || run(&instance, inputs));
            if let Err(error) = spawned {
                // They have ended, with an error that `wait_for_sources` returns.
                let error = Error::source(format!("no thread for a source: {error}"));
                all.iter().for_each(|input| all_inputs.ended(input, Err(error.clone())));
            }
        }
        Ok(())
    }

    /// How an input is read until it ends, its table is dropped, or the engine ends.
    fn live(self: &Arc<Self>, input: &Arc<Input>) -> Live {
        let (instance, of) = (Arc::downgrade(self), input.clone());
        // Transactions of inputs that go on do not keep the engine.
        let holders = self.connectors.inputs.holders().clone();
        let is_over = move || of.is_stopped() || holders.hold_alone(&instance);
        Live::new(input.liveness.linger, input.liveness.follow, is_over)
    }

    /// Opens an input where it was read up to, in portions of so many rows and bytes.
    pub(crate) fn open_input(
        &self,
        input: &Input,
        (batch_rows, batch_bytes): (usize, usize),
        live: Option<Live>,
    ) -> Result<InputReader> {
        let entry = self.writer.catalog.get(&input.table)?;
        let has_default = self.writer.defaults(&entry, self.writer.now()?).exist()?;
        let (schema, start) = (entry.schema.clone(), self.writer.position(&input.id()));
        input.begin(start.as_ref());
        let formats = &self.connectors.formats;
        let opened = match &input.origin {
            Origin::Files { path, source, options } => {
                let request = SourceRequest {
                    path: path.clone(),
                    base: PathBuf::new(),
                    options: options.clone(),
                    schema,
                    has_default,
                    batch_rows,
                    batch_bytes,
                    threads: 1,
                    live,
                    start,
                };
                formats.open(&**source, &request)
            }
            Origin::Transport { transport, connector, .. } => {
                let request = TransportRequest {
                    connector: connector.clone(),
                    schema,
                    has_default,
                    key: entry.as_table()?.primary_key.clone(),
                    batch_rows,
                    batch_bytes,
                    live,
                    start,
                    lasts: self.definitions.is_durable(),
                };
                formats.open_transport(&**transport, &request)
            }
        };
        opened.map_err(|error| named(input, error))
    }
}

impl Transaction {
    /// Brings a portion of an input in, which has a position if it is `entered`. Returns how many rows it has, and those that were
    /// refused.
    pub(crate) fn enter(
        &mut self,
        input: &Input,
        portion: &Portion,
        entered: Option<EnteredPortion>,
    ) -> Result<(u64, Vec<Refusal>)> {
        if portion.truncates {
            self.clear(&input.table)?;
        }
        let portion = self.with_kept(&input.table, portion)?;
        self.insert_portion(&input.table, &portion)?;
        let mut refusing = Refusing::new(self.budget());
        refusing.extend(portion.refused.iter().cloned());
        self.refuse(&input.table, &input.name, refusing);
        if let Some(entered) = entered {
            self.set_entered(entered);
        }
        Ok((portion.rows.num_rows() as u64, portion.refused.clone()))
    }
}

/// A transaction of an input, and what it has so far.
struct Open {
    /// Ends before the transaction.
    _holder: Holder,
    transaction: Transaction,
    counted: Counted,
}

/// What portions have.
#[derive(Default)]
struct Counted {
    rows: u64,
    bytes: u64,
    refused: Vec<Refusal>,
}

impl Open {
    fn begin(instance: &Arc<Instance>) -> Result<Self> {
        let transaction = Transaction::begin(instance, None)?;
        let holder = instance.connectors.inputs.holders().begin();
        Ok(Self { _holder: holder, transaction, counted: Counted::default() })
    }

    /// No other portion belongs to it.
    fn end(self) -> (Transaction, Counted) {
        (self.transaction, self.counted)
    }

    fn enter(
        &mut self,
        input: &Input,
        portion: &Portion,
        entered: Option<EnteredPortion>,
    ) -> Result<()> {
        let (rows, refused) = self.transaction.enter(input, portion, entered)?;
        if let Some(refusal) = refused.first().filter(|_| input.fails) {
            return Err(Error::source(refusal.to_string()));
        }
        self.transaction.check_refused(&refused)?;
        self.counted.rows += rows;
        self.counted.bytes += portion.bytes;
        self.counted.refused.extend(refused);
        Ok(())
    }
}

/// Reads the inputs of one table. After one that fails, the others are not read.
fn run(instance: &Weak<Instance>, inputs: Opened) {
    let mut failed: Option<Error> = None;
    for (input, reader) in inputs {
        let result = match &failed {
            Some(error) => Err(error.clone()),
            None => catch_unwind(AssertUnwindSafe(|| feed(instance, &input, reader)))
                .unwrap_or_else(|panic| match instance.upgrade() {
                    Some(instance) => Err(instance.poison.spread_panic("a source", &*panic)),
                    None => Ok(()),
                }),
        };
        failed = result.clone().err();
        let Some(instance) = instance.upgrade() else { return };
        instance.connectors.inputs.ended(&input, result.map_err(|error| named(&input, error)));
    }
}

/// Reads an input to its end, until its table is dropped, or until the engine is.
fn feed(instance: &Weak<Instance>, input: &Arc<Input>, mut reader: InputReader) -> Result<()> {
    let mut in_flight = VecDeque::with_capacity(IN_FLIGHT + 1);
    let mut begun: Option<Open> = None;
    let holders = instance.upgrade().map(|instance| instance.connectors.inputs.holders().clone());
    let Some(holders) = holders else { return Ok(()) };
    while let Some(portion) = reader.next()? {
        // A transaction that has begun would keep others waiting.
        if begun.is_none() {
            input.wait_resumed(|| holders.hold_alone(instance));
        }
        let Some(instance) = instance.upgrade() else { return Ok(()) };
        let goes_on = begun.take().filter(|_| !portion.restarts);
        let mut open = goes_on.map_or_else(|| Open::begin(&instance), Ok)?;
        if input.is_stopped() {
            return Ok(());
        }
        let position = reader.position()?;
        let entered = match &position {
            Some(end) if instance.definitions.is_durable() && !portion.continues => {
                Some(match reader.replays()? {
                    true if !instance.settings.records_rows => {
                        EnteredPortion::ReadAgain(ReadPortion::new(input.id(), &portion, end))
                    }
                    _ => EnteredPortion::Recorded(input.id(), SavedPosition::new(end)),
                })
            }
            _ => None,
        };
        let is_ahead = entered.is_some() && !input.liveness.follow;
        open.enter(input, &portion, entered)?;
        if portion.continues {
            begun = Some(open);
            continue;
        }
        let (transaction, counted) = open.end();
        // Rows from a pipe, or past the end of a file, may be the last for long.
        in_flight.push_back(match is_ahead {
            true => transaction.submit()?,
            false => transaction.commit()?,
        });
        let Counted { rows, bytes, refused } = counted;
        input.count(rows, bytes, refused, (position, reader.unread()?));
        if in_flight.len() > IN_FLIGHT
            && let Some(epoch) = in_flight.pop_front()
        {
            instance.reader.sequencer.wait(epoch)?;
            instance.reader.check_views()?;
        }
    }
    match (instance.upgrade(), in_flight.pop_back()) {
        (Some(instance), Some(epoch)) => {
            instance.reader.sequencer.wait(epoch)?;
            instance.reader.check_views()
        }
        _ => Ok(()),
    }
}
