//! Processes that are killed at any moment: nothing of them is left after the next start, and nothing of others is
//! touched.
//!
//! `ALLUVIUM_ENDINGS` sets the number of rounds.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use crate::binary::binary;
use crate::signals::send;

/// How many rounds there are by default.
const ROUNDS: u64 = 6;

/// How long a program may take to end, on a machine that is busy with other tests.
const SOON: Duration = Duration::from_secs(5);

const PROGRAM: &str = "CREATE TABLE t (a BIGINT, b VARCHAR);
    CREATE MATERIALIZED VIEW sums AS SELECT b, SUM(a) AS s FROM t GROUP BY b;
    CREATE VIEW large AS SELECT * FROM t WHERE a > 5;
    INSERT INTO t SELECT n, 'row ' || (n % 1000) FROM (SELECT UNNEST(range(0, ${ROWS})) AS n);
    COPY (SELECT * FROM t ORDER BY b, a) TO 'copied.csv';
    DELETE FROM t WHERE a % 3 = 0;
    COPY sums TO 'sums.parquet';
    COPY (SELECT * FROM t ORDER BY a) TO 'copied.csv';";

/// A folder with a program, one for temporary files, and in both what belongs to others.
struct World {
    folder: TempDir,
    temporary: TempDir,
    /// Files that another process writes and holds locked.
    _locks: Vec<File>,
    /// The files there before the first process.
    others: BTreeMap<PathBuf, Vec<u8>>,
}

impl World {
    fn new() -> Self {
        let (folder, temporary) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::write(folder.path().join("p.sql"), PROGRAM).unwrap();
        for foreign in
            [".copied.csv.1.partial", ".copied.csv.1.2.partial.txt", ".p.sql.1.2.partial"]
        {
            fs::write(folder.path().join(foreign), "of somebody else").unwrap();
        }
        let scratch = temporary.path();
        for directory in ["alluvium-1-0-0", "alluvium-2-0-0", "alluvium-backup", "alluvium-3-0-0"] {
            fs::create_dir(scratch.join(directory)).unwrap();
            fs::write(scratch.join(directory).join("batch-1.alluvium"), "state").unwrap();
            fs::write(scratch.join(directory).join(".alluvium-scratch.lock"), "").unwrap();
        }
        fs::write(scratch.join("alluvium-1-0-0/precious.txt"), "precious").unwrap();
        let pipe = scratch.join("alluvium-2-0-0/.alluvium-scratch.lock");
        fs::remove_file(&pipe).unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        fs::write(folder.path().join(".copied.csv.1.2.partial"), "being written").unwrap();
        let locked = [
            folder.path().join(".copied.csv.1.2.partial"),
            scratch.join("alluvium-3-0-0/.alluvium-scratch.lock"),
        ];
        let locks = locked.map(|path| {
            let file = File::options().write(true).open(path).unwrap();
            file.lock().unwrap();
            file
        });
        let mut world = Self { folder, temporary, _locks: locks.into(), others: BTreeMap::new() };
        world.others = world.contents();
        world
    }

    /// All files and folders and what they hold; what a program writes under its own name is left out.
    fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut contents = BTreeMap::new();
        let mut open = vec![self.folder.path().to_owned(), self.temporary.path().to_owned()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    open.push(entry.path());
                }
                let own = ["copied.csv", "sums.parquet", "out", "sums.csv", "large.changes.csv"];
                if !own.iter().any(|own| entry.file_name() == *own) {
                    let bytes =
                        if kind.is_file() { fs::read(entry.path()).unwrap() } else { vec![] };
                    contents.insert(entry.path(), bytes);
                }
            }
        }
        contents
    }

    /// Starts a program that does not ignore SIGHUP, though the tests may have been started by `nohup`.
    fn start(&self, rows: u32) -> Child {
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP").arg(binary());
        command.current_dir(self.folder.path()).env("TMPDIR", self.temporary.path());
        command.args(["run", "p.sql", "--output", "out", "--memory", "1M", "--workers", "2"]);
        command.args(["--set", &format!("ROWS={rows}")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Sends a signal to a process after some time, and checks how it ends.
    fn end(&self, after: Duration, signal: &str, number: i32) {
        let child = self.start(60_000);
        std::thread::sleep(after);
        let start = Instant::now();
        // The process may have ended, but is still to be waited for.
        send(signal, &child);
        let output = child.wait_with_output().unwrap();
        let (took, status) = (start.elapsed(), output.status);
        let errors = String::from_utf8_lossy(&output.stderr);
        let case = format!("SIG{signal} after {after:?}: {status}, {took:?}, {errors}");
        let ends = [Some(0), Some(128 + number)].contains(&status.code());
        let killed = status.signal() == Some(number) && (signal == "KILL" || is_early(after));
        assert!((ends || killed) && errors.is_empty() && took < SOON, "{case}");
        if !killed {
            assert_eq!(self.contents(), self.others, "{case}");
        }
    }

    /// A start that is not disturbed removes what is left.
    fn clean(&self) {
        let output = self.start(10).wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{errors}");
        assert_eq!(self.contents(), self.others);
        let copied = fs::read_to_string(self.folder.path().join("copied.csv")).unwrap();
        assert_eq!(copied.lines().count(), 1 + 6);
        assert!(Path::new(&self.folder.path().join("out/sums.csv")).exists());
    }
}

/// Whether a process may not listen for signals yet.
fn is_early(after: Duration) -> bool {
    after < Duration::from_secs(1)
}

#[test]
fn whenever_a_process_ends_it_leaves_nothing_and_touches_nothing_of_others() {
    let rounds = std::env::var("ALLUVIUM_ENDINGS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let world = World::new();
    world.clean();
    let start = Instant::now();
    assert!(world.start(60_000).wait_with_output().unwrap().status.success());
    let whole = start.elapsed();
    let mut random = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    let signals = [("KILL", 9), ("INT", 2), ("TERM", 15), ("HUP", 1)];
    for round in 0..rounds {
        // A xorshift: any moment will do.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let after = whole.mul_f64((random % 1000) as f64 / 1000.0);
        let (signal, number) = signals[round as usize % signals.len()];
        world.end(after, signal, number);
        if signal == "KILL" || round % 10 == 0 {
            world.clean();
        }
    }
    world.clean();
    println!("{rounds} rounds over {whole:?} each");
}
