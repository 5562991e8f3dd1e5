//! A standby: an engine that does again what another one records, as it comes, and can take that engine's place.
//!
//! A thread applies the records of the [followed](super::followed) journal, one after the other, with the numbers and times that they
//! have. So the standby has the same epochs, and answers reads as of the last one that it has completed. It has a state directory and
//! checkpoints of its own. Inputs and outputs stay as they are.
//!
//! Promotion takes the next term of the journal, from which on the former writer is refused; applies what is left; and attaches the journal. What
//! the former writer has acknowledged is in the journal, so nothing is lost, and what it had not recorded never was.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, Builder, JoinHandle};
use std::time::Duration;

use alluvium_storage::{
    Arriving, Elsewhere, Expected, Followed as FollowedJournal, Journal, Position,
};
use bytes::Bytes;
use parking_lot::Mutex;

use super::damage;
use super::flusher::Durability;
use super::followed::{Following, Promoted, Standing};
use super::past::Past;
use super::record::Record;
use super::resume::{self, Replayed, finish_incomplete};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::log;

/// How long the thread waits for a record before it looks whether it has to end.
const PATIENCE: Duration = Duration::from_millis(20);

/// The journal that a standby follows, before it does.
pub(crate) struct Followed {
    pub(crate) elsewhere: Arc<dyn Elsewhere>,
    pub(crate) identity: String,
    pub(crate) journal: Arc<dyn FollowedJournal>,
    /// When commits are on the disk, once it is promoted.
    pub(crate) durability: Durability,
}

/// The thread of a standby.
pub(crate) struct Standby {
    instance: Weak<Instance>,
    shared: Arc<Shared>,
    /// The thread that replays; `None` once it is promoted.
    thread: Mutex<Option<JoinHandle<Replayed>>>,
}

struct Shared {
    followed: Followed,
    is_ending: AtomicBool,
}

impl Standby {
    /// Follows from where the replay has ended.
    pub(crate) fn start(
        instance: &Arc<Instance>,
        followed: Followed,
        mut replayed: Replayed,
    ) -> Result<Self> {
        let shared = Arc::new(Shared { followed, is_ending: AtomicBool::new(false) });
        let run = {
            let (shared, weak) = (shared.clone(), Arc::downgrade(instance));
            let mut arriving = following(instance)?.journal().follow(following(instance)?.end());
            move || {
                run(&shared, &weak, &mut *arriving, &mut replayed);
                replayed
            }
        };
        let thread = Builder::new()
            .name("alluvium-standby".to_owned())
            .stack_size(alluvium_sql::stack::THREAD)
            .spawn(run)
            .map_err(|error| Error::Start { message: format!("no thread to follow: {error}") })?;
        Ok(Self { instance: Arc::downgrade(instance), shared, thread: Mutex::new(Some(thread)) })
    }
}

impl Standing for Standby {
    fn promote(&self) -> Result<Promoted> {
        // Who asks has the engine.
        let engine = &Engine { instance: self.instance.upgrade().ok_or_else(promoted)? };
        let instance = &engine.instance;
        instance.poison.check()?;
        let mut running = self.thread.lock();
        if running.is_none() {
            return Err(promoted());
        }
        let Followed { elsewhere, identity, durability, .. } = &self.shared.followed;
        let following = following(instance)?;
        let has = following.end();
        let expected = Expected { identity: Some(identity.clone()), records: Some(has..has) };
        // From here on the former writer is refused. If this fails, nothing has changed.
        let (_, journal) = elsewhere.open(&expected).map_err(|error| {
            Error::source(format!("the standby cannot be promoted: {}", damage::of_storage(&error)))
        })?;
        self.shared.is_ending.store(true, Ordering::Release);
        let thread = running.take().map(JoinHandle::join);
        instance.poison.check()?;
        let Some(Ok(mut replayed)) = thread else { return Err(promoted()) };
        let rest = || replay_rest(engine, following, &mut replayed, &*journal);
        instance.poison.guard(rest).map_err(|error| stop(instance, &error))?;
        instance.reader.sequencer.wait(instance.writer.last())?;
        let flusher = instance.definitions.attach(journal, *durability)?;
        // It is attached once.
        let _ = instance.flusher.set(flusher);
        // From here on it is promoted, whatever else fails.
        if let Err(error) = finish_incomplete(engine, replayed.incomplete()) {
            log::not_dropped(&error);
        }
        // It costs the journal some room if that is not known.
        let _ = instance.reader.sequencer.durable().leave_followed();
        let epoch = instance.writer.last();
        log::promoted(epoch);
        let not_started = instance.start_inputs().err();
        not_started.iter().for_each(log::not_started);
        Ok(Promoted { epoch, not_started })
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Release);
        if let Some(running) = self.thread.get_mut().take()
            && running.thread().id() != thread::current().id()
        {
            // It has poisoned the engine if it has panicked.
            let _ = running.join();
        }
    }
}

/// Replays what comes until the engine ends or the standby is promoted.
fn run(
    shared: &Shared,
    instance: &Weak<Instance>,
    arriving: &mut dyn Arriving,
    replayed: &mut Replayed,
) {
    while !shared.is_ending.load(Ordering::Acquire) {
        let next = arriving.next(PATIENCE);
        let Some(instance) = instance.upgrade() else { return };
        let engine = Engine { instance };
        let instance = &engine.instance;
        let Some(following) = instance.reader.sequencer.durable().following() else { return };
        let applied = match next {
            Ok(None) => continue,
            Ok(Some((position, bytes))) => {
                following.hear();
                replayed.released(following.released());
                let journal = Past::Followed(&**following.journal());
                let act = || replay((&engine, following), replayed, journal, (position, &bytes));
                instance.poison.guard(act)
            }
            Err(error) => Err(Error::source(damage::of_storage(&error))),
        };
        if let Err(error) = applied {
            // Nobody is left who could learn of it.
            if !replayed.has_alone(&engine) {
                stop(instance, &error);
            }
            // Transactions whose parts come have the engine.
            *replayed = Replayed::default();
            return;
        }
    }
}

/// Does again what the former writer has recorded last.
fn replay_rest(
    engine: &Engine,
    following: &Following,
    replayed: &mut Replayed,
    journal: &dyn Journal,
) -> Result<()> {
    let damaged = |error| Error::source(damage::of_storage(&error));
    for record in journal.replay(following.end()).map_err(damaged)? {
        let (position, bytes) = record.map_err(damaged)?;
        replay((engine, following), replayed, Past::Opened(journal), (position, &bytes))?;
    }
    Ok(())
}

/// Does again what a record says.
fn replay(
    (engine, following): (&Engine, &Following),
    replayed: &mut Replayed,
    journal: Past<'_>,
    (position, bytes): (Position, &Bytes),
) -> Result<()> {
    let at = |what: &dyn std::fmt::Display| {
        Error::source(format!("{}: {what}", journal.place(position)))
    };
    let record = Record::decode(bytes).map_err(|what| at(&what))?;
    let _held = following.hold();
    resume::follow(engine, replayed, record, (journal, position)).map_err(|error| at(&error))?;
    engine.instance.reader.sequencer.durable().count(bytes.len() as u64);
    following.replayed(Position(position.0 + 1), replayed.first_open());
    Ok(())
}

/// The standby is not what it follows any more: the engine stops.
fn stop(instance: &Instance, error: &Error) -> Error {
    instance.poison.spread(format!("it is a standby, and cannot follow any further: {error}"));
    instance.poison.check().err().unwrap_or_else(|| error.clone())
}

fn following(instance: &Instance) -> Result<&Following> {
    instance.reader.sequencer.durable().following().ok_or_else(promoted)
}

fn promoted() -> Error {
    Error::source("the engine is no standby: it writes already")
}
