//! The session of a request, and its calls of the engine.

use std::sync::Arc;

use alluvium::Session;
use axum::http::StatusCode;

use super::problem::Problem;
use crate::cancel::Cancel;
use crate::client::Client;
use crate::traffic::{Outcome, Running as Statement};

/// The session of a request. Its calls run on threads of the pool; one that nobody waits for any more, because the client is gone, is
/// ended.
pub(super) struct Caller {
    client: Client,
    /// The statement that counts until it is dropped, if the request is one.
    statement: Option<Statement>,
}

impl Caller {
    pub(super) fn new(client: Client, statement: Option<Statement>) -> Self {
        Self { client, statement }
    }

    /// Runs a call of the engine, with which the statement of the request ends, unless [`Caller::set`] says another outcome.
    pub(super) async fn call<R: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut Session) -> Result<R, Problem> + Send + 'static,
    ) -> Result<R, Problem> {
        let done = self.run(act).await;
        self.set(done.as_ref().map_or_else(Problem::outcome, |_| Outcome::Done));
        done
    }

    /// The statement of the request ends with this outcome; [`Outcome::Canceled`] if its answer is not whole yet.
    pub(super) fn set(&mut self, outcome: Outcome) {
        if let Some(statement) = &mut self.statement {
            statement.set(outcome);
        }
    }

    async fn run<R: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut Session) -> Result<R, Problem> + Send + 'static,
    ) -> Result<R, Problem> {
        if let Some(waiting) = self.client.is_refused() {
            let detail = format!(
                "{waiting} statements wait until they can run, as many as may, by the limit \"waiting\": try again"
            );
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
                .with("sqlstate", "53000".into()));
        }
        let running = Running::begin(self.client.cancel().clone());
        let mut call = self.client.begin(act)?;
        let done = self.client.end(&mut call).await;
        running.end();
        done?
    }
}

/// A call that runs; dropping it ends the call.
struct Running(Option<Arc<Cancel>>);

impl Running {
    fn begin(cancel: Arc<Cancel>) -> Self {
        cancel.begin();
        Self(Some(cancel))
    }

    /// The call has ended.
    fn end(mut self) {
        if let Some(cancel) = self.0.take() {
            cancel.end();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.request();
        }
    }
}
