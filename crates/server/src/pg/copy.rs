//! COPY … FROM STDIN and COPY … TO STDOUT: rows as data that clients send and take.

use std::sync::Arc;

use alluvium::unstable::{SessionParts, StatementKind, tree};
use alluvium::{Error, Session, Statement};
use arrow::array::RecordBatch;
use bytes::{Bytes, BytesMut};
use pgwire::messages::copy::{CopyDone, CopyInResponse, CopyOutResponse};
use pgwire::messages::{PgWireBackendMessage as Answer, PgWireFrontendMessage as Message};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::completion::complete;
use super::connection::Connection;
use super::copy_options::options;
use super::failure::{Ended, Failure, code};
use super::results::{CHUNK, Pieces, STEP};
use super::types::copy::{CopyDecoder, CopyEncoder, CopyFormat, CopyOptions};
use super::types::{Format, with_catalog_types};
use super::wire::Broken;

/// How many messages with rows wait for the thread that reads them.
const WAITING: usize = 16;

/// What a client sends after COPY … FROM STDIN: data, or why it gives up.
type Sent = Result<Bytes, String>;

/// A COPY whose rows the client sends or takes.
#[derive(Clone)]
pub(super) struct Copy {
    statement: Statement,
    options: CopyOptions,
    rows: CopiedRows,
}

/// The rows of a COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopiedRows {
    /// The client sends them.
    Sent,
    /// It takes those of a query.
    Query,
    /// It takes the changes of a relation.
    Changes,
}

impl Copy {
    /// The COPY that a statement is, if it is one, and its rows come from the client or go to it.
    pub(super) fn of(statement: &Statement, sql: &str) -> Result<Option<Self>, Failure> {
        let parsed = tree(statement);
        match &parsed.kind {
            StatementKind::Copy { path: None, options: given, .. } => {
                let (statement, options) = (statement.clone(), options(given, sql)?);
                Ok(Some(Self { statement, options, rows: CopiedRows::Sent }))
            }
            StatementKind::CopyTo { path: None, options: given, .. } => {
                let (statement, options) = (statement.clone(), options(given, sql)?);
                Ok(Some(Self { statement, options, rows: CopiedRows::Query }))
            }
            StatementKind::CopyChanges { options: given, .. } => {
                let (statement, options) = (statement.clone(), options(given, sql)?);
                Ok(Some(Self { statement, options, rows: CopiedRows::Changes }))
            }
            _ => Ok(None),
        }
    }

    /// The format of all columns, by which the client is told of the data.
    fn format(&self) -> Format {
        match self.options.format {
            CopyFormat::Binary => Format::Binary,
            CopyFormat::Text | CopyFormat::Csv => Format::Text,
        }
    }
}

/// The rows that a client sends, read as they come.
struct Received {
    decoder: CopyDecoder,
    data: mpsc::Receiver<Sent>,
    is_over: bool,
}

impl Received {
    /// The next rows; waits for the client.
    fn next(&mut self) -> Result<Option<RecordBatch>, Failure> {
        loop {
            if let Some(rows) = self.decoder.take() {
                return Ok(Some(rows));
            }
            if self.is_over {
                return Ok(None);
            }
            match self.data.blocking_recv() {
                Some(Ok(data)) => self.decoder.push(&data)?,
                Some(Err(reason)) => {
                    let message = format!("the client has given up COPY: {reason}");
                    return Err(Failure::new("57014", message));
                }
                None => {
                    self.is_over = true;
                    self.decoder.finish()?;
                }
            }
        }
    }
}

/// Copies the rows that a client sends; the error is in the words of who refused them.
fn copy_in(
    session: &mut Session,
    statement: &Statement,
    received: &mut Received,
    sql: &str,
) -> Result<u64, Failure> {
    let mut refused = None;
    let copied = session.copy_from_client(statement, &mut || {
        received.next().map_err(|failure| {
            let error = Error::data(failure.message());
            refused = Some(failure);
            error
        })
    });
    match (copied, refused) {
        (Ok(rows), _) => Ok(rows),
        (Err(_), Some(failure)) => Err(failure),
        (Err(error), None) => Err(Failure::of(&error, sql)),
    }
}

/// Rows that go to a client.
struct Given {
    rows: Pieces,
    encoder: CopyEncoder,
    count: u64,
}

impl Given {
    /// Encodes rows until there are enough to be sent; returns whether there may be more.
    fn pull(&mut self, out: &mut BytesMut) -> Result<bool, Failure> {
        let full = out.len() + CHUNK;
        while out.len() < full {
            let Some((batch, rows)) = self.rows.next(usize::MAX, |_| STEP)? else {
                self.encoder.finish(out)?;
                return Ok(false);
            };
            self.count += rows.len() as u64;
            self.encoder.encode(&batch, rows, out)?;
        }
        Ok(true)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Runs a COPY, before which a transaction may begin.
    pub(super) async fn copy(
        &mut self,
        copy: Copy,
        sql: Arc<str>,
        begins: bool,
    ) -> Result<(), Ended> {
        if begins {
            self.call(|session| session.execute("BEGIN").map(drop)).await??;
        }
        match copy.rows {
            CopiedRows::Sent => self.copy_in(copy, sql).await,
            CopiedRows::Query => self.copy_out(copy, sql).await,
            CopiedRows::Changes => {
                let format = copy.format();
                self.copy_changes(copy.statement, copy.options, format, sql).await
            }
        }
    }

    async fn copy_in(&mut self, copy: Copy, sql: Arc<str>) -> Result<(), Ended> {
        let format = copy.format();
        let Copy { statement, options, .. } = copy;
        let text = sql.clone();
        let (schema, statement) = self
            .call(move |session| {
                let schema = session.columns_from_client(&statement);
                Ok::<_, Failure>((schema.map_err(|error| Failure::of(&error, &text))?, statement))
            })
            .await??;
        let columns = schema.fields().len();
        let decoder = CopyDecoder::new(schema, &options)?;
        let response =
            CopyInResponse::new(format.code() as i8, columns as i16, vec![format.code(); columns]);
        self.wire.put(Answer::CopyInResponse(response))?;
        self.wire.flush().await?;
        let (sender, data) = mpsc::channel(WAITING);
        let mut received = Received { decoder, data, is_over: false };
        let mut call =
            self.client.begin(move |session| copy_in(session, &statement, &mut received, &sql))?;
        let mut sender = Some(sender);
        let mut ended: Option<Ended> = None;
        let copied = loop {
            let next = tokio::select! {
                biased;
                copied = self.client.end(&mut call) => break copied?,
                next = self.wire.next(), if sender.is_some() => next,
            };
            let (sent, is_last) = match next {
                Ok(Some(Message::CopyData(data))) => (Some(Ok(data.data)), false),
                Ok(Some(Message::CopyDone(_))) => (None, true),
                Ok(Some(Message::CopyFail(fail))) => (Some(Err(fail.message)), true),
                Ok(Some(Message::Flush(_) | Message::Sync(_))) => (None, false),
                Ok(Some(_)) => {
                    let message = "a message has come that has no place within COPY";
                    ended = Some(Failure::fatal(code::PROTOCOL, message).into());
                    (Some(Err(message.to_owned())), true)
                }
                Ok(None) => {
                    ended = Some(Broken::gone().into());
                    (Some(Err("it is gone".to_owned())), true)
                }
                Err(broken) => {
                    let reason = broken.to_string();
                    ended = Some(broken.into());
                    (Some(Err(reason)), true)
                }
            };
            if let (Some(sent), Some(sender)) = (sent, &sender) {
                // It is not taken any more if the statement has failed.
                let _ = sender.send(sent).await;
            }
            if is_last {
                sender = None;
            }
        };
        match ended {
            Some(ended) => Err(ended),
            None => {
                self.wire.put(complete("COPY", Some(copied?)))?;
                Ok(())
            }
        }
    }

    async fn copy_out(&mut self, copy: Copy, sql: Arc<str>) -> Result<(), Ended> {
        let format = copy.format();
        let Copy { statement, options, .. } = copy;
        let (mut given, columns) = self
            .call(move |session| {
                let rows = session.copy_to_client(&statement);
                let rows = rows.map_err(|error| Failure::of(&error, &sql))?;
                let schema = match session.uses_system(tree(&statement)) {
                    true => with_catalog_types(rows.schema()),
                    false => rows.schema().clone(),
                };
                let columns = schema.fields().len();
                let encoder = CopyEncoder::new(&schema, options)?;
                let given = Given { rows: Pieces::of_rows(rows), encoder, count: 0 };
                Ok::<_, Failure>((Box::new(given), columns))
            })
            .await??;
        let response =
            CopyOutResponse::new(format.code() as i8, columns as i16, vec![format.code(); columns]);
        self.wire.put(Answer::CopyOutResponse(response))?;
        loop {
            let (rest, is_more) = self
                .call_adding(move |_, out| {
                    let is_more = given.pull(out)?;
                    Ok((given, is_more))
                })
                .await?;
            if !is_more {
                self.wire.put(Answer::CopyDone(CopyDone::new()))?;
                self.wire.put(complete("COPY", Some(rest.count)))?;
                return Ok(());
            }
            given = rest;
            self.wire.flush().await?;
        }
    }
}
