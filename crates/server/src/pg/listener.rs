//! Accepting connections.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::watch;
use tokio::time;

use super::connection::Connection;
use super::failure::{Ended, Failure, code};
use super::startup;
use super::wire::{Broken, Wire};
use crate::log;
use crate::shared::Shared;
use crate::tls::Stream;
use crate::traffic::{Counted, Protocol, Refusal};

/// How long accepting pauses after it has failed, as when the process has no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

/// A client that has been silent for so long is asked by the system whether it is there, and again after half of it.
const ALIVE: Duration = Duration::from_secs(20);
/// A client that has not confirmed for so long what was sent to it is gone.
const GONE: Duration = Duration::from_secs(60);
/// How long the last words to a client without a session may take.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The next connection; `None` once the server stops.
pub(crate) async fn next<T, F: Future<Output = io::Result<T>>>(
    accept: impl Fn() -> F,
    stops: &mut watch::Receiver<bool>,
) -> Option<T> {
    loop {
        let accepted = tokio::select! {
            accepted = accept() => accepted,
            _ = stops.wait_for(|stops| *stops) => return None,
        };
        match accepted {
            Ok(connection) => return Some(connection),
            Err(error) => {
                log::not_accepted(error);
                time::sleep(PAUSE).await;
            }
        }
    }
}

/// Accepts connections over TCP until the server stops.
pub(crate) async fn listen_tcp(
    listener: TcpListener,
    shared: Arc<Shared>,
    mut stops: watch::Receiver<bool>,
) {
    while let Some((stream, address)) = next(|| listener.accept(), &mut stops).await {
        // Answers are whole when they are sent.
        let _ = stream.set_nodelay(true);
        watch_over(&stream);
        let stream = Counted::new(stream, shared.traffic(Protocol::Postgres).clone());
        tokio::spawn(serve(stream, Some(address.ip()), shared.clone(), stops.clone()));
    }
}

/// Accepts connections over a socket of this machine until the server stops. Only processes of the server's own user may connect, and
/// those of root.
pub(crate) async fn listen_unix(
    listener: UnixListener,
    shared: Arc<Shared>,
    mut stops: watch::Receiver<bool>,
) {
    let own = own_user();
    while let Some((stream, _)) = next(|| listener.accept(), &mut stops).await {
        let user = stream.peer_cred().ok().map(|peer| peer.uid());
        let stream = Counted::new(stream, shared.traffic(Protocol::Postgres).clone());
        if user.is_some() && (user == own || user == Some(0)) {
            tokio::spawn(serve(stream, None, shared.clone(), stops.clone()));
        } else {
            shared.traffic(Protocol::Postgres).refuse(Refusal::Place);
            log::refused(None, "it is from another user of this machine");
        }
    }
}

/// The user of this process.
fn own_user() -> Option<u32> {
    let (here, _) = tokio::net::UnixStream::pair().ok()?;
    Some(here.peer_cred().ok()?.uid())
}

/// Has the system look after a silent client. One that is gone without a word is noticed within a minute.
pub(crate) fn watch_over(stream: &TcpStream) {
    let socket = SockRef::from(stream);
    let probes = TcpKeepalive::new().with_time(ALIVE).with_interval(ALIVE / 2).with_retries(3);
    // Without it a client that is gone is noticed later.
    let _ = socket.set_tcp_keepalive(&probes);
    let _ = socket.set_tcp_user_timeout(Some(GONE));
}

/// Serves a connection until its client is gone or the server stops.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    address: Option<IpAddr>,
    shared: Arc<Shared>,
    stops: watch::Receiver<bool>,
) {
    let traffic = shared.traffic(Protocol::Postgres).clone();
    let mut wire = Wire::new(Stream::Clear(stream));
    let login_time = shared.registry.limits().login_time;
    let stranger = match shared.registry.connect(address) {
        Ok(stranger) => stranger,
        Err(full) => {
            traffic.refuse(Refusal::Limit);
            log::refused(address, &full.to_string());
            let _ = wire.put(Failure::fatal(code::CONNECTIONS, full.to_string()).answer());
            return close(&mut wire).await;
        }
    };
    let started = time::timeout(login_time, startup::start(&mut wire, &shared, stranger)).await;
    let failure = match started {
        Ok(Ok(Some(logged_in))) => {
            traffic.login(true);
            let registered = &logged_in.registered;
            log::connected(address, registered, wire.stream().is_encrypted());
            let (number, identity) = (registered.number, registered.identity.clone());
            Connection::new(wire, logged_in, shared, stops).run().await;
            return log::disconnected(number, &identity, address);
        }
        Ok(Ok(None)) => return,
        Ok(Err(Ended::Failed(failure))) => {
            match failure.code() {
                code::CONNECTIONS => traffic.refuse(Refusal::Limit),
                code::PROTOCOL => traffic.refuse(Refusal::Protocol),
                _ => traffic.login(false),
            }
            failure
        }
        Ok(Err(Ended::Broken(Broken::Io(error)))) => return log::broken(address, error),
        Ok(Err(Ended::Broken(Broken::Malformed(malformed)))) => {
            traffic.refuse(Refusal::Protocol);
            malformed.into()
        }
        Err(_) => {
            traffic.refuse(Refusal::Timeout);
            let seconds = login_time.as_secs_f64();
            let message =
                format!("the login took longer than {seconds} seconds, the limit \"login_time\"");
            Failure::fatal(code::NO_LOGIN, message)
        }
    };
    log::refused(address, failure.message());
    let _ = wire.put(failure.answer());
    close(&mut wire).await;
}

/// Closes a connection that has no session. A client that does not read the last words does not keep it.
async fn close<S: AsyncRead + AsyncWrite + Unpin>(wire: &mut Wire<S>) {
    let _ = time::timeout(LAST_WORDS, wire.close()).await;
}
