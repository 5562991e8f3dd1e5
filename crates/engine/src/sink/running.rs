//! Outputs of changes, each written by a thread of its own.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use alluvium_sql::stack;
use alluvium_trace::Epoch;
use crossbeam_channel::{Receiver, Sender, unbounded};

use super::ChangesWriter;
use super::delivery::Trouble;
use crate::changes::pace::Pace;
use crate::durable::checkpoint::OutputName;
use crate::error::{Error, Result};
use crate::log;
use crate::poison::Poison;
use crate::source::TransportConnector;
use crate::subscription::feed::{Feed, SubscriberId, Waiting};
use crate::subscription::{Step, Subscription};
use crate::worker::DataflowId;

/// An output of changes that is being written.
pub(crate) struct Running {
    pub(crate) relation: String,
    /// The name of the sink that it is, if it is one.
    pub(crate) sink: Option<String>,
    /// What it is written by: `file`, or the name of a delivery.
    pub(crate) kind: String,
    /// The connector to another system.
    pub(crate) connector: Option<TransportConnector>,
    pub(crate) path: PathBuf,
    pub(crate) subscription: DataflowId,
    feed: Arc<Feed>,
    subscriber: SubscriberId,
    written: Arc<Written>,
    thread: JoinHandle<Result<()>>,
    /// The marks that a checkpoint asks for, if it can resume after a restart.
    marks: Option<Marks>,
    is_delivery: bool,
    /// Set when nobody waits for the changes any more.
    is_over: Arc<AtomicBool>,
    trouble: Arc<Trouble>,
}

/// How long a relation that is dropped waits for another system to take its last changes.
const LAST_CHANGES: Duration = Duration::from_secs(5);

/// How far an output has been written.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) pace: Pace,
    /// The last epoch with changes that are written; 0 if there is none.
    pub(crate) epoch: AtomicU64,
    /// How it has ended, once it has.
    pub(crate) ended: OnceLock<std::result::Result<(), String>>,
    /// Whether changes are there once, also after a restart.
    pub(crate) is_exact: OnceLock<bool>,
}

/// Opens a writer. The thread that writes does it: an engine that starts does not wait for other systems.
pub(crate) type OpenWriter = Box<dyn FnOnce() -> Result<ChangesWriter> + Send>;

/// The places in an output that checkpoints ask for.
#[derive(Clone)]
pub(crate) struct Marks {
    output: OutputName,
    feed: Arc<Feed>,
    reached: Receiver<(Epoch, u64)>,
}

/// The rows that are written, and where.
pub(crate) struct Writing {
    /// The name of the sink that it is, if it is one.
    pub(crate) sink: Option<String>,
    /// What they are written by: `file`, or the name of a delivery.
    pub(crate) kind: String,
    /// The connector to another system.
    pub(crate) connector: Option<TransportConnector>,
    pub(crate) path: PathBuf,
    pub(crate) subscription: Subscription,
    pub(crate) open: OpenWriter,
    /// The epoch of the checkpoint that the engine starts from: the changes up to it are written already.
    pub(crate) restored: Option<Epoch>,
    /// How it resumes after a restart: its name in checkpoints, and the poison that stops the engine if it cannot be written.
    pub(crate) lasting: Option<(OutputName, Arc<Poison>)>,
    /// Whether it writes to another system.
    pub(crate) is_delivery: bool,
    /// Set when nobody waits for the changes any more.
    pub(crate) is_over: Arc<AtomicBool>,
    /// Why another system does not take changes for now.
    pub(crate) trouble: Arc<Trouble>,
}

impl Running {
    /// Writes the changes of a relation until there will be no more.
    pub(crate) fn start(relation: &str, writing: Writing) -> Result<Self> {
        let (kind, connector) = (writing.kind.clone(), writing.connector.clone());
        let (sink, path) = (writing.sink.clone(), writing.path.clone());
        let subscription = writing.subscription.id();
        let (feed, subscriber) =
            (writing.subscription.feed().clone(), writing.subscription.subscriber());
        let written = Arc::<Written>::default();
        let (reach, reached) = unbounded();
        let marks = writing.lasting.as_ref().map(|(output, _)| Marks {
            output: output.clone(),
            feed: feed.clone(),
            reached,
        });
        let (is_delivery, is_over) = (writing.is_delivery, writing.is_over.clone());
        let trouble = writing.trouble.clone();
        let notes = written.clone();
        let relation = relation.to_owned();
        let written_relation = relation.clone();
        let thread = thread::Builder::new()
            .name(format!("sink-{relation}"))
            .stack_size(stack::THREAD)
            .spawn(move || writing.run(&written_relation, &reach, &notes))
            .map_err(|error| Error::source(format!("no thread for a sink: {error}")))?;
        Ok(Self {
            relation,
            sink,
            kind,
            connector,
            path,
            subscription,
            feed,
            subscriber,
            written,
            thread,
            marks,
            is_delivery,
            is_over,
            trouble,
        })
    }

    /// Waits until all that was delivered is written.
    pub(crate) fn join(self) -> Result<()> {
        // A panic has poisoned the engine already.
        self.thread.join().unwrap_or(Ok(()))
    }

    /// Nobody waits for the changes any more: a writer that waits for another system ends.
    pub(super) fn give_up(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Waits until all that was delivered is written, if its relation has not failed; not for ever for another system.
    pub(crate) fn end(self) -> Result<()> {
        let has_failed = self.has_failed();
        let start = Instant::now();
        while self.is_delivery && !self.thread.is_finished() {
            if start.elapsed() >= LAST_CHANGES {
                // The relation goes all the same, and its last changes with it. The thread ends when its system answers.
                self.give_up();
                return Ok(());
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.join().or_else(|error| if has_failed { Ok(()) } else { Err(error) })
    }

    /// Whether its relation has failed: the output lacks changes.
    pub(super) fn has_failed(&self) -> bool {
        self.feed.has_failed()
    }

    /// How far it is.
    pub(super) fn written(&self) -> &Written {
        &self.written
    }

    /// Why another system does not take changes for now.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.get()
    }

    /// The changes that wait to be written.
    pub(super) fn waiting(&self) -> Option<Waiting> {
        self.feed.waiting(self.subscriber)
    }

    /// The thread that writes.
    pub(super) fn thread(&self) -> ThreadId {
        self.thread.thread().id()
    }

    /// The marks that a checkpoint asks for.
    pub(super) fn marks(&self) -> Option<&Marks> {
        self.marks.as_ref()
    }
}

impl Marks {
    /// Asks for the place after the changes up to an epoch. The caller keeps later ones from being committed.
    pub(crate) fn mark(&self, epoch: Epoch) {
        self.feed.mark(epoch);
    }

    /// All workers have delivered their changes up to that epoch.
    pub(crate) fn pass(&self) {
        self.feed.pass_mark();
    }

    /// Whether the relation it writes has failed: the output does not resume after a restart.
    pub(crate) fn has_failed(&self) -> bool {
        self.feed.has_failed()
    }

    /// Waits until the changes up to that epoch are durable. Returns the length of what has them; `None` if it was not
    /// written to the end.
    pub(crate) fn length(self, epoch: Epoch) -> Option<(OutputName, u64)> {
        let Self { output, reached, .. } = self;
        // A checkpoint that failed may have left others.
        let (_, length) = reached.iter().find(|(reached, _)| *reached == epoch)?;
        Some((output, length))
    }
}

impl Writing {
    fn run(self, relation: &str, reached: &Sender<(Epoch, u64)>, notes: &Written) -> Result<()> {
        log::output_started(relation);
        let ended = self.write_to_end(reached, notes);
        let told = ended.clone().map_err(|error| error.to_string());
        log::output_ended(relation, &told);
        // Nobody else sets it.
        let _ = notes.ended.set(told);
        ended
    }

    fn write_to_end(self, reached: &Sender<(Epoch, u64)>, notes: &Written) -> Result<()> {
        let Self { path, mut subscription, open, restored, lasting, is_over, .. } = self;
        let write = || {
            let mut writer = open()?;
            let delivered = writer.delivered(restored)?;
            // Nobody else sets it.
            let _ = notes.is_exact.set(writer.is_exact(lasting.is_some())?);
            write(&mut subscription, &mut writer, delivered, reached, notes)?;
            writer.finish()
        };
        let written = write();
        if let (Err(error), Some((_, poison))) = (&written, &lasting)
            && !is_over.load(Ordering::Relaxed)
            && !subscription.feed().has_failed()
            && poison.check().is_ok()
        {
            poison.spread(format!(
                "the output \"{}\" cannot be written: {error}; once it can, open the engine again: it goes on where it was",
                path.display()
            ));
        }
        written
    }
}

/// Writes all changes after those that were delivered.
fn write(
    subscription: &mut Subscription,
    writer: &mut ChangesWriter,
    delivered: Option<Epoch>,
    reached: &Sender<(Epoch, u64)>,
    notes: &Written,
) -> Result<()> {
    loop {
        let step = match writer.is_pending() {
            true => subscription.next_step_at_once()?,
            false => subscription.next_step()?,
        };
        match step {
            Step::Change(change) if delivered.is_some_and(|last| change.epoch <= last) => {}
            Step::Change(change) => {
                let epoch = change.epoch;
                notes.pace.add(writer.write(change)?);
                notes.epoch.store(epoch, Ordering::Relaxed);
            }
            Step::Mark(epoch) => {
                // No thread waits for it if the checkpoint has failed.
                let _ = reached.send((epoch, writer.mark(epoch)?));
            }
            Step::Nothing if writer.is_pending() => writer.commit()?,
            Step::Nothing | Step::End => return Ok(()),
        }
    }
}
