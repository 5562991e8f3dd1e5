//! Plans as text: an operator a line, what it reads indented below it.

use std::fmt::{self, Write};

use super::explanation::{
    Backlog, Explanation, Figures, Measured, Node, State, Totals, rows, seconds,
};

pub(super) fn written(explanation: &Explanation) -> String {
    let mut text = String::new();
    write(explanation, &mut text).expect("a string takes any text");
    text
}

fn write(explanation: &Explanation, text: &mut String) -> fmt::Result {
    if let Some(summary) = summary(explanation) {
        writeln!(text, "{summary}")?;
    }
    for note in &explanation.notes {
        writeln!(text, "{note}")?;
    }
    for line in &explanation.lines {
        let node = &explanation.nodes[line.node];
        let indent = 2 * line.depth;
        write!(text, "{:indent$}{}", "", node.operation)?;
        if let Some(clause) = &node.clause {
            write!(text, " ({clause})")?;
        }
        if !node.details.is_empty() {
            write!(text, " [{}]", node.details.join("; "))?;
        }
        match (&node.figures, line.is_first) {
            (None, _) => {}
            (Some(figures), true) => write!(text, " ({})", figures_of(figures))?,
            (Some(figures), false) => write!(text, " ({})", figures_of(&figures.again()))?,
        }
        if let Some(waiting) = &node.waiting {
            write!(text, " ({})", waiting_of(waiting))?;
        }
        match node.rank.filter(|_| line.is_first) {
            Some(rank) => writeln!(text, " <- {rank}")?,
            None => writeln!(text)?,
        }
        for state in &node.states {
            writeln!(text, "{:indent$}  {}", "", state_of(state))?;
            for sentence in &state.sentences {
                writeln!(text, "{:indent$}    {sentence}", "")?;
            }
        }
    }
    for (rank, Node { operation, sentences, figures, .. }) in explanation.worst() {
        match figures {
            _ if sentences.is_empty() => {}
            Some(figures) => {
                let percent = figures.busy_percent;
                writeln!(text, "{rank}. {operation}: {percent} % of the time")?;
            }
            None => writeln!(text, "{rank}. {operation}")?,
        }
        for sentence in sentences {
            writeln!(text, "   {sentence}")?;
        }
    }
    Ok(())
}

/// What was measured of the whole.
pub(super) fn summary(explanation: &Explanation) -> Option<String> {
    let Totals { busy, of } = explanation.totals.as_ref()?;
    let busy = seconds(*busy);
    Some(match of {
        Measured::View { workers, watched } => {
            let name = explanation.relation.as_deref().unwrap_or_default();
            let time = match watched {
                Some(time) => format!("in {}", seconds(*time)),
                None => "since it was made".to_owned(),
            };
            let plural = if *workers == 1 { "worker" } else { "workers" };
            format!("\"{name}\" took {busy} {time} on {workers} {plural}")
        }
        Measured::Query { rows: count, waited } => {
            let (rows, waited) = (rows(*count), seconds(*waited));
            format!("the query took {busy}, gave {rows}, and waited {waited} for its relations")
        }
    })
}

/// What was measured of an operator.
pub(super) fn figures_of(figures: &Figures) -> String {
    let mut text = format!("{}, {} %", seconds(figures.busy), figures.busy_percent);
    let mut add = |part: String| text += &part;
    if figures.rows_out > 0 {
        add(format!("; {} out", rows(figures.rows_out)));
    }
    if figures.bytes_out > 0 {
        add(format!(", about {} bytes", figures.bytes_out));
    }
    if let (Some(kept), Some(bytes)) = (figures.kept_rows, figures.kept_bytes) {
        add(format!("; keeps {}, {bytes} bytes", rows(kept)));
    }
    if let (Some(files), Some(bytes)) = (figures.spill_files, figures.spilled_bytes) {
        let plural = if files == 1 { "file" } else { "files" };
        add(format!("; spilled {bytes} bytes to {files} {plural}"));
    }
    if let Some(skew) = figures.skew {
        add(format!("; worker {} does {} % of it", skew.worker, skew.percent));
    }
    text
}

/// How far an output is behind.
pub(super) fn waiting_of(waiting: &Backlog) -> String {
    match *waiting {
        Backlog { epochs: 0, .. } => "nothing waits".to_owned(),
        Backlog { epochs, rows: count, bytes, first, .. } => {
            let epochs =
                if epochs == 1 { "1 epoch".to_owned() } else { format!("{epochs} epochs") };
            let (rows, first) = (rows(count), seconds(first));
            format!("{epochs} with {rows}, {bytes} bytes, wait, the first for {first}")
        }
    }
}

/// How much a state has, and where.
pub(super) fn state_of(state: &State) -> String {
    let State { contents, place, memory_bytes, .. } = state;
    let rows = rows(state.rows);
    let files = match state.file_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} bytes in files"),
    };
    format!("{contents} in {place}: {rows}, {memory_bytes} bytes in memory{files}")
}
