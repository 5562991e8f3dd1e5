//! Connections to a server, as its client and as its replica.

use std::io;
use std::time::{Duration, Instant};

use alluvium::Live;
use bytes::{Buf as _, Bytes, BytesMut};
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{Header, Message};
use postgres_protocol::message::frontend;

use super::failure::{Answer, Failure, Result};
use super::settings::Settings;
use super::socket::Socket;
use crate::systems::waiting::{PATIENCE, check_live};

/// How long a server may take to log us in.
const LOGIN: Duration = Duration::from_secs(30);

/// How long a server may be silent over a connection whose end nobody else decides.
const SILENCE: Duration = Duration::from_secs(30);

/// How many bytes are read at once.
const CHUNK: usize = 1 << 18;

/// How many bytes a message has at most, before the server has logged us in and after it.
const LONGEST: (usize, usize) = (1 << 16, 1 << 30);

/// The tag of the answer to a command that begins to copy both ways, which the library does not know.
const COPY_BOTH: u8 = b'W';

/// How values are written, that nothing is too slow, that a commit lasts once it is told, and that a policy which leaves out rows is an
/// error, whatever the server is set to.
const SESSION: [(&str, &str); 11] = [
    ("client_encoding", "UTF8"),
    ("standard_conforming_strings", "on"),
    ("row_security", "off"),
    ("DateStyle", "ISO"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("extra_float_digits", "3"),
    ("bytea_output", "hex"),
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("synchronous_commit", "on"),
];

/// The name of the setting that ends a transaction in which nothing is done for so long.
const IDLE_IN_TRANSACTION: &str = "idle_in_transaction_session_timeout";

/// A message of a server.
enum Incoming {
    Message(Message),
    CopyBoth,
}

/// A row of a result: a text or NULL for each column.
pub struct Row(Vec<Option<String>>);

impl Row {
    /// The text of a column; `None` is NULL, or no such column.
    pub fn get(&self, column: usize) -> Option<&str> {
        self.0.get(column)?.as_deref()
    }
}

impl From<Vec<Option<String>>> for Row {
    fn from(texts: Vec<Option<String>>) -> Self {
        Self(texts)
    }
}

/// A connection to a server.
pub struct Connection {
    socket: Socket,
    input: BytesMut,
    chunk: Vec<u8>,
    output: BytesMut,
    live: Option<Live>,
    is_logged_in: bool,
    opened: Instant,
    heard: Instant,
}

impl Connection {
    /// Logs in, as a replica or as any other client. Ends to wait when `live` is over.
    pub fn open(settings: &Settings, replicates: bool, live: Option<&Live>) -> Result<Self> {
        let socket = Socket::connect(settings)?;
        let now = Instant::now();
        let mut this = Self {
            socket,
            input: BytesMut::new(),
            chunk: vec![0; CHUNK],
            output: BytesMut::new(),
            live: live.cloned(),
            is_logged_in: false,
            opened: now,
            heard: now,
        };
        let database = settings.database();
        let mut parameters = vec![
            ("user", settings.user()),
            ("database", database),
            ("application_name", "alluvium"),
        ];
        parameters.extend(SESSION);
        // A snapshot waits for who reads it. A transaction that writes does not, and its locks end with it if its client is gone.
        match replicates {
            true => parameters.extend([("replication", "database"), (IDLE_IN_TRANSACTION, "0")]),
            false => parameters.push((IDLE_IN_TRANSACTION, "60s")),
        }
        frontend::startup_message(parameters, &mut this.output)?;
        this.send()?;
        this.log_in(settings)?;
        this.is_logged_in = true;
        Ok(this)
    }

    fn log_in(&mut self, settings: &Settings) -> Result<()> {
        let what = format!("cannot log in at {}", settings.place());
        let password = || {
            settings.password().ok_or_else(|| {
                Failure::last(format!("{what}: the server asks for a password, and there is none"))
            })
        };
        let unproved =
            |error: io::Error| Failure::last(format!("{what}: {SCRAM_SHA_256} fails: {error}"));
        let mut scram = None;
        loop {
            match self.message()? {
                Message::AuthenticationOk
                | Message::ParameterStatus(_)
                | Message::BackendKeyData(_) => {}
                Message::AuthenticationCleartextPassword => {
                    if !self.socket.is_private()? {
                        return Err(Failure::last(format!(
                            "{what}: the server asks for the password itself, which others could read on the way: set \"sslmode\" to \
                             verify-full, or scram-sha-256 in pg_hba.conf of the server"
                        )));
                    }
                    frontend::password_message(password()?.as_bytes(), &mut self.output)?;
                    self.send()?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let user = settings.user().as_bytes();
                    let hash = md5_hash(user, password()?.as_bytes(), body.salt());
                    frontend::password_message(hash.as_bytes(), &mut self.output)?;
                    self.send()?;
                }
                Message::AuthenticationSasl(body) => {
                    if !body.mechanisms().any(|name| Ok(name == SCRAM_SHA_256))? {
                        return Err(Failure::last(format!("{what}: it offers no {SCRAM_SHA_256}")));
                    }
                    let binding = ChannelBinding::unsupported();
                    let begun = ScramSha256::new(password()?.as_bytes(), binding);
                    let first = begun.message();
                    frontend::sasl_initial_response(SCRAM_SHA_256, first, &mut self.output)?;
                    scram = Some(begun);
                    self.send()?;
                }
                Message::AuthenticationSaslContinue(body) => {
                    let Some(scram) = &mut scram else { return Err(unexpected()) };
                    scram.update(body.data()).map_err(unproved)?;
                    frontend::sasl_response(scram.message(), &mut self.output)?;
                    self.send()?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    let Some(scram) = &mut scram else { return Err(unexpected()) };
                    scram.finish(body.data()).map_err(unproved)?;
                }
                Message::ErrorResponse(body) => {
                    return Err(Failure::refused(&what, &Answer::read(&body)?));
                }
                Message::ReadyForQuery(_) => return Ok(()),
                Message::NoticeResponse(_) => {}
                _ => {
                    return Err(Failure::last(format!(
                        "{what}: the server asks for a login that is none of a password"
                    )));
                }
            }
        }
    }

    /// The rows of a statement, or of several.
    pub fn query(&mut self, what: &str, sql: &str) -> Result<Vec<Row>> {
        frontend::query(sql, &mut self.output)?;
        self.send()?;
        let (mut rows, mut refused) = (Vec::new(), None);
        loop {
            match self.message()? {
                Message::DataRow(body) => {
                    let bytes = body.buffer();
                    let text = |range| String::from_utf8_lossy(&bytes[range]).into_owned();
                    let row = body.ranges().map(|range| Ok(range.map(text)));
                    rows.push(Row(row.collect()?));
                }
                Message::ErrorResponse(body) => refused = Some(Answer::read(&body)?),
                Message::ReadyForQuery(_) => {
                    return match refused {
                        Some(answer) => Err(Failure::refused(what, &answer)),
                        None => Ok(rows),
                    };
                }
                _ => {}
            }
        }
    }

    /// Begins a statement that copies rows out of the server.
    pub fn begin_copy(&mut self, what: &str, sql: &str) -> Result<()> {
        frontend::query(sql, &mut self.output)?;
        self.send()?;
        loop {
            match self.message()? {
                Message::CopyOutResponse(_) => return Ok(()),
                Message::ErrorResponse(body) => {
                    return Err(Failure::refused(what, &Answer::read(&body)?));
                }
                Message::NoticeResponse(_) | Message::ParameterStatus(_) => {}
                _ => return Err(unexpected()),
            }
        }
    }

    /// The next line that is copied; `None` after the last one.
    pub fn copied(&mut self, what: &str) -> Result<Option<Bytes>> {
        let mut refused = None;
        loop {
            match self.message()? {
                Message::CopyData(body) => return Ok(Some(body.into_bytes())),
                Message::ErrorResponse(body) => refused = Some(Answer::read(&body)?),
                Message::ReadyForQuery(_) => {
                    return match refused {
                        Some(answer) => Err(Failure::refused(what, &answer)),
                        None => Ok(None),
                    };
                }
                _ => {}
            }
        }
    }

    /// Copies rows into the server.
    pub fn copy_in(&mut self, what: &str, sql: &str, data: &[u8]) -> Result<()> {
        frontend::query(sql, &mut self.output)?;
        self.send()?;
        let (mut begun, mut refused) = (false, None);
        loop {
            match self.message()? {
                Message::CopyInResponse(_) => {
                    begun = true;
                    for chunk in data.chunks(CHUNK) {
                        frontend::CopyData::new(chunk)?.write(&mut self.output);
                        self.send()?;
                    }
                    frontend::copy_done(&mut self.output);
                    self.send()?;
                }
                Message::ErrorResponse(body) => refused = Some(Answer::read(&body)?),
                Message::ReadyForQuery(_) => {
                    return match refused {
                        Some(answer) => Err(Failure::refused(what, &answer)),
                        None if begun => Ok(()),
                        None => Err(unexpected()),
                    };
                }
                _ => {}
            }
        }
    }

    /// Ends to wait when this is over, from now on.
    pub fn set_live(&mut self, live: Live) {
        self.live = Some(live);
    }

    /// Begins to follow a slot.
    pub fn begin_replication(&mut self, what: &str, command: &str) -> Result<()> {
        frontend::query(command, &mut self.output)?;
        self.send()?;
        loop {
            match self.incoming()? {
                Incoming::CopyBoth => return Ok(()),
                Incoming::Message(Message::ErrorResponse(body)) => {
                    return Err(Failure::refused(what, &Answer::read(&body)?));
                }
                Incoming::Message(_) => {}
            }
        }
    }

    /// The next message of a slot that is followed, if one comes in time.
    pub fn replicated(&mut self, what: &str, patience: Duration) -> Result<Option<Bytes>> {
        match self.incoming_within(patience)? {
            None => Ok(None),
            Some(Incoming::Message(Message::CopyData(body))) => Ok(Some(body.into_bytes())),
            Some(Incoming::Message(Message::ErrorResponse(body))) => {
                Err(Failure::refused(what, &Answer::read(&body)?))
            }
            Some(Incoming::Message(Message::CopyDone | Message::CommandComplete(_))) => {
                Err(Failure::Passing("the server has ended the replication".to_owned()))
            }
            Some(_) => Ok(None),
        }
    }

    /// When something of the server's has come last.
    pub fn heard(&self) -> Instant {
        self.heard
    }

    /// Whether a message is here already.
    pub fn has_more(&self) -> bool {
        self.input.len() >= 5
            && matches!(Header::parse(&self.input), Ok(Some(header))
                if self.input.len() > usize::try_from(header.len()).unwrap_or(usize::MAX))
    }

    /// Sends a message to the server of a slot that is followed.
    pub fn reply(&mut self, message: &[u8]) -> Result<()> {
        frontend::CopyData::new(message)?.write(&mut self.output);
        self.send()
    }

    fn send(&mut self) -> Result<()> {
        self.socket.write(&self.output)?;
        self.output.clear();
        Ok(())
    }

    fn message(&mut self) -> Result<Message> {
        match self.incoming()? {
            Incoming::Message(message) => Ok(message),
            Incoming::CopyBoth => Err(unexpected()),
        }
    }

    /// The next message, which is waited for as long as it is needed. The server may take some time to log us in, and is not silent for
    /// long without a reader that lives.
    fn incoming(&mut self) -> Result<Incoming> {
        let begun = Instant::now();
        loop {
            let is_late = match self.is_logged_in {
                true => self.live.is_none() && self.heard.max(begun).elapsed() > SILENCE,
                false => self.opened.elapsed() > LOGIN,
            };
            if is_late {
                return Err(Failure::Passing("the server does not answer".to_owned()));
            }
            if let Some(incoming) = self.incoming_within(PATIENCE)? {
                return Ok(incoming);
            }
            check_live(self.live.as_ref())?;
        }
    }

    fn incoming_within(&mut self, patience: Duration) -> Result<Option<Incoming>> {
        let begun = Instant::now();
        loop {
            if let Some(incoming) = self.parse()? {
                return Ok(Some(incoming));
            }
            // A message may come in small parts for long.
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            let Some(count) = self.socket.read(&mut self.chunk, left)? else { return Ok(None) };
            self.input.extend_from_slice(&self.chunk[..count]);
            self.heard = Instant::now();
        }
    }

    fn parse(&mut self) -> Result<Option<Incoming>> {
        let Some(header) = Header::parse(&self.input)? else { return Ok(None) };
        let length = usize::try_from(header.len()).unwrap_or(usize::MAX);
        let longest = if self.is_logged_in { LONGEST.1 } else { LONGEST.0 };
        if length > longest {
            return Err(Failure::last(format!(
                "the server has begun a message of {length} bytes, and {longest} is the most; check that it is one of Postgres"
            )));
        }
        // The library would reserve what the server says, before it comes.
        if self.input.len() <= length {
            return Ok(None);
        }
        if header.tag() == COPY_BOTH {
            self.input.advance(length + 1);
            return Ok(Some(Incoming::CopyBoth));
        }
        Ok(Message::parse(&mut self.input)?.map(Incoming::Message))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.output.clear();
        frontend::terminate(&mut self.output);
        // A server that is not told finds out.
        let _ = self.send();
    }
}

fn unexpected() -> Failure {
    Failure::Passing("the server has sent a message out of turn".to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// The answer "logged in", and that a query may come.
    const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

    /// A connection to a server that sends these bytes, and asks for nothing.
    fn connect(sent: &[u8]) -> Result<Connection> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port().to_string();
        let sent = sent.to_vec();
        thread::spawn(move || {
            let Ok((mut stream, _)) = listener.accept() else { return };
            // Until the client ends, which is told of an error otherwise.
            if stream.write_all(&sent).is_ok() {
                let _ = stream.read_to_end(&mut Vec::new());
            }
        });
        let options = [("host", "127.0.0.1"), ("port", &port), ("table", "t"), ("password", "p")];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Connection::open(&Settings::read_target(&options)?, false, None)
    }

    fn failure<T>(result: Result<T>) -> String {
        match result {
            Err(Failure::Final(error)) => error.to_string(),
            Err(Failure::Passing(reason)) => panic!("it is passing: {reason}"),
            Ok(_) => panic!("it succeeds"),
        }
    }

    #[test]
    fn messages_that_are_too_long_are_refused_before_they_come() {
        let long = failure(connect(b"HTTP/1.1 400 Bad Request\r\n"));
        assert!(long.contains("check that it is one of Postgres"), "{long}");
        let mut later = connect(&[WELCOME, b"D\x7f\xff\xff\xff\0\x01"].concat()).unwrap();
        let long = failure(later.query("cannot ask", "SELECT 1"));
        assert!(long.contains("2147483647 bytes"), "{long}");
        assert!(later.input.capacity() < 1 << 24);
    }

    #[test]
    fn a_server_that_does_not_prove_itself_is_left() {
        let asks = b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0";
        let goes_on = b"R\0\0\0\x1e\0\0\0\x0br=other,s=c2FsdA==,i=1";
        let error = failure(connect(&[&asks[..], goes_on].concat()));
        assert!(error.contains("SCRAM-SHA-256 fails: invalid nonce"), "{error}");
    }

    #[test]
    fn a_row_that_is_too_short_has_no_such_column() {
        let row = b"D\0\0\0\x0b\0\x01\0\0\0\x01xC\0\0\0\x05\0Z\0\0\0\x05I";
        let rows =
            connect(&[WELCOME, row].concat()).unwrap().query("cannot ask", "SELECT 1").unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].get(0), rows[0].get(1)), (Some("x"), None));
    }
}
