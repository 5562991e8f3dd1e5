//! Outcomes of statements, as messages.

use alluvium::{Outcome, Rows, Subscription};
use arrow::datatypes::SchemaRef;
use bytes::BytesMut;
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::extendedquery::PortalSuspended;
use tokio::io::{AsyncRead, AsyncWrite};

use super::completion::complete;
use super::connection::Connection;
use super::failure::{Ended, Failure, code, warning};
use super::results::{Formats, Pulled, Results, description};
use super::types::with_catalog_types;

/// How rows are sent.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// The formats of their columns.
    pub(super) formats: Formats,
    /// Their columns as they were described; `None` if they were not.
    pub(super) columns: Option<SchemaRef>,
    /// Whether they are of a query of the catalog.
    pub(super) is_of_catalog: bool,
    /// Whether their columns are described before them.
    pub(super) is_described: bool,
    /// How many are sent before the client asks for more.
    pub(super) most: u64,
}

impl Shape {
    /// That of the answers to texts.
    pub(super) fn of_text(is_of_catalog: bool) -> Self {
        let (formats, columns, is_described, most) = (Formats::TEXT, None, true, u64::MAX);
        Self { formats, columns, is_of_catalog, is_described, most }
    }

    /// The columns of rows, as the client knows them.
    fn columns_of(&self, rows: &Rows) -> SchemaRef {
        match &self.columns {
            Some(columns) => columns.clone(),
            None if self.is_of_catalog && self.formats != Formats::Arrow => {
                with_catalog_types(rows.schema())
            }
            None => rows.schema().clone(),
        }
    }
}

/// The beginning of an answer.
pub(super) enum Begun {
    /// It is whole.
    Complete,
    /// Rows, the first of which are encoded.
    Rows(Box<Results>, Pulled),
    /// The rows of a relation, and their changes.
    Subscribed(Subscription),
}

/// Begins the answer of a command that had this outcome.
pub(super) fn begin(
    outcome: Outcome,
    command: &'static str,
    shape: &Shape,
    out: &mut BytesMut,
) -> Result<Begun, Failure> {
    let completed = match outcome {
        Outcome::Rows(rows) => {
            let columns = shape.columns_of(&rows);
            if shape.is_described {
                put(description(&columns, &shape.formats), out)?;
            }
            return rows_begun(Results::of_rows(rows, &columns, &shape.formats)?, shape, out);
        }
        Outcome::Text(text) => {
            let results = Results::of_text(&text, &shape.formats)?;
            if shape.is_described {
                put(description(&super::results::plan_schema(), &shape.formats), out)?;
            }
            return rows_begun(results, shape, out);
        }
        Outcome::Subscribed(subscription) => return Ok(Begun::Subscribed(subscription)),
        Outcome::Changed { rows, .. } => complete(command, Some(rows)),
        Outcome::Moved { rows, .. } => complete(command, Some(rows)),
        Outcome::Copied { rows, refused, messages, .. } => {
            if refused > 0 {
                let first = messages.first().map(ToString::to_string).unwrap_or_default();
                let message = format!("{refused} rows were refused, the first of them: {first}");
                put(warning(code::WARNING, &message), out)?;
            }
            complete(command, Some(rows))
        }
        Outcome::RolledBack => complete("ROLLBACK", None),
        _ => complete(command, None),
    };
    put(completed, out)?;
    Ok(Begun::Complete)
}

fn rows_begun(mut results: Results, shape: &Shape, out: &mut BytesMut) -> Result<Begun, Failure> {
    let pulled = results.pull(shape.most, out)?;
    Ok(Begun::Rows(Box::new(results), pulled))
}

/// Encodes a message.
fn put(message: Answer, out: &mut BytesMut) -> Result<(), Failure> {
    message.encode(out).map_err(|error| Failure::new("XX000", error.to_string()))
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Sends rows as they are pulled, at most `most`, of which some are encoded already. Gives the rest back if there may be more.
    pub(super) async fn send_rows(
        &mut self,
        mut results: Box<Results>,
        mut pulled: Pulled,
        command: &'static str,
        most: u64,
    ) -> Result<Option<Box<Results>>, Ended> {
        let mut sent = results.take_sent();
        while pulled == Pulled::Chunk {
            self.wire.flush().await?;
            let left = most.saturating_sub(sent);
            (results, pulled) = self
                .call_adding(move |_, out| {
                    let pulled = results.pull(left, out)?;
                    Ok((results, pulled))
                })
                .await?;
            sent += results.take_sent();
        }
        if pulled == Pulled::Suspended {
            self.wire.put(Answer::PortalSuspended(PortalSuspended::new()))?;
            return Ok(Some(results));
        }
        self.wire.put(complete(command, Some(sent)))?;
        Ok(None)
    }
}
