//! Registries of schemas, by the API of Confluent's, which others have too.
//!
//! A [`Registry`] tells the schema of an identifier that a message has, and gives an identifier to one that messages are written
//! by. It waits for servers as a topic's reader waits for brokers, and asks the next of several if one does not answer. It
//! follows no redirect, and connects to no address of its link only.

mod settings;
#[cfg(test)]
pub mod stub;

use std::time::Duration;

use alluvium::{Error, Live, Result};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::json;
use ureq::Agent;
use ureq::http::{Response, StatusCode};
use ureq::{Body, RequestBuilder};

use crate::systems::http;
use crate::systems::waiting::{Backoff, check_live};
use settings::Credentials;

pub use settings::Settings;

/// How long a server may take for an answer.
const ANSWER: Duration = Duration::from_secs(10);

/// An answer has at most so many bytes.
const LONGEST: u64 = 16 << 20;

/// How schemas are sent.
const JSON: &str = "application/vnd.schemaregistry.v1+json";

/// A registry of schemas.
#[derive(Debug)]
pub struct Registry {
    settings: Settings,
    agent: Agent,
}

/// A schema.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Schema {
    /// Its text, in the language of its kind.
    #[serde(rename = "schema")]
    pub text: String,
    /// Its kind; Avro if it is not said.
    #[serde(rename = "schemaType")]
    pub kind: Option<String>,
    /// Others that it names.
    #[serde(default)]
    pub references: Vec<Reference>,
}

/// A schema that another names.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Reference {
    /// What it is named there.
    pub name: String,
    /// The subject that it is of.
    pub subject: String,
    /// Its version there.
    pub version: u32,
}

/// An identifier, as a registry tells it.
#[derive(Deserialize)]
struct Identifier {
    id: u32,
}

/// Why a registry did not do something.
#[derive(Deserialize)]
struct Problem {
    message: String,
}

/// What came of a request.
enum Answer {
    Done(String),
    /// There is no such thing.
    NotThere,
    /// It would be so again.
    Refused(String),
    /// It may be otherwise soon.
    Passing(String),
}

impl Registry {
    /// A registry that is not connected to yet.
    ///
    /// # Errors
    /// If the file of certificates cannot be read.
    pub fn new(settings: Settings) -> Result<Self> {
        let certificates =
            settings.certificates.as_deref().map(|path| http::certificates("REGISTRY_CA", path));
        let agent = http::agent(certificates.transpose()?, ANSWER);
        Ok(Self { settings, agent })
    }

    /// The schema of an identifier, if there is one. Waits for a server as long as it takes, or a minute if it is not live.
    ///
    /// # Errors
    /// If the registry refuses us, or `live` is over.
    pub fn schema(&self, id: u32, live: Option<&Live>) -> Result<Option<Schema>> {
        let path = format!("/schemas/ids/{id}");
        let answer = self.insist(live, |url| self.send(self.agent.get(format!("{url}{path}"))))?;
        answer.map(|text| self.read(&text, "a schema")).transpose()
    }

    /// The schema of a version of a subject, if there is one.
    ///
    /// # Errors
    /// As of [`schema`](Self::schema).
    pub fn version(
        &self,
        Reference { subject, version, .. }: &Reference,
        live: Option<&Live>,
    ) -> Result<Option<Schema>> {
        let path = format!("/subjects/{}/versions/{version}", escaped(subject));
        let answer = self.insist(live, |url| self.send(self.agent.get(format!("{url}{path}"))))?;
        answer.map(|text| self.read(&text, "a schema")).transpose()
    }

    /// The identifier of a schema of Avro, which becomes the last of a subject if it is not one of it already.
    ///
    /// # Errors
    /// As of [`schema`](Self::schema), and if the schema does not go with earlier ones of the subject.
    pub fn register(&self, subject: &str, schema: &str, live: Option<&Live>) -> Result<u32> {
        let path = format!("/subjects/{}/versions", escaped(subject));
        let body = json!({ "schema": schema }).to_string();
        let answer = self.insist(live, |url| {
            let request = self.with_credentials(self.agent.post(format!("{url}{path}")));
            answer(request.header("Content-Type", JSON).header("Accept", JSON).send(&body))
        })?;
        let no_subject = || {
            let problem = format!("it has no place for schemas of \"{subject}\"");
            Error::source(self.sentence(&problem))
        };
        let Identifier { id } = self.read(&answer.ok_or_else(no_subject)?, "an identifier")?;
        Ok(id)
    }

    fn send(&self, request: RequestBuilder<ureq::typestate::WithoutBody>) -> Answer {
        answer(self.with_credentials(request).header("Accept", JSON).call())
    }

    fn with_credentials<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        let header = match &self.settings.credentials {
            Credentials::None => return request,
            Credentials::Basic(user, password) => {
                let password = password.as_deref().unwrap_or_default();
                format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")))
            }
            Credentials::Bearer(token) => format!("Bearer {token}"),
        };
        request.header("Authorization", header)
    }

    /// Asks one server after the other until one answers.
    fn insist(
        &self,
        live: Option<&Live>,
        mut ask: impl FnMut(&str) -> Answer,
    ) -> Result<Option<String>> {
        let mut backoff = Backoff::default();
        loop {
            let mut trouble = String::new();
            for url in &self.settings.urls {
                check_live(live)?;
                match ask(url) {
                    Answer::Done(text) => return Ok(Some(text)),
                    Answer::NotThere => return Ok(None),
                    Answer::Refused(problem) => return Err(Error::source(self.sentence(&problem))),
                    Answer::Passing(problem) => trouble = problem,
                }
            }
            if backoff.is_over(live) {
                return Err(Error::source(self.sentence(&trouble)));
            }
            backoff.wait(live)?;
        }
    }

    fn read<'a, T: Deserialize<'a>>(&self, text: &'a str, what: &str) -> Result<T> {
        serde_json::from_str(text).map_err(|error| {
            Error::source(self.sentence(&format!("its answer is not {what} ({error})")))
        })
    }

    fn sentence(&self, problem: &str) -> String {
        format!("the registry of schemas at {}: {problem}", self.settings.urls.join(", "))
    }
}

/// What came of a request.
fn answer(response: std::result::Result<Response<Body>, ureq::Error>) -> Answer {
    let mut response = match response {
        Ok(response) => response,
        Err(ureq::Error::BadUri(problem)) => return Answer::Refused(problem),
        Err(error @ (ureq::Error::Tls(_) | ureq::Error::Pem(_) | ureq::Error::Rustls(_))) => {
            return Answer::Refused(format!("{error}; name its certificates by REGISTRY_CA"));
        }
        Err(error) => return Answer::Passing(error.to_string()),
    };
    let text = match response.body_mut().with_config().limit(LONGEST).read_to_string() {
        Ok(text) => text,
        Err(ureq::Error::BodyExceedsLimit(_)) => {
            return Answer::Refused(format!("its answer has more than {LONGEST} bytes"));
        }
        Err(error) => return Answer::Passing(error.to_string()),
    };
    let status = response.status();
    if status.is_success() {
        return Answer::Done(text);
    }
    let told = serde_json::from_str::<Problem>(&text).map(|problem| problem.message);
    let told = told.map_or_else(|_| status.to_string(), |told| format!("{status}: {told}"));
    match status {
        StatusCode::NOT_FOUND => Answer::NotThere,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Answer::Refused(format!(
            "{told}; check REGISTRY_USERNAME and REGISTRY_PASSWORD, or REGISTRY_AUTHORIZATION_TOKEN"
        )),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Answer::Passing(told),
        status if status.is_redirection() => Answer::Refused(format!(
            "{told}: it sends to another place, where nothing follows; name that one"
        )),
        status if status.is_server_error() => Answer::Passing(told),
        _ => Answer::Refused(told),
    }
}

/// A subject as a part of a path.
fn escaped(subject: &str) -> String {
    const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(subject, PLAIN).to_string()
}

#[cfg(test)]
mod tests;
