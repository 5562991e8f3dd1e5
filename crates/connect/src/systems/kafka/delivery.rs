//! Topics as what views are written to.

use std::time::{Duration, Instant};

use alluvium::{
    Delivery, DeliveryRequest, DeliveryWriter, Error, Live, Result, TransportConnector,
};
use arrow::array::RecordBatch;

use super::transport::{Kafka, format_options, place, settings};
use super::writer::Writer;
#[cfg(feature = "avro")]
use crate::encode::Avro;
use crate::encode::{Encoder, Options, Spelling};
#[cfg(feature = "avro")]
use crate::systems::registry::{self, Registry};
use crate::systems::waiting::Backoff;

/// How the changes of a view become messages.
#[derive(Clone, Debug, PartialEq)]
struct Format {
    options: Options,
    /// Where schemas of messages of Avro are; those of JSON have none.
    #[cfg(feature = "avro")]
    registry: Option<registry::Settings>,
}

impl Format {
    fn read(connector: &TransportConnector) -> Result<Self> {
        let options = format_options(connector);
        match connector.format.as_deref() {
            None | Some("json") => Ok(Self {
                options: Options::read(&options, "")?,
                #[cfg(feature = "avro")]
                registry: None,
            }),
            #[cfg(feature = "avro")]
            Some("avro") => {
                let (registry, options) = registry::Settings::read(options)?;
                if !registry.is_named() {
                    return Err(Error::source(
                        "messages of Avro need REGISTRY_URLS, the addresses of a registry that takes their schemas",
                    ));
                }
                let options = Options::read(&options, ", and those of a registry")?;
                Ok(Self { options, registry: Some(registry) })
            }
            #[cfg(not(feature = "avro"))]
            Some("avro") => Err(Error::source(
                "messages of Avro are written by a program that was built with the feature \"avro\"",
            )),
            Some(other) => Err(Error::source(format!(
                "messages are written as json or avro, not as \"{other}\""
            ))),
        }
    }

    /// Waits for a registry to take the schemas of messages of Avro.
    fn encoder(self, request: &DeliveryRequest, topic: &str, live: &Live) -> Result<Encoder> {
        let (key, envelope) = (self.options.key(request)?, self.options.envelope);
        #[cfg(feature = "avro")]
        let spelling = match self.registry {
            Some(registry) => {
                let registry = Registry::new(registry.with_secrets(&request.connector)?)?;
                let columns = (&request.schema, key.as_slice());
                let avro = Avro::new((topic, &registry), columns, envelope, Some(live))?;
                Spelling::Avro(Box::new(avro))
            }
            None => Spelling::Json,
        };
        #[cfg(not(feature = "avro"))]
        let (spelling, _) = (Spelling::Json, (topic, live));
        Encoder::new(&request.schema, envelope, &key, spelling)
    }
}

impl Delivery for Kafka {
    fn place(&self, connector: &TransportConnector) -> Result<String> {
        Format::read(connector)?;
        place(connector)
    }

    fn open(&self, request: &DeliveryRequest) -> Result<Box<dyn DeliveryWriter>> {
        let settings = settings(&request.connector)?;
        let format = Format::read(&request.connector)?;
        let deadline = request.patience.map(|patience| Instant::now() + patience);
        let is_late = move || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let opening = live(request, is_late);
        let encoder = format.encoder(request, settings.topic(), &opening);
        let encoder = encoder.map_err(|error| match is_late() {
            true => Error::source("no registry of schemas answers"),
            false => error,
        })?;
        let writer = Writer::open(&settings, &request.id, Some(&opening));
        let writer = writer.map_err(|error| match is_late() {
            true => Error::source(format!("no broker of {} answers", settings.brokers())),
            false => error,
        })?;
        let (live, delivered, request) = (live(request, || false), writer.last(), request.clone());
        Ok(Box::new(Output { request, encoder, live, writer, delivered, pending: Vec::new() }))
    }
}

/// Waiting for brokers ends when the changes are no longer needed, or it is late.
fn live(request: &DeliveryRequest, is_late: impl Fn() -> bool + Send + Sync + 'static) -> Live {
    let request = request.clone();
    Live::new(Duration::ZERO, true, move || request.is_over() || is_late())
}

/// Writes the changes of a view.
struct Output {
    request: DeliveryRequest,
    encoder: Encoder,
    live: Live,
    writer: Writer,
    delivered: Option<u64>,
    /// The changes that are not committed, by epoch. They are written when they are, so that it can be done again.
    pending: Vec<(u64, RecordBatch, Vec<i64>)>,
}

/// Why changes were not committed.
enum Failure {
    /// It would be so again.
    Final(Error),
    /// Brokers were away, or are others now.
    Passing(Error),
}

impl Output {
    fn try_commit(&mut self, epoch: u64) -> std::result::Result<(), Failure> {
        let mut failed = None;
        for (epoch, rows, weights) in &self.pending {
            let (writer, failed) = (&mut self.writer, &mut failed);
            let mut put = |message: crate::encode::Outgoing<'_>| {
                writer.write(message).inspect_err(|error| *failed = Some(error.clone()))
            };
            let encoded = self.encoder.write(*epoch, rows, weights, &mut put);
            let written = encoded.and_then(|()| self.encoder.finish(*epoch, &mut put));
            if let Err(error) = written {
                self.encoder.clear();
                return Err(match failed.take() {
                    Some(error) if !self.writer.is_over() => Failure::Passing(error),
                    _ => Failure::Final(error),
                });
            }
        }
        self.writer.commit(epoch).map_err(|error| match self.writer.is_over() {
            true => Failure::Final(error),
            false => Failure::Passing(error),
        })
    }

    /// Opens the writer again, which tells whether what seemed to fail was done.
    fn open_again(&mut self) -> Result<()> {
        let settings = settings(&self.request.connector)?;
        self.writer = Writer::open(&settings, &self.request.id, Some(&self.live))?;
        Ok(())
    }
}

impl DeliveryWriter for Output {
    fn delivered(&self) -> Option<u64> {
        self.delivered
    }

    fn write(&mut self, epoch: u64, rows: &RecordBatch, weights: &[i64]) -> Result<()> {
        self.pending.push((epoch, rows.clone(), weights.to_vec()));
        Ok(())
    }

    fn commit(&mut self, epoch: u64) -> Result<()> {
        let mut backoff = Backoff::default();
        loop {
            match self.try_commit(epoch) {
                Ok(()) => break,
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing(error)) if self.request.is_over() => return Err(error),
                Err(Failure::Passing(_)) => {}
            }
            backoff.wait(Some(&self.live))?;
            self.open_again()?;
            if self.writer.last() >= Some(epoch) {
                break;
            }
        }
        self.pending.clear();
        Ok(())
    }

    fn keeps_marks(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Envelope;

    fn read(format: Option<&str>, options: &[(&str, &str)]) -> Result<Format> {
        let mut connector = TransportConnector::default();
        connector.format = format.map(str::to_owned);
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        connector.format_options = options.collect();
        Format::read(&connector)
    }

    #[test]
    fn formats_are_read_and_others_refused() {
        let format = read(None, &[("UPDATE_FORMAT", "Upsert"), ("KEY_COLUMNS", "[\"a\",\"b\"]")]);
        let key = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(format.unwrap().options, Options { envelope: Envelope::Upsert, key });
        let problem = |format, options: &[_]| read(format, options).unwrap_err().to_string();
        assert!(problem(Some("avro"), &[]).contains("Avro"));
        assert!(problem(Some("xml"), &[]).contains("as json or avro, not as \"xml\""));
        assert!(problem(None, &[("UPDATE_FORMAT", "raw")]).contains("changes, upsert or debezium"));
        assert!(problem(None, &[("COLOUR", "red")]).contains("no option \"COLOUR\""));
    }
}
