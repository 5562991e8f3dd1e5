//! A server of our own, and a client beside ours.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use alluvium::{Engine, SourceState};
use tempfile::TempDir;

use crate::workspace::lines;

/// How long anything may take.
pub const LONG: Duration = Duration::from_secs(60);

/// The password of the user `postgres`.
pub const PASSWORD: &str = "secret";

/// A server, which ends with its value, and with this process.
pub struct Server {
    folder: TempDir,
    script: Child,
    address: String,
    process: String,
}

/// The server of tests that do it no harm.
pub fn shared() -> &'static Server {
    static SERVER: LazyLock<Server> = LazyLock::new(Server::start);
    &SERVER
}

/// A name that no other test has.
pub fn unique(kind: &str) -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    format!("{kind}_{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

impl Server {
    pub fn start() -> Self {
        let folder = TempDir::with_prefix("postgres").unwrap();
        let (script, address, process) = run(folder.path(), None);
        let this = Self { folder, script, address, process };
        this.wait();
        this
    }

    /// Kills the server as a crash does.
    pub fn kill(&self) {
        let killed = Command::new("kill").args(["-9", &self.process]).status().unwrap();
        assert!(killed.success());
    }

    /// Starts the server again, which was killed, at its address and with its tables.
    pub fn restart(&mut self) {
        drop(self.script.stdin.take());
        self.script.wait().unwrap();
        let port = self.port().to_owned();
        (self.script, self.address, self.process) = run(self.folder.path(), Some(&port));
        self.wait();
    }

    fn wait(&self) {
        let start = Instant::now();
        while self.try_sql("SELECT 1").is_err() {
            assert!(start.elapsed() < LONG, "the server does not answer");
            sleep(Duration::from_millis(20));
        }
    }

    pub fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap()
    }

    /// A program of the server's, as its client.
    pub fn client(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("PGPASSWORD", PASSWORD).env("PGOPTIONS", "-c client_min_messages=warning");
        command.args(["-h", "127.0.0.1", "-p", self.port(), "-U", "postgres"]);
        command
    }

    /// Runs statements; the rows of the result as lines, or the error.
    pub fn try_sql(&self, sql: &str) -> Result<Vec<String>, String> {
        let mut psql = self.client("psql");
        psql.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-P",
            "null=NULL",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            "postgres",
        ]);
        psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut psql = psql.spawn().unwrap();
        psql.stdin.take().unwrap().write_all(sql.as_bytes()).unwrap();
        let output = psql.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        match output.status.success() {
            true => Ok(text.lines().map(str::to_owned).collect()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    pub fn sql(&self, sql: &str) -> Vec<String> {
        self.try_sql(sql).unwrap()
    }

    /// The table `t` here, of a table there that has these columns, with a publication and a slot of its own.
    pub fn table(&self, columns: &str, table: &str) -> String {
        self.sql(&format!("CREATE PUBLICATION p_{table} FOR TABLE {table}"));
        self.connected(columns, table, "'materialized' = 'true'")
    }

    /// As [`Server::table`], of a publication that is there, and with these options.
    pub fn connected(&self, columns: &str, table: &str, options: &str) -> String {
        format!(
            "CREATE TABLE t ({columns}) WITH (connector = 'postgres', url = 'postgres://postgres@127.0.0.1:{}/postgres', \
             password = '${{secret:pg}}', publication = 'p_{table}', slot = 's_{table}', table = '{table}', {options})",
            self.port()
        )
    }

    /// Waits until a query here has the rows that one has there.
    pub fn check(&self, engine: &Engine, here: &str, there: &str) {
        let start = Instant::now();
        loop {
            check_runs(engine);
            let (mut expected, found) = (self.sql(there), lines(&engine.query(here).unwrap()));
            expected.sort();
            if expected == found {
                return;
            }
            assert!(start.elapsed() < LONG, "{found:#?} instead of {expected:#?}");
            sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        self.script.wait().unwrap();
    }
}

/// Fails if a source has failed.
pub fn check_runs(engine: &Engine) {
    for source in engine.progress().sources {
        if let SourceState::Failed { message } = &source.state {
            panic!("the source fails: {message}");
        }
    }
}

/// Waits until the source of a table has failed, and returns why.
pub fn failure(engine: &Engine) -> String {
    let start = Instant::now();
    loop {
        if let SourceState::Failed { message } = &engine.progress().sources[0].state {
            return message.clone();
        }
        assert!(start.elapsed() < LONG, "the source does not fail");
        sleep(Duration::from_millis(10));
    }
}

/// An engine with a state directory and the password.
pub fn engine(folder: &Path) -> Engine {
    let secrets = folder.join("secrets");
    std::fs::create_dir_all(&secrets).unwrap();
    std::fs::write(secrets.join("pg"), PASSWORD).unwrap();
    let builder = alluvium_connect::formats(Engine::builder().workers(1)).secrets(secrets);
    builder.state(&*format!("file:{}", folder.join("state").display())).open().unwrap()
}

/// The rows of a query here.
pub fn query(engine: &Engine, sql: &str) -> Vec<String> {
    lines(&engine.query(sql).unwrap())
}

/// Runs the script until the server answers: the script, the address and the server's process.
fn run(folder: &Path, port: Option<&str>) -> (Child, String, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/servers/postgres");
    let mut script = Command::new(script)
        .arg(folder)
        .args(port)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(script.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (address, process) = line.trim().split_once(' ').expect("the server starts");
    (script, address.to_owned(), process.to_owned())
}
