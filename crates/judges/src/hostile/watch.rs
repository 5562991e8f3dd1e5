//! Watching over the process that runs cases.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use super::case::{Kind, Run};
use super::clock::{Clock, LOOK};
use super::finding::{Fault, Finding, shortened};
use super::memory;
use super::summary::Summary;

/// The time by its clock after which a case is ended with its process, in a release build: more than any case is allowed,
/// and one of 300,000 statements is allowed five minutes.
const PATIENCE: Duration = Duration::from_secs(360);

/// The resident memory at which a process is ended, for the sake of the machine.
const MOST_MEMORY: u64 = 4 << 30;

/// How a child ended.
enum End {
    /// It has run all it was to run, or asks to be restarted.
    Done,
    /// It ended, or was ended, in the case of this number.
    Died(u64, Finding),
}

/// Runs cases in child processes, the program's own with the argument `child`. A process that dies is started again after the
/// case that killed it. Every finding is told as soon as there is one; `go_on` says whether there may be more.
pub fn watch(run: &Run, mut go_on: impl FnMut(&Summary) -> bool) -> Summary {
    let mut summary = Summary::default();
    let end = run.first + run.count;
    let mut next = run.first;
    while next < end {
        let rest = Run { first: next, count: end - next, ..run.clone() };
        let ended = attend(&rest, &mut next, &mut summary, &mut go_on);
        if let End::Died(number, finding) = ended {
            next = number + 1;
            summary.cases += 1;
            summary.findings.push((number, finding));
        }
        if !go_on(&summary) {
            break;
        }
        summary.restarts += u64::from(next < end);
    }
    summary
}

/// Starts a child and follows it to its end.
fn attend(
    run: &Run,
    next: &mut u64,
    summary: &mut Summary,
    go_on: &mut impl FnMut(&Summary) -> bool,
) -> End {
    let scratch =
        tempfile::tempdir().unwrap_or_else(|error| panic!("no folder for files: {error}"));
    let mut child = spawn(run, scratch.path());
    let (lines, complaints) = ears(&mut child);
    let mut current: Option<(u64, Clock)> = None;
    let killed = loop {
        match lines.recv_timeout(LOOK) {
            Ok(line) => {
                if let Some(number) = line["begins"].as_u64() {
                    current = Some((number, Clock::of(child.id())));
                } else if let Some(number) = line["ends"].as_u64() {
                    current = None;
                    *next = number + 1;
                    take(number, &line, summary);
                    if !go_on(summary) {
                        break Some(None);
                    }
                }
            }
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let Some((_, clock)) = &mut current else { continue };
        let resident = memory::resident(&child.id().to_string()).unwrap_or(0);
        if resident > MOST_MEMORY {
            let what = format!("{} MiB and growing", resident >> 20);
            break Some(Some(Finding::new(Fault::Memory, what)));
        }
        let took = clock.read();
        if took > PATIENCE * run.factor {
            let what = format!("no end after {} s", took.as_secs());
            break Some(Some(Finding::new(Fault::Hang, what)));
        }
    };
    if killed.is_some() {
        // It may have ended meanwhile.
        let _ = child.kill();
    }
    let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
    let complaint = complaints.join().unwrap_or_default();
    match (killed, current) {
        (Some(Some(finding)), Some((number, _))) => End::Died(number, finding),
        (None, Some((number, _))) => {
            let what = format!("{status}: {}", shortened(&complaint));
            End::Died(number, Finding::new(Fault::Abort, what))
        }
        (None, None) if status != "exit status: 0" || *next == run.first => {
            panic!("the child ended between cases: {status}: {complaint}")
        }
        _ => End::Done,
    }
}

fn spawn(run: &Run, scratch: &Path) -> Child {
    let program = std::env::current_exe().unwrap_or_else(|error| panic!("no program: {error}"));
    let kind = match run.kind {
        Kind::Statements => "statements",
        Kind::Files => "files",
        Kind::Calls => "calls",
    };
    Command::new(program)
        .args(["child", kind])
        .args(["--seed", &run.seed.to_string()])
        .args(["--first", &run.first.to_string()])
        .args(["--count", &run.count.to_string()])
        .args(["--factor", &run.factor.to_string()])
        .args(["--longest", &run.longest.to_string()])
        .current_dir(scratch)
        .env("TMPDIR", scratch)
        // As the command line sets its allocator when a budget is this small.
        .env("MALLOC_MMAP_THRESHOLD_", (128 << 10).to_string())
        .env("MALLOC_TRIM_THRESHOLD_", (256 << 10).to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("no child: {error}"))
}

/// The lines of the child's standard output, and its standard error when it ends.
fn ears(child: &mut Child) -> (Receiver<Value>, JoinHandle<String>) {
    let (sender, lines) = channel();
    if let Some(out) = child.stdout.take() {
        thread::spawn(move || {
            let said = BufReader::new(out).lines().map_while(Result::ok);
            for line in said.filter_map(|line| serde_json::from_str(&line).ok()) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    let err = child.stderr.take();
    let complaints = thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut err) = err {
            // The text read until then is better than nothing.
            let _ = err.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    (lines, complaints)
}

fn take(number: u64, line: &Value, summary: &mut Summary) {
    summary.cases += 1;
    summary.answered += line["answered"].as_u64().unwrap_or(0);
    summary.refused += line["refused"].as_u64().unwrap_or(0);
    for finding in line["findings"].as_array().into_iter().flatten() {
        let fault = finding[0].as_str().and_then(Fault::named).unwrap_or(Fault::Abort);
        let what = finding[1].as_str().unwrap_or_default();
        summary.findings.push((number, Finding::new(fault, what)));
    }
}
