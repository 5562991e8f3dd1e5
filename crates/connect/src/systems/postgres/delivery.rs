//! Postgres as the system that views are kept in.

use std::time::{Duration, Instant};

use alluvium::{
    Delivery, DeliveryRequest, DeliveryWriter, Error, Live, Result, TransportConnector,
};
use arrow::array::RecordBatch;

use super::failure::Failure;
use super::settings::{Settings, shown};
use super::transport::Postgres;
use super::writer::{Mark, Writer};
use crate::systems::waiting::Backoff;

impl Delivery for Postgres {
    fn place(&self, connector: &TransportConnector) -> Result<String> {
        Ok(Settings::read_target(&shown(connector)?)?.place())
    }

    fn open(&self, request: &DeliveryRequest) -> Result<Box<dyn DeliveryWriter>> {
        let deadline = request.patience.map(|patience| Instant::now() + patience);
        let is_late = move || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let mut writer = open(request, None, &live(request, is_late))?;
        let live = live(request, || false);
        writer.set_live(live.clone());
        let (mark, request) = (writer.mark(), request.clone());
        Ok(Box::new(Output { request, live, writer: Some(writer), mark, pending: Vec::new() }))
    }
}

/// Waiting for the server ends when the changes are no longer needed, or it is late.
fn live(request: &DeliveryRequest, is_late: impl Fn() -> bool + Send + Sync + 'static) -> Live {
    let request = request.clone();
    Live::new(Duration::ZERO, true, move || request.is_over() || is_late())
}

/// Opens a writer, as often as it takes: the one that had a mark before, or the next of its id.
fn open(request: &DeliveryRequest, before: Option<Mark>, live: &Live) -> Result<Writer> {
    let mut backoff = Backoff::default();
    loop {
        // Its password may be another one now.
        let settings = Settings::of_target(&request.connector)?;
        let of = (&*request.id, &request.schema);
        let reason = match Writer::open(&settings, of, before, live) {
            Ok(writer) => {
                request.report(None);
                return Ok(writer);
            }
            Err(Failure::Final(error)) => return Err(error),
            Err(Failure::Passing(reason)) => reason,
        };
        request.report(Some(reason.clone()));
        backoff.wait(Some(live)).map_err(|_| {
            Error::source(format!("{} cannot be reached: {reason}", settings.place()))
        })?;
    }
}

/// Keeps a view in a table.
struct Output {
    request: DeliveryRequest,
    live: Live,
    /// `None` after a connection was lost.
    writer: Option<Writer>,
    /// What the table has of the writer, as far as it is known.
    mark: Mark,
    /// The changes that are not committed, by epoch. They are written when they are, so that it can be done again.
    pending: Vec<(u64, RecordBatch, Vec<i64>)>,
}

impl DeliveryWriter for Output {
    fn delivered(&self) -> Option<u64> {
        self.mark.last
    }

    fn write(&mut self, epoch: u64, rows: &RecordBatch, weights: &[i64]) -> Result<()> {
        self.pending.push((epoch, rows.clone(), weights.to_vec()));
        Ok(())
    }

    fn commit(&mut self, epoch: u64) -> Result<()> {
        let mut backoff = Backoff::default();
        loop {
            let mut writer = match self.writer.take() {
                Some(writer) => writer,
                None => open(&self.request, Some(self.mark), &self.live)?,
            };
            // One that was opened again tells whether what seemed to fail was done.
            if writer.mark().last < Some(epoch) {
                match writer.commit(epoch, &self.pending) {
                    Ok(()) => self.request.report(None),
                    Err(Failure::Final(error)) => return Err(error),
                    Err(Failure::Passing(reason)) => {
                        self.request.report(Some(reason));
                        backoff.wait(Some(&self.live))?;
                        continue;
                    }
                }
            }
            self.mark = writer.mark();
            self.writer = Some(writer);
            self.pending.clear();
            return Ok(());
        }
    }

    fn keeps_marks(&self) -> bool {
        true
    }
}
