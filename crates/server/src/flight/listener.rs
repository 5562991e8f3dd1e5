//! Accepting connections, and answering their requests.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time;

use super::connection::Connection;
use super::gate::Gate;
use super::service::Flight;
use crate::http::Stalled;
use crate::log;
use crate::pg::listener::{next, watch_over};
use crate::registry::Stranger;
use crate::tls::Inside;
use crate::traffic::{Counted, Protocol, Refusal};

/// The bytes of the head of a request.
const HEAD_BYTES: u32 = 64 << 10;
/// How many requests of a connection are answered beside each other.
const REQUESTS: u32 = 64;
/// How many bytes of a request, and of all of a connection, a client may send before they are read; and how many of an answer are made
/// before the client takes them.
const WINDOW: u32 = 1 << 20;
const WINDOW_OF_ALL: u32 = 4 << 20;
const BUFFER: usize = 1 << 20;
/// How often a client is asked whether it is there, and how long its answer may take.
const HEARTBEAT: Duration = Duration::from_secs(15);
const PATIENCE: Duration = Duration::from_secs(45);
/// The first byte of a connection that is encrypted.
const HANDSHAKE: u8 = 0x16;

/// Accepts connections over TCP until the server stops.
pub(super) async fn listen(
    listener: TcpListener,
    flight: Arc<Flight>,
    mut stops: watch::Receiver<bool>,
) {
    while let Some((stream, address)) = next(|| listener.accept(), &mut stops).await {
        // Messages are whole when they are sent.
        let _ = stream.set_nodelay(true);
        watch_over(&stream);
        let stream = Counted::new(stream, flight.shared.traffic(Protocol::Flight).clone());
        tokio::spawn(admit(stream, address, flight.clone(), stops.clone()));
    }
}

/// Lets a connection in, and has it encrypted if its client begins so. In the clear are those from this machine alone.
async fn admit(
    stream: Counted<TcpStream>,
    address: SocketAddr,
    flight: Arc<Flight>,
    stops: watch::Receiver<bool>,
) {
    let (shared, ip) = (&flight.shared, address.ip());
    let refuse = |refusal, reason: &str| {
        shared.traffic(Protocol::Flight).refuse(refusal);
        log::refused(Some(ip), reason);
    };
    let stranger = match shared.registry.connect(Some(ip)) {
        Ok(stranger) => stranger,
        Err(full) => return refuse(Refusal::Limit, &full.to_string()),
    };
    let login_time = shared.registry.limits().login_time;
    let first = async {
        let mut first = [0];
        Ok::<_, io::Error>((stream.get_ref().peek(&mut first).await? > 0).then_some(first[0]))
    };
    let Ok(Ok(Some(first))) = time::timeout(login_time, first).await else { return };
    match shared.tls.clone().filter(|_| first == HANDSHAKE) {
        Some(tls) => match time::timeout(login_time, tls.accept(stream, Inside::Flight)).await {
            Ok(Ok(accepted)) => serve(accepted.stream, (stranger, true), flight, stops).await,
            Ok(Err(error)) => log::broken(Some(ip), error),
            Err(_) => refuse(Refusal::Timeout, "encryption took too long"),
        },
        None if ip.to_canonical().is_loopback() || shared.is_insecure => {
            serve(stream, (stranger, false), flight, stops).await;
        }
        None => refuse(Refusal::Place, "it is from another machine, and not encrypted"),
    }
}

/// Answers the requests of a connection until its client is gone or the server stops.
async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    (stranger, is_encrypted): (Stranger, bool),
    flight: Arc<Flight>,
    mut stops: watch::Receiver<bool>,
) {
    let shared = flight.shared.clone();
    let login_time = shared.registry.limits().login_time;
    let connection = Arc::new(Connection::new(flight.clone(), stranger, is_encrypted));
    let gate = Gate::new(&flight, connection.clone());
    let answer = service_fn(move |request: Request<Incoming>| {
        let answer = gate.clone().answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let served = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_BYTES)
        .max_concurrent_streams(REQUESTS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW_OF_ALL)
        .max_send_buf_size(BUFFER)
        .keep_alive_interval(HEARTBEAT)
        .keep_alive_timeout(PATIENCE)
        .serve_connection(TokioIo::new(Stalled::new(stream, PATIENCE)), answer);
    let mut served = std::pin::pin!(served);
    let known = async { time::timeout(login_time, connection.is_known_at_last()).await.is_ok() };
    // An error has been answered, or its client is gone.
    tokio::select! {
        _ = served.as_mut() => return,
        is_known = known => if !is_known {
            shared.traffic(Protocol::Flight).refuse(Refusal::Timeout);
            return log::refused(connection.address, "nobody has logged in for too long");
        },
    }
    tokio::select! {
        _ = served.as_mut() => return,
        _ = stops.wait_for(|stops| *stops) => served.as_mut().graceful_shutdown(),
    }
    let _ = served.await;
}
