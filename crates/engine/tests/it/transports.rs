//! Tables whose rows come from a system other than files: here a broker in memory, with partitions of messages.
//!
//! Random messages insert, replace and delete rows of a table with a primary key, of one without, and of one that keeps nothing, while
//! engines end and start again. What a table and its view hold is compared with the messages.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use alluvium::arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use alluvium::{
    Builder, Engine, Error, FileAccess, Outcome, Portion, Result, SourcePosition, SourceReader,
    SourceState, System, Transport, TransportConnector, TransportRequest,
};
use parking_lot::Mutex;

use crate::support::{PATIENCE, lines, settled};

/// How many partitions a broker has.
const PARTITIONS: usize = 3;

/// A change of a row. A row that is deleted by its key has no value.
#[derive(Clone, Debug)]
pub struct Message {
    pub key: i64,
    pub value: Option<String>,
    pub deletes: bool,
}

/// The messages of a topic, by partition; those that were forgotten are `None`.
type Topic = Vec<Vec<Option<Message>>>;

/// A transport that reads a topic in this process.
#[derive(Clone)]
pub struct Broker {
    topic: Arc<Mutex<Topic>>,
    /// Whether messages can be read again.
    replays: bool,
}

struct Reader {
    broker: Broker,
    request: TransportRequest,
    /// The next message of each partition.
    next: [u64; PARTITIONS],
}

impl Broker {
    pub fn new(replays: bool) -> Self {
        Self { topic: Arc::new(Mutex::new(vec![Vec::new(); PARTITIONS])), replays }
    }

    pub fn send(&self, message: Message) {
        let partition = message.key.rem_euclid(PARTITIONS as i64) as usize;
        self.topic.lock()[partition].push(Some(message));
    }

    /// Where the partitions end.
    fn end(&self) -> [u64; PARTITIONS] {
        let topic = self.topic.lock();
        std::array::from_fn(|partition| topic[partition].len() as u64)
    }

    /// Forgets all messages that there are.
    fn forget(&self) {
        self.topic.lock().iter_mut().flatten().for_each(|message| *message = None);
    }
}

fn position(next: [u64; PARTITIONS]) -> SourcePosition {
    let bytes: Vec<u8> = next.iter().flat_map(|offset| offset.to_le_bytes()).collect();
    SourcePosition::new(bytes, format!("{next:?}"))
}

fn offsets(position: &SourcePosition) -> [u64; PARTITIONS] {
    let mut offsets = position.bytes().chunks(8).map(|offset| offset.try_into().unwrap());
    std::array::from_fn(|_| u64::from_le_bytes(offsets.next().unwrap()))
}

impl System for Broker {
    fn name(&self) -> &str {
        "broker"
    }

    fn is_secret(&self, option: &str) -> bool {
        option == "password"
    }

    fn check(&self, option: &str, _: &str) -> Result<()> {
        match option {
            "topic" | "host" => Ok(()),
            other => Err(Error::source(format!("a broker has no option \"{other}\""))),
        }
    }

    fn canonical<'a>(&self, option: &'a str) -> &'a str {
        if option == "broker" { "host" } else { option }
    }

    fn is_of_connection(&self, option: &str) -> bool {
        option == "host"
    }

    fn hosts(&self, connector: &TransportConnector) -> Option<Vec<String>> {
        Some(connector.option("host").into_iter().map(str::to_owned).collect())
    }
}

impl Transport for Broker {
    fn place(&self, connector: &TransportConnector) -> Result<String> {
        let topic = connector.options.iter().find(|(name, _)| name == "topic");
        let (_, topic) = topic.ok_or_else(|| Error::source("a broker needs a \"topic\""))?;
        let host = connector.option("host").unwrap_or("memory");
        Ok(format!("broker://{host}/{topic}"))
    }

    fn open(&self, request: &TransportRequest) -> Result<Box<dyn SourceReader>> {
        let password = request.connector.secret("password")?;
        if password.is_some_and(|password| password.reveal() != "hush") {
            return Err(Error::source("the broker refuses the password"));
        }
        let next = request.start.as_ref().map_or([0; PARTITIONS], offsets);
        Ok(Box::new(Reader { broker: self.clone(), request: request.clone(), next }))
    }
}

impl Reader {
    /// The messages up to an end, at most so many.
    fn read(&mut self, end: [u64; PARTITIONS], most: usize) -> Result<Option<Portion>> {
        let topic = self.broker.topic.lock();
        let mut taken: Vec<Message> = Vec::new();
        for (partition, messages) in topic.iter().enumerate() {
            let next = &mut self.next[partition];
            while *next < end[partition] && taken.len() < most {
                let message = messages[*next as usize].clone();
                taken.push(message.ok_or_else(|| Error::source("the messages are gone"))?);
                *next += 1;
            }
        }
        let keys = Int64Array::from_iter_values(taken.iter().map(|message| message.key));
        let values: StringArray = taken.iter().map(|message| message.value.as_deref()).collect();
        let deleted: BooleanArray = taken.iter().map(|message| Some(message.deletes)).collect();
        let columns: [(_, ArrayRef); 2] = [("k", Arc::new(keys)), ("v", Arc::new(values))];
        let mut portion = Portion::new(RecordBatch::try_from_iter_with_nullable(
            columns.map(|(name, column)| (name, column, true)),
        )?);
        portion.deleted = Some(deleted);
        Ok(Some(portion))
    }
}

impl SourceReader for Reader {
    fn next(&mut self) -> Result<Option<Portion>> {
        let live = self.request.live.clone().unwrap();
        while self.broker.end() == self.next {
            if live.is_over() {
                return Err(Error::source("nobody needs the rows any more"));
            }
            sleep(Duration::from_millis(1));
        }
        self.read(self.broker.end(), self.request.batch_rows)
    }

    fn position(&self) -> Option<SourcePosition> {
        Some(position(self.next))
    }

    fn replays(&self) -> bool {
        self.broker.replays
    }

    fn next_to(&mut self, end: &SourcePosition) -> Result<Option<Portion>> {
        self.read(offsets(end), usize::MAX)
    }

    fn unread(&self) -> Option<u64> {
        Some(self.broker.end().iter().zip(self.next).map(|(end, next)| end - next).sum())
    }
}

/// A kind of table, and what a message that deletes a row of it has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Keyed,
    Kept,
    Stream,
}

impl Kind {
    fn program(self) -> String {
        let (key, options) = match self {
            Self::Keyed => (" PRIMARY KEY", ""),
            Self::Kept => ("", ", 'materialized' = 'true'"),
            Self::Stream => ("", ", 'materialized' = 'false'"),
        };
        format!(
            "CREATE TABLE t (k BIGINT{key}, v TEXT NOT NULL, n INT DEFAULT 7) WITH (
                 'connectors' = '[{{\"transport\": {{\"name\": \"broker_input\", \"config\": {{\"topic\": \"a\"}}}}}}]'{options});
             CREATE MATERIALIZED VIEW m AS SELECT k, v, n FROM t;
             CREATE MATERIALIZED VIEW sums AS SELECT v, COUNT(*) AS rows, SUM(k) AS keys FROM t GROUP BY v"
        )
    }
}

/// The rows that messages leave.
#[derive(Default)]
struct Model(BTreeMap<i64, Vec<String>>);

impl Model {
    /// A message that inserts a row, or deletes one that is there.
    fn message(&mut self, kind: Kind, random: &mut fastrand::Rng) -> Message {
        let key = random.i64(-5..35);
        let rows = self.0.entry(key).or_default();
        if random.u8(..3) == 0 && (kind == Kind::Keyed || !rows.is_empty()) {
            let value = rows.pop().filter(|_| kind != Kind::Keyed);
            return Message { key, value, deletes: true };
        }
        let value = ["a", "b", "", "a longer value, which no page holds inline"][random.usize(..4)];
        if kind == Kind::Keyed {
            rows.clear();
        }
        rows.push(value.to_owned());
        Message { key, value: Some(value.to_owned()), deletes: false }
    }

    fn rows(&self) -> Vec<String> {
        let rows =
            self.0.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        let mut rows: Vec<_> = rows.map(|(key, value)| format!("{key} {value} 7")).collect();
        rows.sort();
        rows
    }

    fn sums(&self) -> Vec<String> {
        let mut sums: BTreeMap<&str, (u64, i64)> = BTreeMap::new();
        for (key, value) in
            self.0.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)))
        {
            let (rows, keys) = sums.entry(value).or_default();
            (*rows, *keys) = (*rows + 1, *keys + key);
        }
        let mut sums: Vec<_> =
            sums.iter().map(|(value, (rows, keys))| format!("{value} {rows} {keys}")).collect();
        sums.sort();
        sums
    }
}

/// Waits until the engine has read all that there is.
pub fn wait(engine: &Engine, broker: &Broker) {
    let (start, end) = (Instant::now(), Some(position(broker.end())));
    loop {
        let progress = engine.progress();
        if let SourceState::Failed { message } = &progress.sources[0].state {
            panic!("the source fails: {message}");
        }
        if progress.sources[0].position == end || broker.end() == [0; PARTITIONS] {
            assert_eq!(progress.sources[0].unread.unwrap_or(0), 0);
            return;
        }
        assert!(start.elapsed() < PATIENCE, "it is at {:?}", progress.sources[0].position);
        sleep(Duration::from_millis(1));
    }
}

fn run(seed: u64, kind: Kind, replays: bool, workers: usize) {
    let case = format!("seed {seed}, {kind:?}, replays: {replays}, {workers} workers");
    let (broker, folder) = (Broker::new(replays), tempfile::tempdir().unwrap());
    let mut random = fastrand::Rng::with_seed(seed);
    let open = || -> Builder { Engine::builder().workers(workers).transport(broker.clone()) };
    let mut engine = open().state(&*format!("file:{}", folder.path().display())).open().unwrap();
    engine.execute(&kind.program()).unwrap();
    engine.start().unwrap();
    let mut model = Model::default();
    for _ in 0..12 {
        for _ in 0..random.u8(..200) {
            broker.send(model.message(kind, &mut random));
        }
        if random.u8(..3) > 0 {
            wait(&engine, &broker);
            assert_eq!(settled(&engine, "SELECT * FROM m"), model.rows(), "{case}");
            assert_eq!(settled(&engine, "SELECT * FROM sums"), model.sums(), "{case}");
            if kind != Kind::Stream {
                assert_eq!(settled(&engine, "SELECT * FROM t"), model.rows(), "{case}");
            }
            match random.u8(..3) {
                // A checkpoint needs nothing before it, and rows that are recorded need no messages.
                0 => {
                    engine.checkpoint().unwrap();
                    broker.forget();
                }
                1 if !replays => broker.forget(),
                _ => {}
            }
        }
        if random.bool() {
            drop(engine);
            engine = open().state(&*format!("file:{}", folder.path().display())).open().unwrap();
            engine.start().unwrap();
        }
    }
}

#[test]
fn rows_are_those_of_the_messages_however_often_an_engine_starts_again() {
    for seed in 0..2 {
        for kind in [Kind::Keyed, Kind::Kept, Kind::Stream] {
            for replays in [true, false] {
                run(seed, kind, replays, 1 + seed as usize * 2);
            }
        }
    }
}

#[test]
fn the_lag_and_the_place_of_an_input_are_shown() {
    let broker = Broker::new(true);
    let engine = Engine::builder().transport(broker.clone()).open_in_memory().unwrap();
    engine.execute(&Kind::Keyed.program()).unwrap();
    for key in 0..9 {
        broker.send(Message { key, value: Some("v".to_owned()), deletes: false });
    }
    engine.start().unwrap();
    wait(&engine, &broker);
    let shown = "SELECT name, path, state, position, rows, lag_rows FROM alluvium.sources";
    assert_eq!(settled(&engine, shown), ["broker broker://memory/a running [3, 3, 3] 9 0"]);
}

/// A table may have several: none waits for the end of another.
#[test]
fn inputs_without_an_end_are_read_at_the_same_time() {
    let broker = Broker::new(true);
    let engine = Engine::builder().transport(broker.clone()).open_in_memory().unwrap();
    let connector =
        r#"{"transport": {"name": "broker", "config": {"topic": "a", "linger_ms": 5}}}"#;
    engine
        .execute(&format!(
            "CREATE TABLE t (k BIGINT, v TEXT) WITH ('connectors' = '[{connector}, {connector}]', 'materialized' = 'true')"
        ))
        .unwrap();
    engine.start().unwrap();
    broker.send(Message { key: 4, value: Some("v".to_owned()), deletes: false });
    let start = Instant::now();
    while settled(&engine, "SELECT COUNT(*) FROM t") != ["2"] {
        assert!(start.elapsed() < PATIENCE, "the second input waits for the first");
    }
    engine.execute("DROP TABLE t").unwrap();
    engine.wait_for_sources().unwrap();
}

#[test]
fn wrong_connectors_are_refused_when_the_table_is_created() {
    let engine = Engine::builder().transport(Broker::new(true)).open_in_memory().unwrap();
    let create = |transport: &str, config: &str| {
        let sql = format!(
            r#"CREATE TABLE t (k BIGINT, v TEXT) WITH ('connectors' = '[{{"transport": {{"name": "{transport}", "config": {{{config}}}}}}}]')"#
        );
        engine.execute(&sql).unwrap_err().to_string()
    };
    for (transport, config, expected) in [
        (
            "kafka_input",
            r#""topic": "a""#,
            r#""kafka_input" is not supported here; there is "file_input", "broker_input""#,
        ),
        ("broker_input", "", r#"a broker needs a "topic""#),
        (
            "broker_input",
            r#""topic": "${secret:topic}""#,
            r#""topic" is no secret: write its value"#,
        ),
        ("broker_input", r#""topic": "a", "password": "hush""#, "but named: ${secret:name}"),
        ("broker_input", r#""topics": "a""#, r#"a broker has no option "topics""#),
        (
            "broker_input",
            r#""topic": "a", "linger_ms": "x""#,
            r#""linger_ms" is a number of milliseconds"#,
        ),
    ] {
        let error = create(transport, config);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn only_superusers_and_programs_connect_to_other_systems() {
    let engine = Engine::builder().transport(Broker::new(true)).open_in_memory().unwrap();
    engine
        .execute("CREATE ROLE boss SUPERUSER LOGIN PASSWORD 'SCRAM-SHA-256$4096:c2FsdA==$a:b'")
        .unwrap();
    engine.execute("CREATE ROLE clerk LOGIN; GRANT CREATE ON SCHEMA public TO clerk").unwrap();
    let create = |role: Option<&str>, access: Option<FileAccess>| {
        let mut session = engine.session();
        if let Some(access) = access {
            session.set_file_access(access);
        }
        if let Some(role) = role {
            session.set_role(role).unwrap();
        }
        let created = session.execute(&Kind::Keyed.program());
        if created.is_ok() {
            session.execute("DROP TABLE t CASCADE").unwrap();
        }
        created.map(drop)
    };
    create(None, None).unwrap();
    create(Some("boss"), None).unwrap();
    for denied in [create(Some("clerk"), None), create(None, Some(FileAccess::Nothing))] {
        let error = denied.unwrap_err().to_string();
        assert!(error.contains("only a superuser may use the transport"), "{error}");
    }
}

/// It is read when the input is opened, and is nowhere that a statement could show it.
#[test]
fn a_connector_names_a_secret_and_never_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("secrets")).unwrap();
    let state = format!("file:{}", path("state").display());
    let open = |broker: &Broker| {
        let builder = Engine::builder().transport(broker.clone()).secrets(path("secrets"));
        builder.state(&*state).open().unwrap()
    };
    let broker = Broker::new(true);
    let engine = open(&broker);
    let program = Kind::Keyed
        .program()
        .replace(r#""topic": "a""#, r#""topic": "a", "password": "${secret:broker_password}""#);
    engine.execute(&program).unwrap();
    let error = engine.start().unwrap_err().to_string();
    assert!(
        error.contains("\"broker_password\"") && error.contains("ALLUVIUM_SECRET_BROKER_PASSWORD")
    );
    std::fs::write(path("secrets").join("broker_password"), "wrong\n").unwrap();
    let error = engine.start().unwrap_err().to_string();
    assert!(error.contains("refuses the password") && !error.contains("wrong"), "{error}");
    std::fs::write(path("secrets").join("broker_password"), "hush\n").unwrap();
    broker.send(Message { key: 1, value: Some("v".to_owned()), deletes: false });
    engine.start().unwrap();
    wait(&engine, &broker);
    engine.checkpoint().unwrap();
    for relation in ["alluvium.sources", "alluvium.relations", "alluvium.log"] {
        let shown = settled(&engine, &format!("SELECT * FROM {relation}")).join("\n");
        assert!(!shown.contains("hush"), "{shown}");
    }
    drop(engine);
    let mut files = vec![path("state")];
    while let Some(file) = files.pop() {
        match file.is_dir() {
            true => {
                files.extend(std::fs::read_dir(file).unwrap().map(|entry| entry.unwrap().path()))
            }
            false => {
                let bytes = std::fs::read(&file).unwrap();
                assert!(!bytes.windows(4).any(|text| text == b"hush"), "{}", file.display());
            }
        }
    }
    let engine = open(&broker);
    broker.send(Message { key: 2, value: Some("v".to_owned()), deletes: false });
    engine.start().unwrap();
    wait(&engine, &broker);
    assert_eq!(settled(&engine, "SELECT k FROM t"), ["1", "2"]);
}

/// What it has read stays, what comes meanwhile is read later, and once.
/// It was kept for the name, so that no checkpoint could be opened again.
#[test]
fn a_table_that_takes_the_place_of_a_paused_one_does_not_pause() {
    let (broker, folder) = (Broker::new(true), tempfile::tempdir().unwrap());
    let state = format!("file:{}", folder.path().display());
    let open = || Engine::builder().transport(broker.clone()).state(&*state).open().unwrap();
    let engine = open();
    let program = Kind::Kept.program();
    let (table, _) = program.split_once(';').unwrap();
    engine.execute(table).unwrap();
    engine.execute("ALTER SOURCE t PAUSE").unwrap();
    engine.execute("CREATE OR REPLACE TABLE t (k BIGINT PRIMARY KEY)").unwrap();
    engine.execute("INSERT INTO t VALUES (1)").unwrap();
    engine.checkpoint().unwrap();
    drop(engine);
    let engine = open();
    assert_eq!(settled(&engine, "SELECT k FROM t"), ["1"]);
    engine.execute(&table.replace("CREATE TABLE", "CREATE OR REPLACE TABLE")).unwrap();
    engine.start().unwrap();
    assert_eq!(settled(&engine, "SELECT state FROM alluvium.sources"), ["running"]);
}

#[test]
fn a_source_pauses_and_goes_on_across_restarts() {
    let (broker, folder) = (Broker::new(true), tempfile::tempdir().unwrap());
    let state = format!("file:{}", folder.path().display());
    let open = || Engine::builder().transport(broker.clone()).state(&*state).open().unwrap();
    let send = |key| broker.send(Message { key, value: Some("v".to_owned()), deletes: false });
    let keys = |engine: &Engine| settled(engine, "SELECT k FROM m").join(" ");
    let shown = |engine: &Engine| settled(engine, "SELECT state FROM alluvium.sources").join(" ");
    // Longer than a reader looks for messages: it has read them, and keeps them.
    let pass = || sleep(Duration::from_millis(50));
    let mut engine = open();
    engine.execute(&Kind::Kept.program()).unwrap();
    engine.start().unwrap();
    send(1);
    wait(&engine, &broker);
    engine.execute("ALTER SOURCE t PAUSE; ALTER SOURCE t PAUSE").unwrap();
    send(2);
    pass();
    assert_eq!((keys(&engine), shown(&engine)), ("1".to_owned(), "paused".to_owned()));
    let listed = engine.session().execute("SHOW SOURCES").unwrap().pop();
    let Some(Outcome::Rows(sources)) = listed else { panic!("it has rows") };
    let sources = lines(&sources.into_batches().unwrap());
    assert_eq!(sources, ["t broker broker://memory/a paused"]);
    engine.execute("ALTER SOURCE t RESUME").unwrap();
    wait(&engine, &broker);
    assert_eq!((keys(&engine), shown(&engine)), ("1 2".to_owned(), "running".to_owned()));
    engine.execute("ALTER SOURCE t PAUSE").unwrap();
    send(3);
    for has_checkpoint in [false, true] {
        if has_checkpoint {
            engine.checkpoint().unwrap();
        }
        drop(engine);
        engine = open();
        engine.start().unwrap();
        pass();
        assert_eq!((keys(&engine), shown(&engine)), ("1 2".to_owned(), "paused".to_owned()));
    }
    engine.execute("ALTER SOURCE t RESUME").unwrap();
    wait(&engine, &broker);
    assert_eq!(keys(&engine), "1 2 3");
    drop(engine);
    engine = open();
    engine.start().unwrap();
    send(4);
    wait(&engine, &broker);
    assert_eq!((keys(&engine), shown(&engine)), ("1 2 3 4".to_owned(), "running".to_owned()));
    engine.execute("ALTER SOURCE t PAUSE").unwrap();
    send(5);
    pass();
    // A thread that pauses hinders nothing.
    engine.execute("DROP TABLE t CASCADE").unwrap();
    engine.wait_for_sources().unwrap();
    let error = engine.execute("ALTER SOURCE t PAUSE").unwrap_err().to_string();
    assert!(error.contains("there is no table or view \"t\""), "{error}");
    engine.execute("ALTER SOURCE IF EXISTS t PAUSE; CREATE TABLE u (k INT)").unwrap();
    let error = engine.execute("ALTER SOURCE u PAUSE").unwrap_err().to_string();
    assert!(error.contains("\"u\" is no table with a connector"), "{error}");
}
