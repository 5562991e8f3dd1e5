//! A connection to a server.

use std::error::Error as _;
use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request as Call, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::connection::address::Address;
use crate::connection::stream::Stream;
use crate::connection::{ANSWER, SILENCE, WINDOW};
use crate::messages::{
    ATTEND, Answer, Attend, Attending, FOLLOW, From, MESSAGE, REPLAY, Records, Request, ToServer,
    ToWriter, WRITE,
};
use crate::refusal;

/// How many messages may wait to be sent.
const REQUESTS: usize = 8;

/// A journal's place, and how to get there.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) address: Address,
    /// `None` without encryption.
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// How long a lost connection may take to be made again.
    pub(super) patience: Duration,
}

/// Why something was not done.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It may be done when it is tried again.
    Lost(String),
    /// It never will.
    Final(io::Error),
}

impl Trouble {
    fn of(status: &Status) -> Trouble {
        match refusal::cause(status) {
            Some(cause) => Trouble::Final(cause),
            None => Trouble::Lost(said(status)),
        }
    }
}

/// What a status says, with its causes: often only the last one names what has happened.
fn said(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut source = status.source();
    while let Some(error) = source {
        let part = error.to_string();
        if !text.contains(&part) {
            // Strings can always be written to.
            let _ = write!(text, ": {part}");
        }
        source = error.source();
    }
    match text.is_empty() {
        true => "the connection was lost".to_owned(),
        false => text,
    }
}

impl Place {
    /// Connects, in a time that is bounded.
    async fn connect(&self) -> Result<Grpc<Channel>, Trouble> {
        let connecting = async {
            let stream = self.stream().await.map_err(|error| Trouble::Lost(error.to_string()))?;
            self.channel(stream).await
        };
        let connected = tokio::time::timeout(ANSWER, connecting).await;
        connected.unwrap_or_else(|_| Err(Trouble::Lost("the server does not answer".to_owned())))
    }

    async fn stream(&self) -> io::Result<Stream> {
        let Address { host, port, .. } = &self.address;
        let stream = TcpStream::connect((host.as_str(), *port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Stream::Plain(stream)) };
        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
        let stream = TlsConnector::from(tls.clone()).connect(name, stream).await?;
        Ok(Stream::Encrypted(Box::new(stream.into())))
    }

    /// Speaks HTTP/2 over a connection, until that is lost.
    async fn channel(&self, stream: Stream) -> Result<Grpc<Channel>, Trouble> {
        let Address { host, port, .. } = &self.address;
        let authority =
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let failed = |error: tonic::transport::Error| {
            Trouble::Lost(said(&Status::from_error(Box::new(error))))
        };
        // The connection is encrypted already, if it is to be.
        let endpoint = Endpoint::from_shared(format!("http://{authority}")).map_err(failed)?;
        let mut once = Some(TokioIo::new(stream));
        let connector = tower::service_fn(move |_: Uri| {
            let taken = once.take();
            std::future::ready(taken.ok_or_else(|| io::Error::other("the connection was lost")))
        });
        let channel = endpoint
            .http2_keep_alive_interval(SILENCE)
            .keep_alive_timeout(ANSWER)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(2 * WINDOW)
            .connect_with_connector(connector)
            .await
            .map_err(failed)?;
        Ok(Grpc::new(channel).max_decoding_message_size(MESSAGE))
    }

    /// Asks for the records that are there.
    pub(super) async fn replay(&self, from: From) -> Result<Streaming<Records>, Trouble> {
        self.records(REPLAY, from).await
    }

    /// Asks for records as they become durable.
    pub(super) async fn follow(&self, from: From) -> Result<Streaming<Records>, Trouble> {
        self.records(FOLLOW, from).await
    }

    async fn records(&self, path: &'static str, from: From) -> Result<Streaming<Records>, Trouble> {
        let mut grpc = self.connect().await?;
        ready(&mut grpc).await?;
        let codec: ProstCodec<From, Records> = ProstCodec::default();
        let path = PathAndQuery::from_static(path);
        let answered = grpc.server_streaming(Call::new(from), path, codec).await;
        answered.map(|answer| answer.into_inner()).map_err(|status| Trouble::of(&status))
    }

    /// Says what a follower needs, in a time that is bounded.
    pub(super) async fn attend(&self, attend: Attend) -> Result<Attending, Trouble> {
        let asking = async {
            let mut grpc = self.connect().await?;
            ready(&mut grpc).await?;
            let codec: ProstCodec<Attend, Attending> = ProstCodec::default();
            let path = PathAndQuery::from_static(ATTEND);
            let answered = grpc.unary(Call::new(attend), path, codec).await;
            answered.map(|answer| answer.into_inner()).map_err(|status| Trouble::of(&status))
        };
        let answered = tokio::time::timeout(2 * ANSWER, asking).await;
        answered.unwrap_or_else(|_| Err(Trouble::Lost("the server does not answer".to_owned())))
    }
}

async fn ready(grpc: &mut Grpc<Channel>) -> Result<(), Trouble> {
    let ready = grpc.ready().await;
    ready.map_err(|error| Trouble::Lost(said(&Status::from_error(Box::new(error)))))
}

/// The next message of a stream.
pub(super) async fn next<T>(stream: &mut Streaming<T>) -> Result<Option<T>, Trouble> {
    stream.message().await.map_err(|status| Trouble::of(&status))
}

/// The call of a writer.
#[derive(Debug)]
pub(super) struct Link {
    requests: mpsc::Sender<ToServer>,
    answers: Streaming<ToWriter>,
}

impl Link {
    /// Connects, and begins the call with a request.
    pub(super) async fn begin(place: &Place, request: Request) -> Result<Link, Trouble> {
        let mut grpc = place.connect().await?;
        ready(&mut grpc).await?;
        let (requests, stream) = mpsc::channel(REQUESTS);
        // There is room.
        let _ = requests.send(ToServer { request: Some(request) }).await;
        let codec: ProstCodec<ToServer, ToWriter> = ProstCodec::default();
        let path = PathAndQuery::from_static(WRITE);
        let answered = grpc.streaming(Call::new(ReceiverStream::new(stream)), path, codec).await;
        let answers = answered.map_err(|status| Trouble::of(&status))?.into_inner();
        Ok(Link { requests, answers })
    }

    /// Sends a request. If the connection is lost, its answer says so.
    pub(super) async fn send(&self, request: Request) {
        let _ = self.requests.send(ToServer { request: Some(request) }).await;
    }

    /// The next answer.
    pub(super) async fn answer(&mut self) -> Result<Answer, Trouble> {
        let lost = || Trouble::Lost("the server has ended the call".to_owned());
        let answer = next(&mut self.answers).await?.ok_or_else(lost)?;
        answer.answer.ok_or_else(|| unexpected("an answer that is newer than this program"))
    }
}

/// The server does something else than it should.
pub(super) fn unexpected(what: &str) -> Trouble {
    Trouble::Final(io::Error::other(format!("the server has sent {what}")))
}
