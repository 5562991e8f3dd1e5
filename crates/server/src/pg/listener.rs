//! Accepting connections.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::time;

use super::connection::Connection;
use super::failure::{Ended, Failure, code};
use super::startup;
use super::wire::{Broken, Wire};
use crate::shared::Shared;

/// How long accepting pauses after it has failed, as when the process has no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

/// The next connection; `None` once the server stops.
async fn next<T, F: Future<Output = io::Result<T>>>(
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
            Err(_) => time::sleep(PAUSE).await,
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
        if user.is_some() && (user == own || user == Some(0)) {
            tokio::spawn(serve(stream, None, shared.clone(), stops.clone()));
        }
    }
}

/// The user of this process.
fn own_user() -> Option<u32> {
    let (here, _) = tokio::net::UnixStream::pair().ok()?;
    Some(here.peer_cred().ok()?.uid())
}

/// Serves a connection until its client is gone or the server stops.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    address: Option<IpAddr>,
    shared: Arc<Shared>,
    mut stops: watch::Receiver<bool>,
) {
    let mut wire = Wire::new(stream);
    let stranger = match shared.registry.connect(address) {
        Ok(stranger) => stranger,
        Err(full) => {
            let _ = wire.put(Failure::fatal(code::CONNECTIONS, full.to_string()).answer());
            return wire.close().await;
        }
    };
    let login_time = shared.registry.limits().login_time;
    let started = time::timeout(login_time, startup::start(&mut wire, &shared, stranger)).await;
    let failure = match started {
        Ok(Ok(Some(logged_in))) => {
            let connection = Connection::new(wire, logged_in);
            return connection.run(&mut stops).await;
        }
        Ok(Ok(None)) => return,
        Ok(Err(Ended::Failed(failure))) => failure,
        Ok(Err(Ended::Broken(Broken::Io(_)))) => return,
        Ok(Err(Ended::Broken(Broken::Malformed(malformed)))) => malformed.into(),
        Err(_) => {
            let seconds = login_time.as_secs_f64();
            let message =
                format!("the login took longer than {seconds} seconds, the limit \"login_time\"");
            Failure::fatal(code::NO_LOGIN, message)
        }
    };
    let _ = wire.put(failure.answer());
    wire.close().await;
}
