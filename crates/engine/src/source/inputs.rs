//! The inputs of all tables.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::holders::Holders;
use super::{
    FilePosition, Liveness, Refusal, Source, SourcePosition, SourceProgress, SourceState,
    Transport, TransportConnector, Unread,
};
use crate::changes::pace::{Amount, Pace};
use crate::durable::portion::InputName;
use crate::error::{Error, Result};
use crate::log;
use crate::poison::{Poison, Waited};
use crate::wait::{self, Look, WaitList};

/// How many refused rows an input lists in its progress.
const REPORTED: usize = 10;

/// How often an input that pauses looks whether its engine has ended.
const LOOK: Duration = Duration::from_millis(100);

/// Where rows of a table come from: a connector, ready to be started.
pub(crate) struct Input {
    pub(crate) table: String,
    /// How many inputs of the table come before it.
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) origin: Origin,
    pub(crate) liveness: Liveness,
    /// Whether it ends at the first row that cannot be read.
    pub(crate) fails: bool,
    pace: Pace,
    refused: AtomicU64,
    /// The bytes of a file that is followed which come before those that were read.
    begun: AtomicU64,
    /// Where it is, as long as it can be read again from there.
    position: Mutex<Option<SourcePosition>>,
    /// As [`SourceReader::unread`](super::SourceReader::unread), after its last rows.
    unread: Mutex<Unread>,
    /// Whether its table is gone; changes while its table's writers wait.
    stopped: AtomicBool,
    /// Whether it pauses.
    paused: Mutex<bool>,
    resumed: Condvar,
    messages: Mutex<Vec<Refusal>>,
}

impl Input {
    pub(crate) fn new(
        table: String,
        number: u32,
        name: String,
        origin: Origin,
        liveness: Liveness,
    ) -> Self {
        Self {
            table,
            number,
            name,
            origin,
            liveness,
            unread: Mutex::default(),
            fails: false,
            pace: Pace::default(),
            refused: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            position: Mutex::default(),
            stopped: AtomicBool::new(false),
            paused: Mutex::default(),
            resumed: Condvar::new(),
            messages: Mutex::default(),
        }
    }

    /// Its identity in a journal.
    pub(crate) fn id(&self) -> InputName {
        InputName { table: self.table.clone(), number: self.number }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(crate) fn is_paused(&self) -> bool {
        *self.paused.lock()
    }

    /// Waits while it pauses, until its table is dropped or its engine has ended.
    pub(crate) fn wait_resumed(&self, has_ended: impl Fn() -> bool) {
        let mut paused = self.paused.lock();
        while *paused && !self.is_stopped() && !has_ended() {
            self.resumed.wait_for(&mut paused, LOOK);
        }
    }

    /// Reading begins, or goes on, after this position.
    pub(crate) fn begin(&self, start: Option<&SourcePosition>) {
        let Some(start) = start else { return };
        *self.position.lock() = Some(start.clone());
        // Such a file is text as it is stored.
        if self.liveness.follow
            && let Ok(FilePosition { offset, .. }) = FilePosition::of(start)
        {
            let begun = offset.saturating_sub(self.pace.all().bytes);
            self.begun.store(begun, Ordering::Relaxed);
        }
    }

    /// Counts the rows of a transaction, after which reading continues at `position`, with so many rows to come.
    pub(crate) fn count(
        &self,
        rows: u64,
        bytes: u64,
        refused: Vec<Refusal>,
        (position, unread): (Option<SourcePosition>, Unread),
    ) {
        self.pace.add(Amount { rows, bytes });
        let count = refused.len() as u64;
        let before = self.refused.fetch_add(count, Ordering::Relaxed);
        log::refused(&self.table, &self.name, before, before + count);
        // In this order, as they are looked at in the other: at a position that is seen, no more is unread than there.
        *self.unread.lock() = unread;
        *self.position.lock() = position;
        if !refused.is_empty() {
            let mut messages = self.messages.lock();
            let room = REPORTED - messages.len();
            messages.extend(refused.into_iter().take(room));
        }
    }
}

/// What files are called where connectors name other systems.
pub(crate) const FILE: &str = "file";

/// The place that an input reads.
pub(crate) enum Origin {
    /// Files of a format.
    Files { path: PathBuf, source: Arc<dyn Source>, options: Vec<(String, String)> },
    /// Another system.
    Transport { transport: Arc<dyn Transport>, connector: TransportConnector, place: String },
}

impl Origin {
    /// What it is read by: `file`, or the name of a transport.
    fn kind(&self) -> &str {
        match self {
            Self::Files { .. } => FILE,
            Self::Transport { transport, .. } => transport.name(),
        }
    }

    /// The file that is not there, or the secrets.
    fn lacking(&self) -> Vec<String> {
        match self {
            Self::Files { path, .. } => {
                // A pattern may find files later.
                let is_pattern = path.to_string_lossy().contains(['*', '?', '[']);
                let is_lacking = !is_pattern && !path.exists();
                is_lacking
                    .then(|| format!("there is no file {}", path.display()))
                    .into_iter()
                    .collect()
            }
            Self::Transport { transport, connector, .. } => {
                let secrets =
                    connector.options.iter().filter(|(name, _)| transport.is_secret(name));
                let read = secrets.map(|(name, _)| connector.secret(name).map(drop));
                read.filter_map(Result::err).map(|error| error.to_string()).collect()
            }
        }
    }

    /// Where it is, for people.
    fn place(&self) -> PathBuf {
        match self {
            Self::Files { path, .. } => path.clone(),
            Self::Transport { place, .. } => place.into(),
        }
    }

    /// Whether it may have an end.
    pub(crate) fn is_files(&self) -> bool {
        matches!(self, Self::Files { .. })
    }
}

/// All inputs, in the order they were defined, and their states.
pub(crate) struct Inputs {
    state: Mutex<Vec<(Arc<Input>, State)>>,
    waits: WaitList<()>,
    holders: Arc<Holders>,
    poison: Arc<Poison>,
}

#[derive(Clone)]
enum State {
    Waiting,
    /// It was to start while it paused, and does when it goes on.
    Held,
    Running,
    Finished,
    Failed(Error),
}

impl Inputs {
    pub(crate) fn new(poison: Arc<Poison>) -> Arc<Self> {
        let (state, waits, holders) = Default::default();
        let inputs = Arc::new(Self { state, waits, holders, poison });
        inputs.poison.register(&inputs);
        inputs
    }

    /// The inputs that hold a transaction.
    pub(crate) fn holders(&self) -> &Arc<Holders> {
        &self.holders
    }

    /// Adds the inputs of a new table.
    pub(crate) fn add(&self, inputs: Vec<Input>) {
        let inputs = inputs.into_iter().map(|input| (Arc::new(input), State::Waiting));
        self.state.lock().extend(inputs);
    }

    /// One of them.
    pub(crate) fn find(&self, id: &InputName) -> Option<Arc<Input>> {
        let state = self.state.lock();
        state.iter().map(|(input, _)| input).find(|input| input.id() == *id).cloned()
    }

    /// The inputs that have not started.
    pub(crate) fn waiting(&self) -> Vec<Arc<Input>> {
        let state = self.state.lock();
        let waiting = state.iter().filter(|(_, state)| matches!(state, State::Waiting));
        waiting.map(|(input, _)| input.clone()).collect()
    }

    /// Those that pause start when they go on.
    pub(crate) fn hold_paused(&self) {
        let mut state = self.state.lock();
        let paused = state.iter_mut().filter(|(input, _)| input.is_paused());
        let waiting = paused.filter(|(_, state)| matches!(state, State::Waiting));
        waiting.for_each(|(_, state)| *state = State::Held);
    }

    /// The inputs of a table that go on, and were to start while they paused.
    pub(crate) fn held(&self, table: &str) -> Vec<Arc<Input>> {
        let state = self.state.lock();
        let held = state.iter().filter(|(input, state)| {
            input.table == table && matches!(state, State::Held) && !input.is_paused()
        });
        held.map(|(input, _)| input.clone()).collect()
    }

    /// The tables with an input that uses a secret.
    pub(crate) fn users_of_secret(&self, name: &str) -> BTreeSet<String> {
        let inputs = self.state.lock();
        let users = inputs.iter().filter(|(input, _)| match &input.origin {
            Origin::Files { .. } => false,
            Origin::Transport { connector, .. } => connector.uses_secret(name),
        });
        users.map(|(input, _)| input.table.clone()).collect()
    }

    /// Whether the inputs of a table pause.
    pub(crate) fn pauses(&self, table: &str) -> bool {
        self.state.lock().iter().any(|(input, _)| input.table == table && input.is_paused())
    }

    /// Has the inputs of a table pause, or go on.
    pub(crate) fn pause(&self, table: &str, pauses: bool) {
        let inputs = self.state.lock();
        for (input, _) in inputs.iter().filter(|(input, _)| input.table == table) {
            *input.paused.lock() = pauses;
            input.resumed.notify_all();
        }
    }

    /// The files and secrets that those need which have not started, and that are not there.
    pub(crate) fn lacking(&self) -> Vec<String> {
        let waiting = self.waiting();
        let lacking = waiting.iter().flat_map(|input| {
            let lacking = input.origin.lacking().into_iter();
            lacking.map(|what| format!("table \"{}\": {what}", input.table))
        });
        lacking.collect()
    }

    pub(crate) fn started(&self, input: &Arc<Input>) {
        log::source_started(&input.table, &input.name);
        self.set(input, State::Running);
    }

    /// An input has come to its end, or has failed.
    pub(crate) fn ended(&self, input: &Arc<Input>, result: Result<()>) {
        let state = match result {
            Ok(()) => State::Finished,
            Err(_) if input.is_stopped() => State::Finished,
            Err(error) => State::Failed(error),
        };
        match &state {
            State::Failed(error) => log::source_failed(&input.table, &input.name, error),
            _ => log::source_ended(&input.table, &input.name, input.pace.all().rows),
        }
        self.set(input, state);
    }

    fn set(&self, input: &Arc<Input>, state: State) {
        let mut inputs = self.state.lock();
        if let Some(entry) = inputs.iter_mut().find(|(other, _)| Arc::ptr_eq(other, input)) {
            entry.1 = state;
        }
        self.waits.wake_all();
    }

    /// Ends the inputs of a table that is dropped. The caller holds the write lock.
    pub(crate) fn remove(&self, table: &str) {
        let mut inputs = self.state.lock();
        inputs.retain(|(input, _)| {
            let goes = input.table == table;
            input.stopped.fetch_or(goes, Ordering::Release);
            input.resumed.notify_all();
            !goes
        });
        self.waits.wake_all();
    }

    /// Waits until all that have started are at their ends; fails as soon as one has failed.
    pub(crate) fn wait(&self) -> Result<()> {
        self.until_ended(|inputs| {
            let failed = inputs.iter().find_map(|(_, state)| match state {
                State::Failed(error) => Some(error.clone()),
                _ => None,
            });
            failed.map_or(Ok(()), Err)
        })
    }

    /// Waits until none of them runs, whether they are at their ends or have failed.
    pub(crate) fn wait_ends(&self) -> Result<()> {
        self.until_ended(|_| Ok(()))
    }

    fn until_ended(&self, check: impl Fn(&[(Arc<Input>, State)]) -> Result<()>) -> Result<()> {
        wait::until(|waker| {
            let inputs = self.state.lock();
            self.poison.check()?;
            check(&inputs)?;
            let runs = |state: &State| matches!(state, State::Held | State::Running);
            match inputs.iter().any(|(_, state)| runs(state)) {
                true => Ok(Look::Waits(self.waits.enter((), waker))),
                false => Ok(Look::Found(())),
            }
        })
    }

    /// The progress of each.
    pub(crate) fn progress(&self) -> Vec<SourceProgress> {
        let one = |(input, state): &(Arc<Input>, State)| {
            let (all, minute) = (input.pace.all(), input.pace.minute());
            let position = input.position.lock().clone();
            let unread = *input.unread.lock();
            SourceProgress {
                table: input.table.clone(),
                number: input.number,
                name: input.name.clone(),
                kind: input.origin.kind().to_owned(),
                path: input.origin.place(),
                state: match state {
                    State::Waiting | State::Held | State::Running if input.is_paused() => {
                        SourceState::Paused
                    }
                    State::Waiting | State::Held => SourceState::Waiting,
                    State::Running => SourceState::Running,
                    State::Finished => SourceState::Finished,
                    State::Failed(error) => SourceState::Failed { message: error.to_string() },
                },
                rows: all.rows,
                refused: input.refused.load(Ordering::Relaxed),
                bytes: all.bytes,
                begun: input.begun.load(Ordering::Relaxed),
                minute_rows: minute.rows,
                minute_bytes: minute.bytes,
                last_rows: input.pace.last(),
                position,
                unread: unread.rows,
                unread_bytes: unread.bytes,
                messages: input.messages.lock().clone(),
            }
        };
        self.state.lock().iter().map(one).collect()
    }
}

impl Waited for Inputs {
    fn wake(&self) {
        drop(self.state.lock());
        self.waits.wake_all();
    }
}

/// The same error, with the table it is about.
pub(crate) fn named(input: &Input, error: Error) -> Error {
    match error {
        Error::Source { message, position } => {
            let message =
                format!("the source \"{}\" of table \"{}\": {message}", input.name, input.table);
            Error::Source { message, position }
        }
        error => error,
    }
}
