//! The call of a writer.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use tonic::{Code, Status, Streaming};

use super::journals::{Journals, Writer};
use crate::messages::{
    Answer, Pieces, Release, Released, Request, Settle, Settled, ToServer, ToWriter,
};
use crate::refusal::refused;

/// Does what a writer asks for until it goes, or something fails. Runs on a thread that may block.
pub(super) fn serve(
    journals: &Arc<Journals>,
    runtime: &Handle,
    mut requests: Streaming<ToServer>,
    answers: &Sender<Result<ToWriter, Status>>,
) {
    let mut session = Session { journals, writer: None, pieces: Pieces::default() };
    loop {
        let answered = match runtime.block_on(session.next(&mut requests)) {
            Next::Request(request) => session.answer(request),
            Next::Replaced(refused) => Err(refused),
            // A writer that has gone, or whose connection was lost, comes again by another call.
            Next::Gone => return,
        };
        let is_last = answered.is_err();
        if let Some(answer) = answered.transpose()
            && answers.blocking_send(answer).is_err()
        {
            return;
        }
        if is_last {
            return;
        }
    }
}

struct Session<'a> {
    journals: &'a Journals,
    writer: Option<Writer>,
    pieces: Pieces,
}

/// What comes next in a call.
enum Next {
    Request(ToServer),
    /// Another writer has come.
    Replaced(Status),
    Gone,
}

impl Session<'_> {
    /// Waits for the next request, or until another writer has come.
    async fn next(&mut self, requests: &mut Streaming<ToServer>) -> Next {
        let message = match &mut self.writer {
            None => requests.message().await,
            Some(writer) => tokio::select! {
                message = requests.message() => message,
                refused = writer.replaced() => return Next::Replaced(refused),
            },
        };
        match message {
            Ok(Some(request)) => Next::Request(request),
            Ok(None) | Err(_) => Next::Gone,
        }
    }

    fn answer(&mut self, message: ToServer) -> Result<Option<ToWriter>, Status> {
        let answer = match (message.request, &self.writer) {
            (Some(Request::Open(open)), None) => {
                let (writer, opened) = self.journals.open(&open)?;
                self.writer = Some(writer);
                Answer::Opened(opened)
            }
            (Some(Request::Piece(piece)), Some(writer)) => {
                let whole = self.pieces.add(piece);
                let whole = whole.map_err(|what| refused(Code::InvalidArgument, what))?;
                if let Some((header, bytes)) = whole {
                    writer.append(header, bytes)?;
                }
                return Ok(None);
            }
            (Some(Request::Settle(Settle { durable })), Some(writer)) => {
                Answer::Settled(Settled { end: writer.settle(durable)? })
            }
            (Some(Request::Release(Release { before })), Some(writer)) => {
                Answer::Released(Released { start: writer.release(before)? })
            }
            (Some(Request::Open(_)), Some(_)) => {
                return Err(refused(Code::InvalidArgument, "the journal is open already"));
            }
            (Some(_), None) => {
                return Err(refused(Code::InvalidArgument, "no journal was opened"));
            }
            (None, _) => {
                let what =
                    "the server does not know what is asked for: it is older than the writer";
                return Err(refused(Code::InvalidArgument, what));
            }
        };
        Ok(Some(ToWriter { answer: Some(answer) }))
    }
}
