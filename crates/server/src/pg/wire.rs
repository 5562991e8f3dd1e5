//! The wire: messages in, messages out.

use std::io;
use std::mem;

use bytes::BytesMut;
use pgwire::api::auth::sasl::scram::ScramServerAuth;
use pgwire::messages::{
    DecodeContext, PgWireBackendMessage as Answer, PgWireFrontendMessage as Message,
    ProtocolVersion,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::frame::{self, MOST_BEFORE_LOGIN, Malformed};
use crate::tls::{Ahead, Inside, Stream, Tls};

/// How many bytes are read ahead of the message that is being answered.
const AHEAD: usize = 64 << 10;
/// The room that an idle connection keeps.
const IDLE: usize = 4 << 10;

/// Why nothing more can be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    /// The connection is gone.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The client does not speak the protocol.
    #[error("{0}")]
    Malformed(Malformed),
}

impl Broken {
    /// The client has closed its connection.
    pub(super) fn gone() -> Self {
        Self::Io(io::ErrorKind::ConnectionReset.into())
    }
}

/// A connection as messages. What is put is sent by [`Wire::flush`], or before the next message is waited for.
pub(super) struct Wire<S> {
    stream: S,
    input: BytesMut,
    output: BytesMut,
    context: DecodeContext,
    /// The most bytes of a message.
    most: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<Stream<S>> {
    /// Encrypts the connection, which the client begins with what has been read already, and returns who checks its password. If that
    /// fails, nothing can be said any more.
    pub(super) async fn encrypt(&mut self, tls: &Tls) -> Result<ScramServerAuth, Broken> {
        let Stream::Clear(stream) = mem::replace(&mut self.stream, Stream::Between) else {
            return Err(io::Error::from(io::ErrorKind::NotConnected).into());
        };
        let ahead = Ahead::new(mem::take(&mut self.input), stream);
        let accepted = tls.accept(ahead, Inside::Postgres).await?;
        self.stream = Stream::Encrypted(Box::new(accepted.stream));
        Ok(accepted.scram)
    }

    /// Whether bytes have been read that belong to no message yet.
    pub(super) fn is_ahead(&self) -> bool {
        !self.input.is_empty()
    }

    /// The connection.
    pub(super) fn stream(&self) -> &Stream<S> {
        &self.stream
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// A connection whose client has not said anything.
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            input: BytesMut::new(),
            output: BytesMut::new(),
            context: DecodeContext::default(),
            most: MOST_BEFORE_LOGIN,
        }
    }

    /// The client begins a session, or asks to cancel one; it does not negotiate encryption any more.
    pub(super) fn expect_startup(&mut self) {
        self.context.awaiting_frontend_ssl = false;
    }

    /// The session has begun in this version of the protocol.
    pub(super) fn expect_messages(&mut self, version: ProtocolVersion) {
        self.context.awaiting_frontend_startup = false;
        self.context.protocol_version = version;
    }

    /// The client has logged in: messages may be longer now.
    pub(super) fn admit(&mut self, most: usize) {
        self.most = most;
    }

    /// The first byte of the connection, which stays the next to be read; `None` when the client has closed it.
    pub(super) async fn first(&mut self) -> Result<Option<u8>, Broken> {
        while self.input.is_empty() {
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Ok(None);
            }
        }
        Ok(self.input.first().copied())
    }

    /// The next message; `None` when the client has closed the connection.
    pub(super) async fn next(&mut self) -> Result<Option<Message>, Broken> {
        loop {
            if let Some(message) = self.decode()? {
                return Ok(Some(message));
            }
            self.flush().await?;
            if self.input.is_empty() && self.input.capacity() > IDLE {
                self.input = BytesMut::new();
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// The message that has come whole.
    fn decode(&mut self) -> Result<Option<Message>, Broken> {
        let has_kind = !self.context.awaiting_frontend_startup;
        let length = frame::length(&self.input, has_kind, self.most).map_err(Broken::Malformed)?;
        let Some(length) = length.filter(|length| *length <= self.input.len()) else {
            // The rest of a long one is read into one piece.
            if let Some(length) = length {
                self.input.reserve(
                    length.min(AHEAD.max(self.input.len() * 2)) - self.input.len().min(length),
                );
            }
            return Ok(None);
        };
        if has_kind {
            frame::check(&self.input[..length]).map_err(Broken::Malformed)?;
        }
        let negotiates = self.context.awaiting_frontend_ssl;
        let mut frame = self.input.split_to(length);
        let decoded = Message::decode(&mut frame, &self.context);
        let message = decoded.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if negotiates && !frame.is_empty() {
            // It negotiates nothing, and is read again as what it is.
            frame.unsplit(mem::take(&mut self.input));
            self.input = frame;
        }
        Ok(message)
    }

    /// The kind of the message after this one, if it has begun to come.
    pub(super) fn kind_of_next(&self) -> Option<u8> {
        self.input.first().copied()
    }

    /// Reads ahead while a statement runs, and returns when the client is gone. As long as much has been read, it waits forever.
    pub(super) async fn gone(&mut self) {
        loop {
            if self.input.len() >= AHEAD {
                std::future::pending::<()>().await;
            }
            match self.stream.read_buf(&mut self.input).await {
                Ok(0) | Err(_) => return,
                Ok(_) => (),
            }
        }
    }

    /// Sends a message with those that are put after it.
    pub(super) fn put(&mut self, message: Answer) -> Result<(), Broken> {
        let encoded = message.encode(&mut self.output);
        Ok(encoded.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?)
    }

    /// What is put and not sent yet, for who adds to it elsewhere.
    pub(super) fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// How many bytes are put and not sent yet.
    pub(super) fn unsent(&self) -> usize {
        self.output.len()
    }

    /// Sends all that was put.
    pub(super) async fn flush(&mut self) -> Result<(), Broken> {
        if !self.output.is_empty() {
            self.stream.write_all_buf(&mut self.output).await?;
            if self.output.capacity() > IDLE {
                self.output = BytesMut::new();
            }
        }
        self.stream.flush().await?;
        Ok(())
    }

    /// Sends all that was put, and closes the connection.
    pub(super) async fn close(&mut self) {
        // If it cannot be sent the client is gone.
        if self.flush().await.is_ok() {
            let _ = self.stream.shutdown().await;
        }
    }
}
