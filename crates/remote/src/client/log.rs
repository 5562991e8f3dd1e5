//! Where the queue of a journal writes its groups.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use alluvium_storage::error::Failure;
use alluvium_storage::journal::{Group, Log};
use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::Background;
use super::link::Place;
use super::task::Writing;
use crate::messages::Header;

/// A command for the task that speaks to the server.
pub(super) enum Command {
    /// A group of records, which are in the bytes.
    Group(Header, Bytes),
    /// Asks for an answer once all groups are durable, or only written.
    Settle { durable: bool, answer: Sender<io::Result<()>> },
    /// Has this called with the error that does not pass, if one comes unasked.
    OnFailure(Box<dyn FnOnce(io::Error) + Send>),
    /// Allows the server to delete the records before this one, and asks which is the first that it has.
    Release { before: u64, answer: Sender<io::Result<u64>> },
}

/// Gives commands to the task, which ends with the last clone.
#[derive(Clone)]
pub(super) struct Commands {
    place: Arc<Place>,
    task: UnboundedSender<Command>,
}

impl Commands {
    /// Begins the task.
    pub(super) fn begin(place: Arc<Place>, runtime: &Background, writing: Writing) -> Commands {
        let (task, commands) = unbounded_channel();
        runtime.spawn(writing.run(commands));
        Commands { place, task }
    }

    /// Has this called if the journal fails unasked.
    pub(super) fn on_failure(&self, act: Box<dyn FnOnce(Failure) + Send>) {
        let place = self.place.clone();
        self.give(Command::OnFailure(Box::new(move |cause| {
            act(Failure::new("append to", place.address.to_string(), cause));
        })));
    }

    pub(super) fn release(&self, before: u64) -> Result<u64, Failure> {
        self.ask("release records of", |answer| Command::Release { before, answer })
    }

    /// Gives a command, and waits for the answer.
    fn ask<T>(
        &self,
        operation: &'static str,
        command: impl FnOnce(Sender<io::Result<T>>) -> Command,
    ) -> Result<T, Failure> {
        let (answer, answered) = channel();
        self.give(command(answer));
        let ended = || Err(io::Error::other("the thread that speaks to the server has ended"));
        let answered = answered.recv().unwrap_or_else(|_| ended());
        answered.map_err(|cause| Failure::new(operation, self.place.address.to_string(), cause))
    }

    /// Gives a command. If the task has ended, the answer to the next one says so.
    fn give(&self, command: Command) {
        let _ = self.task.send(command);
    }
}

/// A journal of a server as a log.
pub(super) struct RemoteLog {
    commands: Commands,
    /// The seed of the checksums of records.
    salt: u64,
}

impl RemoteLog {
    pub(super) fn new(commands: Commands, salt: u64) -> RemoteLog {
        RemoteLog { commands, salt }
    }

    fn settled(&self, durable: bool) -> Result<(), Failure> {
        self.commands.ask("append to", |answer| Command::Settle { durable, answer })
    }
}

impl Log for RemoteLog {
    fn write(&mut self, group: &mut Group, tail: &[u8], _: u64) -> Result<(), Failure> {
        let mut bytes = BytesMut::with_capacity(group.records().len() + tail.len());
        bytes.extend_from_slice(group.records());
        bytes.extend_from_slice(tail);
        let (first, count) = (group.first(), group.end() - group.first());
        let header = Header { first, count, length: bytes.len() as u64, salt: self.salt };
        self.commands.give(Command::Group(header, bytes.freeze()));
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.settled(false)
    }

    fn sync(&mut self) -> Result<(), Failure> {
        self.settled(true)
    }
}
