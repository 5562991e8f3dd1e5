//! Running many cases in one process.

use std::io::{Write, stdout};
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use super::case::{Cases, Run};
use super::finding::{Fault, Finding, shortened};
use super::summary::Summary;
use super::trial::{Measures, Trial, Verdict};

/// The panics of this process that were not asked about yet.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Runs cases in this process, which ends if one of them ends it. Its memory is not looked at.
pub fn here(run: &Run) -> Summary {
    let cases = Cases::new(run);
    let mut trial = Trial::new(Measures { factor: run.factor, memory: false });
    let mut summary = Summary::default();
    for number in run.first..run.first + run.count {
        let Verdict { findings, answered, refused } = trial.run(number, &cases.case(number));
        summary.cases += 1;
        summary.answered += answered;
        summary.refused += refused;
        summary.findings.extend(findings.into_iter().map(|finding| (number, finding)));
    }
    summary
}

/// Runs cases as the child of a process that [watches](super::watch()), and tells it on the standard output of each case when it
/// begins and when it ends. Ends early when its memory is in doubt.
pub fn child(run: &Run) {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        // Libraries that panic over a damaged file are expected to: the message says that it is damaged.
        let place = panic.location().map_or("", |place| place.file());
        if ["/parquet-", "/arrow-ipc-"].iter().any(|library| place.contains(library)) {
            return;
        }
        PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
    }));
    let cases = Cases::new(run);
    let mut trial = Trial::new(Measures { factor: run.factor, memory: true });
    for number in run.first..run.first + run.count {
        let case = cases.case(number);
        say(&json!({ "begins": number }));
        let mut verdict = trial.run(number, &case);
        let panics = std::mem::take(&mut *PANICS.lock().unwrap_or_else(PoisonError::into_inner));
        let panics = panics.iter().map(|text| Finding::new(Fault::Panic, shortened(text)));
        verdict.findings.extend(panics);
        let worn = trial.is_worn()
            || verdict.findings.iter().any(|finding| finding.fault == Fault::Memory);
        let findings: Vec<_> = verdict
            .findings
            .iter()
            .map(|finding| json!([finding.fault.to_string(), finding.what]))
            .collect();
        say(&json!({
            "ends": number,
            "answered": verdict.answered,
            "refused": verdict.refused,
            "findings": findings,
        }));
        if worn {
            break;
        }
    }
}

fn say(line: &serde_json::Value) {
    let mut out = stdout().lock();
    // The parent may be gone.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
