//! The task that speaks to a server for one writer.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use alluvium_storage::Expected;
use alluvium_storage::journal::SentRecords;
use bytes::Bytes;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, timeout};

use super::link::{Link, Place, Trouble, unexpected};
use super::log::Command;
use crate::connection::ANSWER;
use crate::messages::{Answer, Header, Open, Opened, Range, Release, Request, Settle, pieces};

/// How long after an attempt to connect the next one is made, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// Records that are only written are kept up to this many bytes: then they are made durable.
const MOST_KEPT: usize = 16 << 20;

/// What a writer has said and has not got an answer to.
pub(super) struct Writing {
    place: Arc<Place>,
    identity: String,
    term: u64,
    /// `None` if it was lost.
    link: Option<Link>,
    /// The groups that are not known to be durable, in order.
    kept: VecDeque<(Header, Bytes)>,
    /// The bytes of these.
    kept_bytes: usize,
    /// The position after the last record, and after the last that is known to be durable.
    end: u64,
    durable: u64,
    /// The first error that does not pass.
    failed: Option<(io::ErrorKind, String)>,
    /// Told of it if it comes unasked.
    on_failure: Option<Box<dyn FnOnce(io::Error) + Send>>,
}

impl Writing {
    /// Opens a journal with the next term.
    pub(super) async fn begin(
        place: Arc<Place>,
        expected: Expected,
    ) -> io::Result<(Writing, Opened)> {
        let name = place.address.name.clone();
        let Expected { identity, records } = expected;
        let records = records.map(|records| Range { start: records.start.0, end: records.end.0 });
        let opened = open(&place, Open { name, identity, records, term: None }).await;
        let (link, opened) = opened.map_err(|trouble| match trouble {
            // The server closes the connection then, and does not say why.
            Trouble::Lost(what) if place.address.is_encrypted => io::Error::other(format!(
                "the server cannot be reached, or does not accept the certificate: {what}"
            )),
            Trouble::Lost(what) => {
                io::Error::other(format!("the server cannot be reached: {what}"))
            }
            Trouble::Final(cause) => cause,
        })?;
        let writing = Writing {
            place,
            identity: opened.identity.clone(),
            term: opened.term,
            link: Some(link),
            kept: VecDeque::new(),
            kept_bytes: 0,
            end: opened.end,
            durable: opened.end,
            failed: None,
            on_failure: None,
        };
        Ok((writing, opened))
    }

    /// Does what the writer asks for, until it goes.
    pub(super) async fn run(mut self, mut commands: UnboundedReceiver<Command>) {
        loop {
            let command = tokio::select! {
                biased;
                command = commands.recv() => command,
                refused = self.refusal(), if self.failed.is_none() => {
                    let cause = self.fail(refused);
                    if let Some(act) = self.on_failure.take() {
                        act(cause);
                    }
                    continue;
                }
            };
            // Who has asked waits for the answer, unless it has come to its end.
            match command {
                None => return,
                Some(Command::Group(header, bytes)) => self.add(header, bytes).await,
                Some(Command::Settle { durable, answer }) => {
                    let _ = answer.send(self.settle(durable).await);
                }
                Some(Command::Release { before, answer }) => {
                    let _ = answer.send(self.release(before).await);
                }
                Some(Command::OnFailure(act)) => self.on_failure = Some(act),
            }
        }
    }

    /// Waits until the server refuses the writer though that asks for nothing, as it does when another one has come. A connection that is lost
    /// meanwhile is made again, so that it can.
    async fn refusal(&mut self) -> Trouble {
        loop {
            let trouble = match &mut self.link {
                Some(link) => match link.answer().await {
                    Ok(_) => other_answer(),
                    Err(trouble) => trouble,
                },
                None => {
                    sleep(PAUSES.1).await;
                    match self.connect_again().await {
                        Ok(link) => {
                            self.link = Some(link);
                            continue;
                        }
                        Err(trouble) => trouble,
                    }
                }
            };
            match trouble {
                Trouble::Final(_) => return trouble,
                Trouble::Lost(_) => self.link = None,
            }
        }
    }

    /// Sends a group. If that does not succeed, it is sent again when an answer is needed.
    async fn add(&mut self, header: Header, bytes: Bytes) {
        self.end = header.first + header.count;
        self.kept_bytes += bytes.len();
        self.kept.push_back((header, bytes.clone()));
        if let Some(link) = &self.link {
            send(link, header, bytes).await;
        }
    }

    async fn settle(&mut self, durable: bool) -> io::Result<()> {
        let durable = durable || self.kept_bytes > MOST_KEPT;
        let request = Request::Settle(Settle { durable });
        let Answer::Settled(settled) = self.ask(request).await? else {
            return Err(self.fail(other_answer()));
        };
        if settled.end != self.end {
            let (has, end) = (settled.end, self.end);
            let what = format!("that its journal goes on with record {has}, and not with {end}");
            return Err(self.fail(unexpected(&what)));
        }
        if durable {
            self.durable = self.end;
            self.kept.clear();
            self.kept_bytes = 0;
        }
        Ok(())
    }

    async fn release(&mut self, before: u64) -> io::Result<u64> {
        match self.ask(Request::Release(Release { before })).await? {
            Answer::Released(released) => Ok(released.start),
            _ => Err(self.fail(other_answer())),
        }
    }

    /// Sends a request and waits for its answer, over as many connections as that takes.
    async fn ask(&mut self, request: Request) -> io::Result<Answer> {
        if let Some((kind, what)) = &self.failed {
            return Err(io::Error::new(*kind, what.clone()));
        }
        let mut lost_at = None;
        let mut pause = PAUSES.0;
        loop {
            let what = match self.ask_once(&request).await {
                Ok(answer) => return Ok(answer),
                Err(Trouble::Lost(what)) => what,
                Err(refused) => return Err(self.fail(refused)),
            };
            self.link = None;
            let until = *lost_at.get_or_insert_with(Instant::now) + self.place.patience;
            let now = Instant::now();
            if now >= until {
                let patience = self.place.patience;
                let what = format!("the server could not be reached for {patience:?}: {what}");
                let error = io::Error::new(io::ErrorKind::TimedOut, what);
                return Err(self.fail(Trouble::Final(error)));
            }
            sleep(pause.min(until - now)).await;
            pause = (2 * pause).min(PAUSES.1);
        }
    }

    async fn ask_once(&mut self, request: &Request) -> Result<Answer, Trouble> {
        let link = match &mut self.link {
            Some(link) => link,
            None => {
                let link = self.connect_again().await?;
                self.link.insert(link)
            }
        };
        link.send(request.clone()).await;
        link.answer().await
    }

    /// Connects with the term that the writer has, and sends the records that the server does not have.
    async fn connect_again(&mut self) -> Result<Link, Trouble> {
        let (name, identity) = (self.place.address.name.clone(), Some(self.identity.clone()));
        let again = Open { name, identity, records: None, term: Some(self.term) };
        let (link, opened) = open(&self.place, again).await?;
        if !(self.durable..=self.end).contains(&opened.end) {
            let (has, durable, end) = (opened.end, self.durable, self.end);
            return Err(unexpected(&format!(
                "that its journal goes on with record {has}: it was durable up to {durable}, and goes up to {end}"
            )));
        }
        for (header, bytes) in &self.kept {
            let last = header.first + header.count;
            if last <= opened.end {
                continue;
            }
            let first = header.first.max(opened.end);
            let mut records = SentRecords::new(bytes.clone(), header.first, header.salt);
            records.skip_to(first).map_err(|what| Trouble::Final(io::Error::other(what)))?;
            let bytes = records.rest();
            let (count, length) = (last - first, bytes.len() as u64);
            send(&link, Header { first, count, length, ..*header }, bytes).await;
        }
        Ok(link)
    }

    /// Notes an error that does not pass, and returns it.
    fn fail(&mut self, trouble: Trouble) -> io::Error {
        let cause = match trouble {
            Trouble::Final(cause) => cause,
            Trouble::Lost(what) => io::Error::other(what),
        };
        self.link = None;
        self.kept = VecDeque::new();
        self.failed = Some((cause.kind(), cause.to_string()));
        cause
    }
}

/// Opens a journal, over a new connection and in a time that is bounded.
async fn open(place: &Place, request: Open) -> Result<(Link, Opened), Trouble> {
    let opening = async {
        let mut link = Link::begin(place, Request::Open(request)).await?;
        match link.answer().await? {
            Answer::Opened(opened) => Ok((link, opened)),
            _ => Err(other_answer()),
        }
    };
    let opened = timeout(2 * ANSWER, opening).await;
    opened.unwrap_or_else(|_| Err(Trouble::Lost("the server does not answer".to_owned())))
}

async fn send(link: &Link, header: Header, bytes: Bytes) {
    for piece in pieces(header, bytes) {
        link.send(Request::Piece(piece)).await;
    }
}

fn other_answer() -> Trouble {
    unexpected("another answer than the one that was asked for")
}
