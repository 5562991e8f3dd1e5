//! What fails, and whether waiting mends it.

use std::fmt::Display;
use std::io;

use alluvium::Error;
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::message::backend::ErrorResponseBody;

/// Why something was not done.
#[derive(Debug)]
pub enum Failure {
    /// It would be so again.
    Final(Error),
    /// The database is away, or busy: it may be done later.
    Passing(String),
}

/// What a function of this folder returns.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure that waiting does not mend.
    pub fn last(message: impl Display) -> Self {
        Self::Final(Error::source(message.to_string()))
    }

    /// The answer of a database that refuses to do something.
    pub fn refused(what: &str, answer: &Answer) -> Self {
        let Answer { code, message } = answer;
        match answer.is_passing() {
            true => Self::Passing(message.clone()),
            false => Self::last(format!("{what}: {message} (SQLSTATE {code}){}", answer.advice())),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Passing(error.to_string())
    }
}

/// An error as a database tells it.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub code: String,
    pub message: String,
}

impl Answer {
    pub fn read(body: &ErrorResponseBody) -> io::Result<Self> {
        let (mut answer, mut fields) = (Self::default(), body.fields());
        while let Some(field) = fields.next()? {
            let value = || String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'C' => answer.code = value(),
                b'M' => answer.message = value(),
                _ => {}
            }
        }
        Ok(answer)
    }

    /// Whether it may be otherwise later: the database starts or ends, has no connection left, a transaction was idle for
    /// too long, or something is in use.
    fn is_passing(&self) -> bool {
        let classes = ["08", "40", "57P"];
        classes.iter().any(|class| self.code.starts_with(class))
            || ["25P03", "53300", "55006"].contains(&&*self.code)
    }

    fn advice(&self) -> &'static str {
        match &*self.code {
            "21000" => "; several rows of the view have one primary key of the table",
            "28000" | "28P01" => "; check user and password, and pg_hba.conf of the server",
            "3D000" => "; check database",
            "42501" => {
                "; the user needs REPLICATION and SELECT to read; INSERT, UPDATE, DELETE and SELECT to write, on alluvium_progress, too, \
                 which it makes if it may CREATE in the schema; and BYPASSRLS where a policy leaves out rows"
            }
            "53400" => "; raise max_replication_slots or max_wal_senders of the server",
            "55000" => "; the server needs wal_level = logical, and a restart after that is set",
            _ => "",
        }
    }
}
