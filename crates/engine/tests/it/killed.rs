//! A bank whose process is killed at random moments: many tables and committers, and a subscriber that resumes.
//!
//! `ALLUVIUM_KILLS` sets the number of rounds.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use alluvium::arrow::array::{AsArray, RecordBatch};
use alluvium::arrow::datatypes::Int64Type;
use alluvium::{Engine, Error, Subscription};
use tempfile::TempDir;

use crate::support::query;

const ROUNDS: u64 = 4;
const TABLES: u64 = 4;
const ACCOUNTS: u64 = 8;
const COMMITTERS: u64 = 6;
const MONEY: i64 = (TABLES * ACCOUNTS * 100) as i64;

/// Where the process finds the state directory, how many workers it has, the last epoch that its subscriber has had, and
/// the transactions of each committer that were acknowledged.
const DIRECTORY: &str = "ALLUVIUM_BANK";
const WORKERS: &str = "ALLUVIUM_BANK_WORKERS";
const EPOCH: &str = "ALLUVIUM_BANK_EPOCH";
const ACKNOWLEDGED: &str = "ALLUVIUM_BANK_ACKNOWLEDGED";

fn open(directory: &Path, workers: usize) -> Engine {
    let builder = Engine::builder().workers(workers).history(1_000_000);
    let builder = builder.checkpoints(Duration::from_millis(100), 1 << 20);
    let engine = builder.state(format!("file:{}", directory.display())).open().unwrap();
    if engine.relations().unwrap().is_empty() {
        create(&engine);
    }
    engine
}

fn create(engine: &Engine) {
    let mut sql = String::new();
    for table in 0..TABLES {
        sql += &format!("CREATE TABLE a{table} (id BIGINT PRIMARY KEY, money BIGINT);");
    }
    let all = |column: &str| {
        let table = |table| format!("SELECT {table} AS number, {column} FROM a{table}");
        (0..TABLES).map(table).collect::<Vec<_>>().join(" UNION ALL ")
    };
    sql += &format!(
        "CREATE TABLE moves (committer BIGINT, n BIGINT);
         CREATE MATERIALIZED VIEW money AS {};
         CREATE MATERIALIZED VIEW total AS SELECT SUM(money) AS s FROM ({}) AS a;
         CREATE MATERIALIZED VIEW moved AS SELECT committer, COUNT(*) AS c, MIN(n) AS least, MAX(n) AS most
         FROM moves GROUP BY committer; BEGIN;",
        all("id, money"),
        all("money")
    );
    for table in 0..TABLES {
        let rows: Vec<_> = (0..ACCOUNTS).map(|id| format!("({id}, 100)")).collect();
        sql += &format!("INSERT INTO a{table} VALUES {};", rows.join(", "));
    }
    engine.execute(&(sql + "COMMIT")).unwrap();
}

/// Prints a line in one piece.
fn print(line: &str) {
    let mut to = stdout().lock();
    to.write_all(format!("{line}\n").as_bytes()).and_then(|()| to.flush()).unwrap();
}

/// Moves money from table to table until the process ends.
fn commit(engine: &Engine, committer: u64, acknowledged: u64) {
    for n in acknowledged + 1.. {
        let (from, to) = ((committer + n) % TABLES, (committer + n * n + 1) % TABLES);
        let (payer, payee, money) = (n % ACCOUNTS, n / 3 % ACCOUNTS, n % 9);
        let mut session = engine.session();
        // The process may have been killed before it could acknowledge the first one.
        session.set_key(format!("{committer}/{n}"));
        session
            .execute(&format!(
                "BEGIN; UPDATE a{from} SET money = money - {money} WHERE id = {payer};
                 INSERT INTO moves VALUES ({committer}, {n});
                 UPDATE a{to} SET money = money + {money} WHERE id = {payee}; COMMIT"
            ))
            .unwrap();
        print(&format!("done {committer} {n}"));
    }
}

/// Prints the changes of a relation.
fn follow(subscription: Subscription, goes_on: bool) {
    print(if goes_on { "on" } else { "anew" });
    for change in subscription {
        let change = change.unwrap();
        let mut line = format!("change {}", change.epoch);
        for ((account, money), weight) in accounts(&change.rows).zip(change.weights.iter()) {
            line += &format!(" {account} {money} {weight}");
        }
        print(&line);
    }
}

/// The number and the money of each account.
fn accounts(rows: &RecordBatch) -> impl Iterator<Item = (i64, i64)> {
    let column = |number: usize| rows.column(number).as_primitive::<Int64Type>().values().iter();
    let account = column(0).zip(column(1)).map(|(table, id)| table * ACCOUNTS as i64 + id);
    account.zip(column(2).copied())
}

/// Runs in a process of its own, which the next test kills.
#[test]
#[ignore = "the bank, which another test runs"]
fn the_bank() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let (workers, epoch) = (variable(WORKERS), variable(EPOCH).parse().unwrap());
    let engine = open(variable(DIRECTORY).as_ref(), workers.parse().unwrap());
    let (subscription, goes_on) = match engine.subscribe_from("money", epoch) {
        Err(Error::Gone { .. }) => (engine.subscribe("money").unwrap(), false),
        subscription => (subscription.unwrap(), true),
    };
    let acknowledged = variable(ACKNOWLEDGED);
    thread::scope(|scope| {
        scope.spawn(move || follow(subscription, goes_on));
        for (committer, acknowledged) in (0..).zip(acknowledged.split(' ')) {
            let (engine, acknowledged) = (&engine, acknowledged.parse().unwrap());
            scope.spawn(move || commit(engine, committer, acknowledged));
        }
    });
}

/// The output of the process so far.
#[derive(Default)]
struct Heard {
    /// The account, its money and its weight.
    money: BTreeMap<(i64, i64), i64>,
    /// The last epoch that the subscriber has had.
    epoch: u64,
    /// The last transaction of each committer that was acknowledged.
    acknowledged: [u64; COMMITTERS as usize],
    changes: u64,
}

impl Heard {
    fn hear(&mut self, line: &str) {
        let mut words = line.split(' ');
        match words.next() {
            Some("on") => assert!(self.epoch > 0),
            Some("anew") => {
                assert_eq!(self.epoch, 0, "it should have gone on");
                self.money.clear();
            }
            Some("done") => {
                let [committer, n] =
                    [words.next(), words.next()].map(|word| word.unwrap().parse().unwrap());
                self.acknowledged[committer as usize] = n;
            }
            Some("change") => {
                let numbers: Vec<i64> = words.map(|word| word.parse().unwrap()).collect();
                self.change(numbers[0] as u64, &numbers[1..]);
            }
            _ => {}
        }
    }

    fn change(&mut self, epoch: u64, rows: &[i64]) {
        assert!(epoch > self.epoch || self.money.is_empty(), "{epoch} after {}", self.epoch);
        (self.epoch, self.changes) = (epoch, self.changes + 1);
        for row in rows.chunks(3) {
            *self.money.entry((row[0], row[1])).or_default() += row[2];
        }
        self.money.retain(|_, weight| *weight != 0);
        assert!(self.money.values().all(|weight| *weight == 1), "{:?}", self.money);
        let total: i64 = self.money.keys().map(|(_, money)| money).sum();
        assert_eq!(total, MONEY, "at epoch {epoch}: {:?}", self.money);
    }

    /// Everything that was acknowledged is there, and each transaction once.
    fn check(&self, engine: &Engine) {
        assert_eq!(query(engine, "SELECT s FROM total"), [MONEY.to_string()]);
        for (committer, acknowledged) in self.acknowledged.iter().enumerate() {
            let sql = format!("SELECT c, least, most FROM moved WHERE committer = {committer}");
            let rows = query(engine, &sql);
            let Some(row) = rows.first() else {
                assert_eq!(*acknowledged, 0);
                continue;
            };
            let numbers: Vec<u64> = row.split(' ').map(|word| word.parse().unwrap()).collect();
            assert_eq!(numbers[0], numbers[2], "{committer} has each number once: {row}");
            assert_eq!(numbers[1], 1);
            let open = numbers[2] - acknowledged;
            assert!(open <= 1, "{committer}: {acknowledged} acknowledged, and {row}");
        }
    }
}

#[test]
fn a_killed_bank_loses_no_acknowledged_transaction_and_every_epoch_a_subscriber_sees_adds_up() {
    let rounds = std::env::var("ALLUVIUM_KILLS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let directory = TempDir::new().unwrap();
    let mut heard = Heard::default();
    let mut before = 0;
    for round in 0..rounds {
        let workers = 1 + round % 3;
        let acknowledged = heard.acknowledged.map(|n| n.to_string()).join(" ");
        let mut bank = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::the_bank", "--ignored", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .env(WORKERS, workers.to_string())
            .env(EPOCH, heard.epoch.to_string())
            .env(ACKNOWLEDGED, acknowledged)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(bank.stdout.take().unwrap());
        let count = Arc::new(AtomicU64::new(0));
        let lines = Arc::clone(&count);
        let reader = thread::spawn(move || {
            // The last line may be cut off.
            for line in output.split(b'\n').map_while(Result::ok) {
                heard.hear(&String::from_utf8(line).unwrap());
                lines.fetch_add(1, Ordering::Relaxed);
            }
            heard
        });
        // The first lines are those of the test harness.
        while count.load(Ordering::Relaxed) < 8 && !reader.is_finished() {
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(round * 37 % 250));
        bank.kill().unwrap();
        bank.wait().unwrap();
        heard = reader.join().unwrap();
        before = workers;
    }
    assert!(heard.changes > rounds && heard.acknowledged.iter().sum::<u64>() > rounds);
    let engine = open(directory.path(), before as usize);
    heard.check(&engine);
}
