//! The outputs of a view in EXPLAIN ANALYZE, and what would help one that is late.

use std::time::Duration;

use super::explanation::{Backlog, Explanation, Node};
use super::text::waiting_of;
use crate::query::Reader;
use crate::sink::{OutputMode, ShownOutput};
use crate::subscription::feed::Waiting;

/// How long changes wait for an output that is late.
const LATE: Duration = Duration::from_secs(1);

/// What helps an output that is late.
const REMEDY: &str = "a faster destination, larger transactions, or fewer changes, by a condition or GROUP BY in the view, help";

/// Adds the outputs of changes of a view as readers of its rows, and says which of them are late, and whether commits wait for anyone else
/// who reads changes, of a relation that may be shown.
pub(super) fn add(
    reader: &Reader,
    view: &str,
    shows: &dyn Fn(&str) -> bool,
    explanation: &mut Explanation,
) {
    let mut is_explained = false;
    for output in reader.observed.outputs.shown() {
        let Some(waiting) = output.waiting.map(backlog) else { continue };
        if output.relation == view {
            is_explained |= waiting.holds_commits;
            explanation.add_reader(node(&output, waiting));
        } else if waiting.holds_commits && shows(&output.relation) {
            is_explained = true;
            explanation.notes.push(format!(
                "commits wait for the output \"{}\" of \"{}\": {}; {REMEDY}",
                output.path.display(),
                output.relation,
                waiting_of(&waiting)
            ));
        }
    }
    if !is_explained && reader.progress.is_congested() {
        let note = "commits wait for a subscriber who does not take the changes of a relation: it has to read faster, or to \
                    subscribe with a policy that ends it or drops what waits";
        explanation.notes.push(note.to_owned());
    }
}

fn backlog(waiting: Waiting) -> Backlog {
    let Waiting { epochs, rows, bytes, time: first, holds_commits } = waiting;
    Backlog { epochs, rows, bytes, first, holds_commits }
}

/// An output of changes.
fn node(output: &ShownOutput, waiting: Backlog) -> Node {
    debug_assert_eq!(output.mode, OutputMode::Changes, "contents do not wait");
    let operation = format!("write changes to \"{}\"", output.path.display());
    let sentences = late(&waiting).into_iter().collect();
    let details = vec![output.state.to_owned()];
    Node { waiting: Some(waiting), sentences, ..Node::new(operation, details) }
}

/// Who waits for an output that is late, and what would help.
fn late(waiting: &Backlog) -> Option<String> {
    let who = match waiting {
        Backlog { holds_commits: true, .. } => "all commits wait for it",
        Backlog { epochs: 1.., first, .. } if *first >= LATE => {
            "it is late, and once too many epochs wait, all commits wait for it"
        }
        _ => return None,
    };
    Some(format!("{who}: {}; {REMEDY}", waiting_of(waiting)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_late_when_commits_or_changes_wait_for_it() {
        let waiting = |epochs, milliseconds, holds_commits| Backlog {
            epochs,
            rows: 2 * epochs,
            bytes: 16 * epochs,
            first: Duration::from_millis(milliseconds),
            holds_commits,
        };
        assert_eq!(late(&waiting(0, 0, false)), None);
        assert_eq!(late(&waiting(9, 999, false)), None);
        let said = late(&waiting(1, 1000, false)).expect("it is late");
        let expected = "it is late, and once too many epochs wait, all commits wait for it: \
                        1 epoch with 2 rows, 16 bytes, wait, the first for 1.000 s; a faster";
        assert!(said.starts_with(expected), "{said}");
        let said = late(&waiting(2, 0, true)).expect("commits wait");
        let expected = "all commits wait for it: 2 epochs with 4 rows, 32 bytes, wait, the first for 0.000 s; ";
        assert!(said.starts_with(expected), "{said}");
    }
}
