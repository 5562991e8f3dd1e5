//! Webhooks as what views are written to.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alluvium::{
    Delivery, DeliveryRequest, DeliveryWriter, Error, Live, Result, System, TransportConnector,
};
use arrow::array::RecordBatch;
use ureq::Agent;

use super::settings::{Credentials, Settings};
use crate::encode::{Encoder, Envelope, Options, Outgoing, Spelling};
use crate::systems::waiting::Backoff;

/// A request has at most so many bytes of changes, give or take one.
const LARGE: usize = 1 << 20;

/// What an answer is read for: its beginning, to tell why a request was not taken.
const TOLD: u64 = 1 << 10;

/// Webhooks: the changes of views are posted to a server, each epoch at least once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Webhook;

impl System for Webhook {
    fn name(&self) -> &str {
        "webhook"
    }

    fn check(&self, option: &str, value: &str) -> Result<()> {
        Settings::check(option, value)
    }

    fn is_secret(&self, option: &str) -> bool {
        Settings::is_secret(option)
    }

    fn is_of_connection(&self, option: &str) -> bool {
        // Only who creates the connection chooses these.
        !option.starts_with("format.")
    }

    fn is_file(&self, option: &str) -> bool {
        Settings::is_file(option)
    }

    fn hosts(&self, connector: &TransportConnector) -> Option<Vec<String>> {
        Some(Settings::read(connector).ok()?.host().into_iter().collect())
    }
}

impl Delivery for Webhook {
    fn place(&self, connector: &TransportConnector) -> Result<String> {
        options(connector)?;
        Ok(Settings::read(connector)?.url().to_owned())
    }

    /// The server is not asked before there are changes.
    fn open(&self, request: &DeliveryRequest) -> Result<Box<dyn DeliveryWriter>> {
        let (settings, options) =
            (Settings::read(&request.connector)?, options(&request.connector)?);
        Credentials::read(&request.connector)?;
        let (envelope, key) = (options.envelope, options.key(request)?);
        let encoder = Encoder::new(&request.schema, envelope, &key, Spelling::Json)?;
        let of = request.clone();
        Ok(Box::new(Output {
            agent: settings.agent()?,
            live: Live::new(Duration::ZERO, true, move || of.is_over()),
            settings,
            request: request.clone(),
            envelope,
            encoder,
            requests: Vec::new(),
        }))
    }
}

fn options(connector: &TransportConnector) -> Result<Options> {
    match connector.format.as_deref() {
        None | Some("json") => Options::read(&connector.format_options, ""),
        Some(other) => {
            Err(Error::source(format!("changes are posted as json, not as \"{other}\"")))
        }
    }
}

/// Posts the changes of a view.
struct Output {
    request: DeliveryRequest,
    settings: Settings,
    agent: Agent,
    live: Live,
    envelope: Envelope,
    encoder: Encoder,
    /// Those that are not made yet.
    requests: Vec<Request>,
}

/// A request that is made, again and again until it is taken.
struct Request {
    id: String,
    body: Vec<u8>,
}

/// The changes of an epoch.
#[derive(Default)]
struct Changes {
    text: Vec<u8>,
    all: Vec<Range<usize>>,
}

impl Changes {
    fn push(&mut self, change: &[&[u8]]) {
        let start = self.text.len();
        change.iter().for_each(|part| self.text.extend_from_slice(part));
        self.all.push(start..self.text.len());
    }

    /// The bodies of requests. They are the same if the epoch is made again, with its changes in another order.
    fn bodies(mut self, relation: &str, epoch: u64) -> Vec<Vec<u8>> {
        let relation = serde_json::Value::from(relation);
        let head = format!("{{\"view\":{relation},\"epoch\":{epoch},\"changes\":[");
        self.all
            .sort_unstable_by(|one, other| self.text[one.clone()].cmp(&self.text[other.clone()]));
        let mut bodies: Vec<Vec<u8>> = Vec::new();
        for change in self.all {
            let body = match bodies.last_mut().filter(|body| body.len() < LARGE) {
                Some(body) => {
                    body.push(b',');
                    body
                }
                None => {
                    bodies.push(head.clone().into_bytes());
                    let last = bodies.len() - 1;
                    &mut bodies[last]
                }
            };
            body.extend_from_slice(&self.text[change]);
        }
        bodies.iter_mut().for_each(|body| body.extend_from_slice(b"]}"));
        bodies
    }
}

impl Output {
    /// Makes a request, again and again until it is taken.
    fn make(&self, Request { id, body }: &Request) -> Result<()> {
        let mut backoff = Backoff::default();
        loop {
            match self.post(id, body) {
                Ok(()) => {
                    self.request.report(None);
                    return Ok(());
                }
                Err(problem) => self.request.report(Some(problem)),
            }
            backoff.wait(Some(&self.live))?;
        }
    }

    /// Makes a request once. Its secrets may be others each time.
    fn post(&self, id: &str, body: &[u8]) -> std::result::Result<(), String> {
        let told = |error: Error| error.to_string();
        let Credentials { authorization, signer } =
            Credentials::read(&self.request.connector).map_err(told)?;
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut request = self
            .agent
            .post(self.settings.url())
            .header("Content-Type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds.to_string());
        if let Some(authorization) = authorization {
            request = request.header("Authorization", authorization);
        }
        if let Some(signer) = signer {
            request = request.header("webhook-signature", signer.sign(id, seconds, body));
        }
        let mut answer = request.send(body).map_err(|error| error.to_string())?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let text = answer.body_mut().with_config().limit(TOLD).read_to_string();
        let text = text.unwrap_or_default();
        match status.is_redirection() {
            true => Err(format!("{status}: it sends to another place, where nothing follows")),
            false => Err(format!("{status}: {}", text.trim())),
        }
    }
}

impl DeliveryWriter for Output {
    /// The server is not asked for it.
    fn delivered(&self) -> Option<u64> {
        None
    }

    fn write(&mut self, epoch: u64, rows: &RecordBatch, weights: &[i64]) -> Result<()> {
        let (envelope, mut changes) = (self.envelope, Changes::default());
        let mut put = |Outgoing { key, value }: Outgoing<'_>| {
            match (envelope, key, value) {
                (Envelope::Upsert, Some(key), value) => {
                    let value = value.unwrap_or(b"null");
                    changes.push(&[b"{\"key\":", key, b",\"value\":", value, b"}"]);
                }
                (_, _, Some(value)) => changes.push(&[value]),
                // The change before it says that the key is deleted.
                (_, _, None) => {}
            }
            Ok(())
        };
        let written = self.encoder.write(epoch, rows, weights, &mut put);
        let written = written.and_then(|()| self.encoder.finish(epoch, &mut put));
        if let Err(error) = written {
            self.encoder.clear();
            return Err(error);
        }
        let id = &self.request.id;
        let bodies = changes.bodies(&self.request.relation, epoch).into_iter().enumerate();
        let requests =
            bodies.map(|(part, body)| Request { id: format!("{id}-{epoch}-{part}"), body });
        self.requests.extend(requests);
        Ok(())
    }

    fn commit(&mut self, _: u64) -> Result<()> {
        for request in std::mem::take(&mut self.requests) {
            self.make(&request)?;
        }
        Ok(())
    }

    fn keeps_marks(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_do_not_depend_on_the_order_of_changes() {
        let long = format!("\"{}\"", "x".repeat(LARGE));
        let bodies = |order: [&str; 3]| {
            let mut changes = Changes::default();
            order.iter().for_each(|change| changes.push(&[change.as_bytes()]));
            changes.bodies("v\"", 7)
        };
        let expected = bodies(["1", &long, "2"]);
        assert_eq!(expected.len(), 2);
        assert_eq!(
            expected[1],
            b"{\"view\":\"v\\\"\",\"epoch\":7,\"changes\":[1,2]}".as_slice().to_vec()
        );
        assert_eq!(bodies(["2", "1", &long]), expected);
        assert_eq!(Changes::default().bodies("v", 7), [[0u8; 0]; 0]);
    }
}
