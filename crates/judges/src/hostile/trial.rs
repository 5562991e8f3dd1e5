//! An engine on trial.

use std::borrow::Cow;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use alluvium::{Engine, Error, Interrupt, Outcome, Session};
use tempfile::TempDir;

use super::calls::call;
use super::case::Case;
use super::clock::{Clock, LOOK};
use super::finding::{Fault, Finding, of_message, shortened};
use super::memory;
use crate::answers::row::rows;

/// The memory budget of an engine on trial.
const BUDGET: usize = 32 << 20;

/// The memory that the process may take beyond the budget, and beyond that of an engine without rows.
const BEYOND: u64 = 64 << 20;

/// The memory of it that planning may take per byte of a statement.
const PLANNING: u64 = 400;

/// The longest that a text may take by its [`Clock`], in a release build, however short it is.
const LONGEST: Duration = Duration::from_secs(2);

/// The time that it may take longer per byte of it and of the files that it reads, and for each statement in it.
const LONGER: (Duration, Duration) = (Duration::from_micros(2), Duration::from_millis(1));

/// The time in which a statement ends that is interrupted.
const ENDING: Duration = Duration::from_secs(1);

/// The number of calls of a case of calls.
const CALLS: usize = 4;

/// The number of cases after which the engine's answers are checked.
const CHECKED: u64 = 20;

/// A table and a view that no case knows, with rows.
const KNOWN: &str = "CREATE TABLE known_rows (part TEXT, amount BIGINT);
    CREATE MATERIALIZED VIEW known_sums AS
        SELECT part, COUNT(*) AS rows, SUM(amount) AS total FROM known_rows GROUP BY part;
    INSERT INTO known_rows VALUES ('a', 1), ('b', 2), ('a', 3)";

/// How much a trial measures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measures {
    /// How many times slower than a release build the engine may be.
    pub(super) factor: u32,
    /// Whether the process is the trial's own, so that its memory is the engine's.
    pub(super) memory: bool,
}

/// The outcome of a case.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) findings: Vec<Finding>,
    /// Statements that were answered, and refused.
    pub(super) answered: u64,
    pub(super) refused: u64,
}

/// An engine, with its history.
pub(super) struct Trial {
    measures: Measures,
    /// Where the files of cases are.
    folder: TempDir,
    open: Option<Open>,
    /// The memory of the process with an engine without rows.
    empty: u64,
}

struct Open {
    engine: Engine,
    session: Session,
    round: u64,
    /// How many statements of the round's setup it has run.
    done: usize,
    /// Rows that were added to the known ones.
    added: u64,
}

impl Trial {
    pub(super) fn new(measures: Measures) -> Self {
        let folder =
            tempfile::tempdir().unwrap_or_else(|error| panic!("no folder for files: {error}"));
        let mut trial = Self { measures, folder, open: None, empty: 0 };
        // The first engine also fills what is filled once per process.
        trial.open = Some(trial.engine(u64::MAX));
        trial.empty = memory::resident("self").unwrap_or(0);
        trial
    }

    fn engine(&self, round: u64) -> Open {
        let builder = Engine::builder().workers(1 + (round % 2) as usize).memory(BUDGET);
        let engine = alluvium_connect::formats(builder)
            .open_in_memory()
            .and_then(|engine| engine.execute(KNOWN).map(|_| engine))
            .unwrap_or_else(|error| panic!("no engine: {error}"));
        Open { session: self.session(&engine), engine, round, done: 0, added: 0 }
    }

    fn session(&self, engine: &Engine) -> Session {
        let mut session = engine.session();
        session.set_base(self.folder.path());
        session.set_awaits_sources(true);
        session
    }

    /// Runs a case, on a new engine if it is the first of its round.
    pub(super) fn run(&mut self, number: u64, case: &Case) -> Verdict {
        let mut open = match self.open.take() {
            Some(open) if open.round == case.round => open,
            ended => {
                drop(ended);
                self.engine(case.round)
            }
        };
        let mut verdict = Verdict::default();
        for (name, bytes) in &case.files {
            std::fs::write(self.folder.path().join(name), bytes)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let setup = case.setup.get(open.done..).unwrap_or_default();
        // The findings of others about them do not matter here.
        let mut ignored = Verdict::default();
        let read = case.files.iter().map(|(_, bytes)| bytes.len()).sum();
        setup.iter().for_each(|statement| self.statement(&mut open, statement, 0, &mut ignored));
        open.done = open.done.max(case.setup.len());
        verdict.findings.append(&mut ignored.findings);

        for statement in &case.statements {
            self.statement(&mut open, statement, read, &mut verdict);
        }
        if let Some(seed) = case.calls {
            self.calls(&mut open, seed, &mut verdict);
        }
        if (number + 1).is_multiple_of(CHECKED) {
            self.check(&mut open, &mut verdict);
        }
        for (name, _) in &case.files {
            // It may be gone.
            let _ = std::fs::remove_file(self.folder.path().join(name));
        }
        // An engine that has stopped, or is not trusted any more, makes place for a new one.
        if verdict.findings.is_empty() {
            self.open = Some(open);
        }
        verdict
    }

    /// Runs text, which may read so many bytes of files, as a client does.
    fn statement(&self, open: &mut Open, text: &str, read: usize, verdict: &mut Verdict) {
        let statements = text.bytes().filter(|byte| *byte == b';').count();
        let longer = LONGER.0 * (text.len() + read) as u32 + LONGER.1 * statements as u32;
        let planning = PLANNING * text.len() as u64;
        let act = |open: &mut Open| (open.session.execute(text).map(drop), Cow::Borrowed(text));
        self.judge(open, LONGEST + longer, planning, verdict, act);
    }

    /// Makes some calls, as a program that embeds the engine does.
    fn calls(&self, open: &mut Open, seed: u64, verdict: &mut Verdict) {
        // A transaction that a statement left open would make the calls wait.
        open.session = self.session(&open.engine);
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..CALLS {
            self.judge(open, LONGEST, 0, verdict, |open| {
                let (called, what) = call(&mut rng, &open.engine);
                (called, Cow::Owned(what))
            });
        }
    }

    /// Acts on an engine, and interrupts what takes longer than `longest`, in a release build. The act may take
    /// `planning` bytes beside all others. `act` returns what it did, too.
    fn judge<'a>(
        &self,
        open: &mut Open,
        longest: Duration,
        planning: u64,
        verdict: &mut Verdict,
        act: impl FnOnce(&mut Open) -> (alluvium::Result<()>, Cow<'a, str>),
    ) {
        let longest = longest * self.measures.factor;
        let before = memory::resident("self").unwrap_or(0);
        if self.measures.memory {
            memory::forget_peak();
        }
        let interrupt = open.engine.interrupt();
        let ((result, text), took) = interrupted_after(longest, interrupt, || act(open));
        let text = shortened(&text);
        let what = |what: &str| format!("{what}: {:.1} s: {text}", took.as_secs_f64());
        if took > longest + ENDING * self.measures.factor {
            verdict.findings.push(Finding::new(Fault::Hang, what("not interrupted")));
        } else if took > longest {
            verdict.findings.push(Finding::new(Fault::Slow, what("interrupted")));
        }
        match &result {
            Ok(()) => verdict.answered += 1,
            Err(error) => {
                verdict.refused += 1;
                let stopped = matches!(error, Error::Poisoned { .. });
                let message = error.to_string();
                let finding = of_message(&message)
                    .or_else(|| stopped.then(|| Finding::new(Fault::Stopped, shortened(&message))));
                verdict.findings.extend(finding);
            }
        }
        if !self.measures.memory {
            return;
        }
        let peak = memory::peak().unwrap_or(0);
        let is_first = verdict.findings.iter().all(|finding| finding.fault != Fault::Memory);
        if is_first && peak > self.empty + BUDGET as u64 + BEYOND + planning {
            let [peak, before, empty] = [peak, before, self.empty].map(|bytes| bytes >> 20);
            verdict.findings.push(Finding::new(
                Fault::Memory,
                format!("{peak} MiB after {before} MiB, and {empty} MiB without rows: {text}"),
            ));
        }
    }

    /// Whether the engine still maintains a view and answers queries, and speaks properly of failed rows.
    fn check(&self, open: &mut Open, verdict: &mut Verdict) {
        // Ends a transaction that a case began.
        open.session = self.session(&open.engine);
        open.added += 1;
        let asked = open
            .session
            .execute("INSERT INTO known_rows VALUES ('b', 10)")
            .and_then(|_| open.session.execute("SELECT * FROM known_sums ORDER BY part"));
        let expected = format!("[a, 2, 4] [b, {}, {}]", open.added + 1, 2 + 10 * open.added);
        let found = match asked {
            Ok(outcomes) => table(outcomes),
            Err(error) => error.to_string(),
        };
        if found != expected {
            verdict.findings.push(Finding::new(
                Fault::Wrong,
                format!("known_sums is {}, not {expected}", shortened(&found)),
            ));
        }
        let errors = open.session.execute("SELECT * FROM alluvium.errors");
        let messages = errors.map(cells).unwrap_or_default();
        verdict.findings.extend(messages.iter().filter_map(|message| of_message(message)));
    }

    /// Whether the process is beyond what it may take, so that it had better restart.
    pub(super) fn is_worn(&self) -> bool {
        let worn = self.empty + BUDGET as u64 / 2 + BEYOND / 2;
        self.measures.memory && memory::resident("self").is_some_and(|now| now > worn)
    }
}

/// Runs `act`, and interrupts it when it has taken too long. Returns how long it took, too.
fn interrupted_after<R>(
    longest: Duration,
    interrupt: Interrupt,
    act: impl FnOnce() -> R,
) -> (R, Duration) {
    let (done, waiting) = channel::<()>();
    let mut clock = Clock::here();
    thread::scope(|scope| {
        let request = interrupt.clone();
        let watcher = scope.spawn(move || {
            while waiting.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if clock.read() > longest {
                    request.request();
                }
            }
            clock.read()
        });
        let result = interrupt.watch(act);
        drop(done);
        (result, watcher.join().unwrap_or_default())
    })
}

fn cells(outcomes: Vec<Outcome>) -> Vec<String> {
    let answers = outcomes.into_iter().filter_map(|outcome| match outcome {
        Outcome::Rows(rows) => Some(rows),
        _ => None,
    });
    // They are there.
    let batches: Vec<_> = answers.flatten().filter_map(Result::ok).collect();
    rows(&batches).iter().flat_map(|row| row.iter().map(ToString::to_string)).collect()
}

fn table(outcomes: Vec<Outcome>) -> String {
    let rows: Vec<String> =
        cells(outcomes).chunks(3).map(|row| format!("[{}]", row.join(", "))).collect();
    rows.join(" ")
}
