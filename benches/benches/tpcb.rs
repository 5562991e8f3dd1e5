//! TPC-B, as pgbench runs it: transactions of five statements that all go through a few rows.
//!
//! ```sh
//! cargo bench -p alluvium-benches --bench tpcb -- [DIRECTORY] [SECONDS]
//! ```
//!
//! Each transaction adds an amount to an account, a teller and a branch, notes it, and reads the account. At scale `s` there are
//! 100,000 `s` accounts, 10 `s` tellers and `s` branches, so many clients wait for few branches. For 1, 8 and 64 clients it prints
//! how many transactions a second they commit, how many failed, and
//!
//! - `alone`: how many statements of these are committed a second if each is a transaction by itself, over those in transactions;
//! - `account`: the same of those that add to an account only, which is the single statement that waits for no other client.
//!
//! The sums of all tables have to agree in the end.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use alluvium::{Engine, Outcome, Prepared, Session};
use fastrand::Rng;

/// The accounts, tellers and branches at scale 1.
const ACCOUNTS: i64 = 100_000;
const TELLERS: i64 = 10;

/// The statements of a transaction.
const STATEMENTS: u64 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// All statements in one transaction.
    Transactions,
    /// Each by itself.
    Alone,
    /// One that adds to an account.
    Account,
}

/// A client with its statements.
struct Client {
    session: Session,
    account: Prepared,
    read: Prepared,
    teller: Prepared,
    branch: Prepared,
    history: Prepared,
}

#[derive(Default)]
struct Counts {
    done: AtomicU64,
    failed: AtomicU64,
}

impl Client {
    fn new(engine: &Engine) -> Self {
        let mut session = engine.session();
        let mut prepare = |sql: &str| session.prepare(sql).expect("the statement is right");
        let account = prepare("UPDATE accounts SET abalance = abalance + $1 WHERE aid = $2");
        let read = prepare("SELECT abalance FROM accounts WHERE aid = $1");
        let teller = prepare("UPDATE tellers SET tbalance = tbalance + $1 WHERE tid = $2");
        let branch = prepare("UPDATE branches SET bbalance = bbalance + $1 WHERE bid = $2");
        let history = prepare(
            "INSERT INTO history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, NOW())",
        );
        Self { session, account, read, teller, branch, history }
    }

    /// Does the work once. Returns how many statements that were, or why one failed.
    fn act(&mut self, work: Work, scale: i64, random: &mut Rng) -> alluvium::Result<u64> {
        let delta = random.i64(-5000..=5000);
        let (aid, tid) = (random.i64(0..ACCOUNTS * scale), random.i64(0..TELLERS * scale));
        let bid = random.i64(0..scale);
        if work == Work::Account {
            self.session.execute_prepared(&self.account, &[delta.into(), aid.into()])?;
            return Ok(1);
        }
        if work == Work::Transactions {
            self.session.execute("BEGIN")?;
        }
        let done = self.statements((delta, aid, tid, bid));
        match (work, &done) {
            (Work::Transactions, Ok(())) => drop(self.session.execute("COMMIT")?),
            (Work::Transactions, Err(_)) => drop(self.session.execute("ROLLBACK")?),
            _ => {}
        }
        done.map(|()| STATEMENTS)
    }

    fn statements(&mut self, (delta, aid, tid, bid): (i64, i64, i64, i64)) -> alluvium::Result<()> {
        let session = &mut self.session;
        session.execute_prepared(&self.account, &[delta.into(), aid.into()])?;
        if let Outcome::Rows(rows) = session.execute_prepared(&self.read, &[aid.into()])? {
            rows.into_batches()?;
        }
        session.execute_prepared(&self.teller, &[delta.into(), tid.into()])?;
        session.execute_prepared(&self.branch, &[delta.into(), bid.into()])?;
        session
            .execute_prepared(&self.history, &[tid.into(), bid.into(), aid.into(), delta.into()])?;
        Ok(())
    }
}

/// The statements a second of so many clients.
fn rate(engine: &Engine, work: Work, scale: i64, clients: u64, period: Duration) -> (f64, u64) {
    let (counts, is_over) = (Counts::default(), AtomicBool::new(false));
    let start = Instant::now();
    thread::scope(|scope| {
        for number in 0..clients {
            let (counts, is_over) = (&counts, &is_over);
            scope.spawn(move || {
                let (mut client, mut random) = (Client::new(engine), Rng::with_seed(number));
                while !is_over.load(Ordering::Relaxed) {
                    match client.act(work, scale, &mut random) {
                        Ok(statements) => {
                            counts.done.fetch_add(statements, Ordering::Relaxed);
                        }
                        Err(error) => {
                            if counts.failed.fetch_add(1, Ordering::Relaxed) == 0 {
                                eprintln!("{error}");
                            }
                        }
                    }
                }
            });
        }
        thread::sleep(period);
        is_over.store(true, Ordering::Relaxed);
    });
    let (done, failed) = (counts.done.into_inner(), counts.failed.into_inner());
    (done as f64 / start.elapsed().as_secs_f64(), failed)
}

fn fill(engine: &Engine, scale: i64) {
    let (accounts, tellers) = (ACCOUNTS * scale, TELLERS * scale);
    let definitions = format!(
        "CREATE TABLE branches (bid BIGINT PRIMARY KEY, bbalance BIGINT);
         CREATE TABLE tellers (tid BIGINT PRIMARY KEY, bid BIGINT, tbalance BIGINT);
         CREATE TABLE accounts (aid BIGINT PRIMARY KEY, bid BIGINT, abalance BIGINT);
         CREATE TABLE history (tid BIGINT, bid BIGINT, aid BIGINT, delta BIGINT, mtime TIMESTAMP);
         INSERT INTO branches SELECT n, 0 FROM range(0, {scale}) AS r (n);
         INSERT INTO tellers SELECT n, n / 10, 0 FROM range(0, {tellers}) AS r (n);
         INSERT INTO accounts SELECT n, n / {ACCOUNTS}, 0 FROM range(0, {accounts}) AS r (n)"
    );
    engine.execute(&definitions).expect("the tables are created");
}

/// Fails unless all tables have the same sum.
fn check(engine: &Engine) {
    let differing = "SELECT a, t, b, h FROM (SELECT SUM(abalance) AS a FROM accounts)
        CROSS JOIN (SELECT SUM(tbalance) AS t FROM tellers) CROSS JOIN (SELECT SUM(bbalance) AS b FROM branches)
        CROSS JOIN (SELECT COALESCE(SUM(delta), 0) AS h FROM history) WHERE a <> t OR a <> b OR a <> h";
    let differing = engine.query(differing).expect("the sums");
    let rows: usize = differing.iter().map(|rows| rows.num_rows()).sum();
    assert_eq!(rows, 0, "the sums differ: {differing:?}");
}

fn run(directory: &Path, scale: i64, period: Duration) {
    println!(
        "scale {scale}: {} accounts, {} tellers, {scale} branches",
        ACCOUNTS * scale,
        TELLERS * scale
    );
    println!("| clients | transactions/s | failed | alone | account |");
    println!("|---|---|---|---|---|");
    for clients in [1, 8, 64] {
        let state = directory.join(format!("tpcb-{scale}-{clients}"));
        let engine = Engine::builder()
            .workers(2)
            .state(format!("file:{}", state.display()))
            .open()
            .expect("the directory is free");
        fill(&engine, scale);
        let (transactions, failed) = rate(&engine, Work::Transactions, scale, clients, period);
        check(&engine);
        let (alone, _) = rate(&engine, Work::Alone, scale, clients, period);
        let (account, _) = rate(&engine, Work::Account, scale, clients, period);
        println!(
            "| {clients} | {:.0} | {failed} | {:.2} | {:.2} |",
            transactions / STATEMENTS as f64,
            transactions / alone,
            transactions / account
        );
        drop(engine);
        // Files left there are of no use to the next run.
        let _ = std::fs::remove_dir_all(&state);
    }
}

fn main() {
    let Some(arguments) = alluvium_benches::arguments() else { return };
    let own = tempfile::tempdir().expect("a directory");
    let is_number = |argument: &&String| argument.parse::<u64>().is_ok();
    let seconds = arguments.iter().find(is_number).and_then(|argument| argument.parse().ok());
    let directory = arguments.iter().find(|argument| !is_number(argument)).map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| own.path().to_owned());
    for scale in [10, 1] {
        run(&directory, scale, Duration::from_secs(seconds.unwrap_or(10)));
    }
}
