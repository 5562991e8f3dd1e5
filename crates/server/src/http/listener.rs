//! Accepting connections, and answering their requests one after the other.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time;
use tower::ServiceExt;

use super::connection::{Connection, too_many};
use super::problem::{PROBLEM, Problem};
use super::routes;
use super::service::Http;
use super::stalled::Stalled;
use crate::log;
use crate::pg::listener::{next, watch_over};
use crate::tls::Inside;
use crate::traffic::{Counted, Protocol, Refusal};

/// How long the head of a request may take, and how long a connection may be idle between two.
const HEAD: Duration = Duration::from_secs(10);
/// About how many bytes a head has, and how many lines, at most.
const HEAD_BYTES: usize = 64 << 10;
const HEAD_LINES: usize = 100;
/// How long a client may take nothing of what it is sent.
const PATIENCE: Duration = Duration::from_secs(45);
/// How long the reason of a refusal may take.
const REFUSAL: Duration = Duration::from_secs(1);

/// Accepts connections over TCP until the server stops.
pub(crate) async fn listen(
    listener: TcpListener,
    http: Arc<Http>,
    mut stops: watch::Receiver<bool>,
) {
    let router = routes::router(&http);
    while let Some((stream, address)) = next(|| listener.accept(), &mut stops).await {
        // Parts of an answer are whole when they are sent.
        let _ = stream.set_nodelay(true);
        watch_over(&stream);
        let stream = Counted::new(stream, http.shared.traffic(Protocol::Http).clone());
        let (http, router, stops) = (http.clone(), router.clone(), stops.clone());
        tokio::spawn(admit(stream, address, http, router, stops));
    }
}

/// The first byte of a connection that is encrypted.
const HANDSHAKE: u8 = 0x16;

/// Lets a connection in, and has it encrypted if its client begins so. In the clear are those from this machine alone.
async fn admit(
    mut stream: Counted<TcpStream>,
    address: SocketAddr,
    http: Arc<Http>,
    router: Router,
    stops: watch::Receiver<bool>,
) {
    let (shared, ip) = (&http.shared, address.ip());
    let traffic = shared.traffic(Protocol::Http);
    let stranger = match shared.registry.connect(Some(ip)) {
        Ok(stranger) => stranger,
        Err(full) => {
            traffic.refuse(Refusal::Limit);
            log::refused(Some(ip), &full.to_string());
            let problem = too_many(full.to_string());
            let _ = time::timeout(REFUSAL, turn_away(&mut stream, &problem)).await;
            return;
        }
    };
    let login_time = shared.registry.limits().login_time;
    let first = async {
        let mut first = [0];
        Ok::<_, io::Error>((stream.get_ref().peek(&mut first).await? > 0).then_some(first[0]))
    };
    let Ok(Ok(Some(first))) = time::timeout(login_time, first).await else { return };
    let connection =
        |stranger, is_encrypted| Connection::new(stranger, is_encrypted, traffic.clone());
    let refuse = |refusal, reason| {
        traffic.refuse(refusal);
        log::refused(Some(ip), reason);
    };
    match shared.tls.clone().filter(|_| first == HANDSHAKE) {
        Some(tls) => match time::timeout(login_time, tls.accept(stream, Inside::Http)).await {
            Ok(Ok(accepted)) => {
                serve(accepted.stream, connection(stranger, true), router, stops).await
            }
            Ok(Err(error)) => log::broken(Some(ip), error),
            Err(_) => refuse(Refusal::Timeout, "encryption took too long"),
        },
        None if ip.to_canonical().is_loopback() || shared.is_insecure => {
            serve(stream, connection(stranger, false), router, stops).await;
        }
        None => refuse(Refusal::Place, "it is from another machine, and not encrypted"),
    }
}

/// Answers the requests of a connection until its client is gone or the server stops.
async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    connection: Connection,
    router: Router,
    mut stops: watch::Receiver<bool>,
) {
    let connection = Arc::new(connection);
    let answer = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        let router = router.clone();
        async move {
            Ok::<_, Infallible>(router.oneshot(request).await.unwrap_or_else(|no| match no {}))
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_LINES)
        .serve_connection(TokioIo::new(Stalled::new(stream, PATIENCE)), answer)
        .with_upgrades();
    let mut served = std::pin::pin!(served);
    // An error has been answered, or its client is gone.
    tokio::select! {
        _ = served.as_mut() => return,
        _ = stops.wait_for(|stops| *stops) => served.as_mut().graceful_shutdown(),
    }
    let _ = served.await;
}

/// Answers a connection that there is no room for, without reading its request.
async fn turn_away(stream: &mut (impl AsyncWrite + Unpin), problem: &Problem) -> io::Result<()> {
    let body = problem.to_json().to_string();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: {PROBLEM}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await?;
    stream.shutdown().await
}
