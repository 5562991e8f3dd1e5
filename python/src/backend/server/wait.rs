//! Waiting for calls of the client.

use std::pin::pin;
use std::task::{Context, Poll};
use std::thread;

use alluvium::unstable::thread_waker;
use alluvium_client::Error;
use tokio::runtime::Handle;

use super::refused;
use crate::call;
use crate::failure::Failure;

/// Why a call came to nothing.
pub(super) enum Stopped {
    /// It was asked to end.
    Interrupted,
    Failed(Error),
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Interrupted => Self::interrupted(),
            Stopped::Failed(error) => refused::failure(error),
        }
    }
}

/// Waits for a call that works in a runtime. When the [call](crate::call) that is running here is asked to end, this one is dropped.
pub(super) fn wait<T>(
    runtime: &Handle,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Stopped> {
    let _entered = runtime.enter();
    let waker = thread_waker();
    let mut call = pin!(call);
    loop {
        if let Poll::Ready(done) = call.as_mut().poll(&mut Context::from_waker(&waker)) {
            return done.map_err(Stopped::Failed);
        }
        if call::is_asked_to_end() {
            return Err(Stopped::Interrupted);
        }
        // Nobody unparks it to end.
        thread::park_timeout(call::INTERVAL);
    }
}
