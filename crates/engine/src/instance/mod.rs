//! An engine: four parts, which all handles share.
//!
//! | part | owns | used by |
//! |---|---|---|
//! | [`Definitions`] | catalog, indexes, subscriptions; installs and removes dataflows | CREATE, ALTER, DROP, SUBSCRIBE |
//! | [`Writer`] | write lock, clock, the next epoch | transactions |
//! | [`Reader`] | versions of relations, ad-hoc queries | SELECT, and what transactions read |
//! | [`Connectors`] | formats, inputs, outputs, refused rows | START, COPY, outputs |
//!
//! The parts share the [`Sequencer`], which orders epochs and dataflows, the [`Progress`] of the workers, the
//! [`Catalog`] and the [`QueryEngine`]; none of these knows a part. A part that needs another gets it as an argument.
//!
//! The [`feeder`] reads inputs into tables, and [`outputs`] opens the outputs of views and writes their contents.
//!
//! # Lock order
//!
//! 1. the write lock ([`Writer::lock`]), held by a transaction while it is validated and ordered; whoever has it waits for no lock on rows;
//! 2. the definitions' lock ([`Definitions::lock`]);
//! 3. the list of subscriptions;
//! 4. the values of sequences;
//! 5. the sequencer's state, under which commands are broadcast;
//! 6. leaves, under which no other lock is taken: the catalog's entries, indexes, inputs, outputs, refusals, the journal,
//!    progress, and the queues of subscriptions, which may take the progress's lock.

mod feeder;
mod outputs;

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::thread;

use alluvium_sql::planner::{Planner, RegisteredFunctions, SystemSchemas};
use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;

use crate::catalog::Catalog;
use crate::clock::{Clock, Moment};
use crate::connectors::Connectors;
use crate::definitions::Definitions;
use crate::durable::directory::Directory;
use crate::durable::flusher::Flusher;
use crate::durable::followed::Standing;
use crate::durable::schedule::Checkpoints;
use crate::error::Result;
use crate::file_access::FileAccess;
use crate::history::History;
use crate::log::LogLines;
use crate::poison::Poison;
use crate::query::{Observed, Plans, QueryEngine, Reader};
use crate::sequencer::Sequencer;
use crate::session::clients::Clients;
use crate::settings::Settings;
use crate::source::Registered;
use crate::subscription::feed::{Feed, SubscriberId};
use crate::subscription::{Client, Owner, Subscription};
use crate::view::KeyedRelations;
use crate::worker::{DataflowId, Pool, Progress};
use crate::writer::Writer;

/// A running engine. Dropping it shuts its workers down and joins their threads.
pub(crate) struct Instance {
    pub(crate) definitions: Definitions,
    pub(crate) writer: Writer,
    pub(crate) reader: Reader,
    pub(crate) connectors: Connectors,
    /// The sessions of clients.
    pub(crate) clients: Arc<Clients>,
    pub(crate) settings: Settings,
    /// Which files sessions may use at first.
    pub(crate) file_access: Arc<FileAccess>,
    /// The thread that takes checkpoints, if the engine has a state directory.
    pub(crate) checkpoints: OnceLock<Checkpoints>,
    /// The thread that syncs the journal, if the engine has one.
    pub(crate) flusher: OnceLock<Flusher>,
    /// What follows another engine, if this one is or was a standby.
    pub(crate) standby: OnceLock<Box<dyn Standing>>,
    /// The state directory, which is released after everything else has ended.
    pub(crate) directory: OnceLock<Directory>,
    /// The copy of the state directory with the records that were left out when it was opened.
    pub(crate) put_aside: OnceLock<PathBuf>,
    pub(crate) poison: Arc<Poison>,
    /// The budget that state is counted in, and where it spills to.
    pub(crate) context: StateContext,
}

/// The sources, sinks and functions that a program adds to an engine.
pub(crate) struct Extensions {
    pub(crate) registered: Registered,
    pub(crate) functions: RegisteredFunctions,
    pub(crate) system: SystemSchemas,
    pub(crate) file_access: FileAccess,
    /// The last lines of the log, for `alluvium.log`.
    pub(crate) log: LogLines,
}

impl Instance {
    /// Starts one without relations, once the epoch `start` is complete, if that is given with its time.
    pub(crate) fn start(
        settings: Settings,
        start: Option<(Epoch, Moment)>,
        extensions: Extensions,
        clock: Clock,
        context: StateContext,
    ) -> Result<Arc<Self>> {
        let Extensions { registered, functions, system, file_access, log } = extensions;
        let poison = Arc::new(Poison::default());
        let (start, time) = match start {
            Some(start) => start,
            None => (0, clock.now()?),
        };
        let progress = Progress::new(settings.workers, start, time, poison.clone());
        let Settings { workers, history, history_time, history_bytes, .. } = settings;
        let history = Arc::new(History::new(history, history_time, history_bytes, start));
        let pool = Pool::start(workers, &history, &context, &progress, &poison)?;
        let sequencer = Arc::new(Sequencer::new(
            pool,
            progress.clone(),
            poison.clone(),
            context.budget().clone(),
            history,
        ));
        let catalog = Arc::new(Catalog::default());
        let planner = Arc::new(Planner::new().with_functions(functions).with_system(system));
        let bytes = context.budget().policy().queries;
        let storage = context.storage().cloned();
        let query = Arc::new(QueryEngine::new(bytes, storage, processors(), &poison));
        let connectors = Connectors::new(registered, poison.clone(), context.budget());
        let clients = Arc::<Clients>::default();
        let writer = Writer::new(
            clock,
            sequencer.clone(),
            catalog.clone(),
            query.clone(),
            context.clone(),
            poison.clone(),
        );
        Ok(Arc::new(Self {
            definitions: Definitions::new(
                catalog.clone(),
                planner.clone(),
                sequencer.clone(),
                progress.clone(),
                poison.clone(),
                context.clone(),
            ),
            reader: Reader {
                progress,
                refusals: connectors.refusals.clone(),
                formats: connectors.formats.clone(),
                strict: settings.strict,
                catalog: catalog.clone(),
                planner,
                query: query.clone(),
                plans: Plans::default(),
                keyed: KeyedRelations::default(),
                sequencer: sequencer.clone(),
                observed: Observed {
                    inputs: connectors.inputs.clone(),
                    outputs: connectors.outputs.clone(),
                    locks: writer.row_locks.clone(),
                    clients: clients.clone(),
                    log,
                    disk_full: context.disk_full().clone(),
                },
            },
            writer,
            connectors,
            clients,
            settings,
            file_access: Arc::new(file_access),
            checkpoints: OnceLock::new(),
            flusher: OnceLock::new(),
            standby: OnceLock::new(),
            directory: OnceLock::new(),
            put_aside: OnceLock::new(),
            poison,
            context,
        }))
    }

    /// Subscribes to the changes of a view, or of a table, for this client.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        name: &str,
        client: Client<'_>,
    ) -> Result<Subscription> {
        let owner: Weak<dyn Owner> = Arc::<Self>::downgrade(self);
        self.poison.guard(|| self.definitions.subscribe(name, client, &owner))
    }

    /// Takes a checkpoint, if the engine has a state directory.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.poison.check()?;
        self.checkpoints.get().map_or(Ok(()), Checkpoints::take)
    }

    /// Whether the engine does what another one records, and records nothing itself.
    pub(crate) fn is_standby(&self) -> bool {
        self.reader.sequencer.durable().is_following()
    }

    pub(crate) fn progress(&self) -> crate::source::Progress {
        crate::source::Progress {
            sources: self.connectors.inputs.progress(),
            committed: self.writer.last(),
            complete: self.reader.progress.complete(),
        }
    }
}

/// How many queries compute at once.
fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

impl Owner for Instance {
    fn unsubscribe(&self, id: DataflowId, feed: &Feed, subscriber: SubscriberId) {
        if thread::panicking() {
            self.poison.spread("a subscriber panicked".to_owned());
        }
        self.definitions.unsubscribe(id, feed, subscriber);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        drop(self.standby.take());
        drop(self.checkpoints.take());
        drop(self.flusher.take());
        // Without that, the next start leaves out some values. No caller is left to report an error to.
        let _ = self.reader.sequencer.end_sequences();
        // Outputs write durable epochs only. No caller is left to report an error to.
        let _ = self.reader.sequencer.sync(self.writer.last());
        self.definitions.failing.close();
        self.definitions.close();
        self.connectors.outputs.close();
    }
}
