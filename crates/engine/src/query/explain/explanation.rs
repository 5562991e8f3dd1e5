//! The answer to an EXPLAIN, before it is written.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use alluvium_sql::statement::ExplainFormat;
use serde::{Serialize, Serializer};

use super::{dot, json, svg, text};

/// How many operators are told apart as those that take the most time.
const WORST: usize = 3;

/// The time from which on an operator is one of them, or is uneven.
pub(super) const LEAST: Duration = Duration::from_millis(1);

/// The share of the time, in hundredths, from which on it is said what would help.
const NOTABLE: u64 = 10;

/// A plan: operators, each once, with what is known of them. Its JSON is documented in the reference.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    pub(super) kind: Kind,
    /// The relation that is explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) relation: Option<String>,
    /// What was measured of all operators together.
    #[serde(flatten)]
    pub(super) totals: Option<Totals>,
    /// Sentences about the whole.
    #[serde(rename = "sentences")]
    pub(super) notes: Vec<String>,
    pub(super) nodes: Vec<Node>,
    /// The plan as a tree: an operator that several others read is below each of them.
    #[serde(skip)]
    pub(super) lines: Vec<Line>,
}

/// The kind of plan that is explained.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Query,
    View,
    State,
}

/// The measures of a whole plan.
#[derive(Debug, Serialize)]
pub(super) struct Totals {
    /// The time of all operators.
    #[serde(rename = "busy_ns", serialize_with = "nanoseconds")]
    pub(super) busy: Duration,
    #[serde(flatten)]
    pub(super) of: Measured,
}

/// The run that measures are of.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Measured {
    View {
        workers: usize,
        /// For how long it was watched; `None` is since it was made.
        #[serde(
            rename = "watched_ns",
            serialize_with = "some_nanoseconds",
            skip_serializing_if = "Option::is_none"
        )]
        watched: Option<Duration>,
    },
    Query {
        /// The rows of its result.
        rows: u64,
        /// The time until the versions that it reads were there.
        #[serde(rename = "waited_ns", serialize_with = "nanoseconds")]
        waited: Duration,
    },
}

/// A place of an operator in the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// How many operators are above it.
    pub(super) depth: usize,
    pub(super) node: usize,
    /// Whether it is the first of its operator.
    pub(super) is_first: bool,
}

/// An operator.
#[derive(Debug, Serialize)]
pub(super) struct Node {
    pub(super) id: usize,
    pub(super) operation: String,
    /// The clause that it stands for, and where that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clause: Option<String>,
    /// The properties of its rows, and the state that it keeps.
    pub(super) details: Vec<String>,
    /// The operators that it reads.
    pub(super) inputs: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) states: Vec<State>,
    #[serde(flatten)]
    pub(super) figures: Option<Figures>,
    /// Of an output: the changes that it has not written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waiting: Option<Backlog>,
    /// Its place among the outputs that are late and the operators that take the most time, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rank: Option<usize>,
    /// What dominates its time or makes it late, and what would help.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) sentences: Vec<String>,
}

/// A state that an operator keeps or reads.
#[derive(Debug, Serialize)]
pub(super) struct State {
    /// The kind of its rows.
    pub(super) contents: &'static str,
    pub(super) place: String,
    pub(super) rows: u64,
    pub(super) memory_bytes: u64,
    pub(super) file_bytes: u64,
    /// Whether it is pruned, or why not.
    pub(super) sentences: Vec<String>,
}

/// The measures of an operator.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Figures {
    #[serde(rename = "busy_ns", serialize_with = "nanoseconds")]
    pub(super) busy: Duration,
    /// Its part of the time of all operators, in hundredths.
    pub(super) busy_percent: u64,
    pub(super) rows_out: u64,
    pub(super) bytes_out: u64,
    /// The rows that its inputs gave, and their bytes, if it has inputs and all were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rows_in: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes_in: Option<u64>,
    /// The rows and bytes of the state that it keeps itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kept_rows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kept_bytes: Option<u64>,
    /// The files that it has moved rows to, and the bytes of these rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spill_files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spilled_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) skew: Option<Skew>,
}

/// The changes that wait for an output.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Backlog {
    pub(super) epochs: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    /// How long the first of them have waited.
    #[serde(rename = "first_ns", serialize_with = "nanoseconds")]
    pub(super) first: Duration,
    /// Whether commits wait for it.
    pub(super) holds_commits: bool,
}

/// A worker that does much more of an operator's work than the others.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Skew {
    pub(super) worker: usize,
    /// Its part of the time, in hundredths.
    pub(super) percent: u64,
}

impl Node {
    pub(super) fn new(operation: String, details: Vec<String>) -> Self {
        Self {
            id: 0,
            operation,
            clause: None,
            details,
            inputs: Vec::new(),
            states: Vec::new(),
            figures: None,
            waiting: None,
            rank: None,
            sentences: Vec::new(),
        }
    }
}

impl Figures {
    /// Those where the operator stands once more.
    pub(super) fn again(&self) -> Self {
        Self { kept_rows: self.kept_rows, kept_bytes: self.kept_bytes, ..Self::default() }
    }
}

impl Explanation {
    pub(super) fn new(kind: Kind, relation: Option<&str>) -> Self {
        let relation = relation.map(str::to_owned);
        let (notes, nodes, lines) = (Vec::new(), Vec::new(), Vec::new());
        Self { kind, relation, totals: None, notes, nodes, lines }
    }

    /// Writes it.
    pub(crate) fn written(&self, format: ExplainFormat) -> String {
        match format {
            ExplainFormat::Text => text::written(self),
            ExplainFormat::Json => json::written(self),
            ExplainFormat::Dot => dot::written(self),
            ExplainFormat::Svg => svg::written(self),
        }
    }

    /// Numbers the nodes of which something is said already, and after them the operators that take the most time. Returns the
    /// operators of which it is yet to be said what would help.
    pub(super) fn rank(&mut self) -> Vec<usize> {
        let busy = |node: &Node| node.figures.as_ref().map_or(Duration::ZERO, |it| it.busy);
        let is_said = |node: &Node| !node.sentences.is_empty();
        let mut worst: Vec<usize> = (0..self.nodes.len()).collect();
        worst.sort_by_key(|id| Reverse((is_said(&self.nodes[*id]), busy(&self.nodes[*id]))));
        worst.retain(|id| is_said(&self.nodes[*id]) || busy(&self.nodes[*id]) >= LEAST);
        worst.truncate(WORST);
        for (place, id) in worst.iter().enumerate() {
            self.nodes[*id].rank = Some(place + 1);
        }
        let percent = |node: &Node| node.figures.as_ref().map_or(0, |it| it.busy_percent);
        worst.retain(|id| percent(&self.nodes[*id]) >= NOTABLE && !is_said(&self.nodes[*id]));
        worst
    }

    /// The numbered operators, the first first.
    pub(super) fn worst(&self) -> Vec<(usize, &Node)> {
        let ranked = self.nodes.iter().filter_map(|node| Some((node.rank?, node)));
        let mut worst: Vec<_> = ranked.collect();
        worst.sort_by_key(|(rank, _)| *rank);
        worst
    }

    /// Adds up what the inputs of each operator gave, of those whose inputs were all measured.
    pub(super) fn add_inputs(&mut self, is_measured: impl Fn(usize) -> bool) {
        let given = |node: &Node| node.figures.as_ref().map(|it| (it.rows_out, it.bytes_out));
        let given: Vec<_> = self.nodes.iter().map(given).collect();
        for Node { inputs, figures, .. } in &mut self.nodes {
            let mut given = inputs.iter().map(|id| given[*id].filter(|_| is_measured(*id)));
            let sum = given.try_fold((0, 0), |sum, it| it.map(|it| (sum.0 + it.0, sum.1 + it.1)));
            if let Some(figures) = figures.as_mut().filter(|_| !inputs.is_empty()) {
                (figures.rows_in, figures.bytes_in) = sum.unzip();
            }
        }
    }

    /// Adds a reader of the first operator.
    pub(super) fn add_reader(&mut self, node: Node) {
        let id = self.nodes.len();
        self.nodes.push(Node { id, inputs: vec![0], ..node });
        self.lines.insert(0, Line { depth: 0, node: id, is_first: true });
    }

    /// Adds operators from the lines of a tree, each line before those below it.
    pub(super) fn tree(&mut self) -> Tree<'_> {
        Tree { explanation: self, known: HashMap::new(), path: Vec::new() }
    }
}

/// The tree that an explanation is made from.
pub(super) struct Tree<'a> {
    explanation: &'a mut Explanation,
    /// The operators with keys.
    known: HashMap<String, usize>,
    /// The lines above the next one.
    path: Vec<Line>,
}

impl Tree<'_> {
    /// Adds a line, and returns the node that it is of. Lines with equal keys are of one operator, that of the first.
    pub(super) fn add(&mut self, depth: usize, key: Option<String>, node: Node) -> usize {
        while self.path.last().is_some_and(|line| line.depth >= depth) {
            self.path.pop();
        }
        let Explanation { nodes, lines, .. } = &mut *self.explanation;
        let known = key.as_ref().and_then(|key| self.known.get(key)).copied();
        let id = known.unwrap_or(nodes.len());
        if known.is_none() {
            nodes.push(Node { id, ..node });
            self.known.extend(key.map(|key| (key, id)));
        }
        // What an operator reads is known from its first line.
        if let Some(reader) = self.path.last()
            && reader.is_first
        {
            nodes[reader.node].inputs.push(id);
        }
        let line = Line { depth, node: id, is_first: known.is_none() };
        lines.push(line);
        self.path.push(line);
        id
    }

    /// Makes the operators that nothing reads inputs of the first one.
    pub(super) fn read_by_first(self) {
        let Explanation { nodes, lines, .. } = self.explanation;
        let roots = lines.iter().skip(1).filter(|line| line.depth == 0).map(|line| line.node);
        if let Some(first) = nodes.first_mut() {
            first.inputs.extend(roots);
        }
    }
}

fn nanoseconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn some_nanoseconds<S: Serializer>(
    time: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => nanoseconds(time, serializer),
        None => serializer.serialize_none(),
    }
}

/// A part of a time, in hundredths.
pub(super) fn percent(part: Duration, all: Duration) -> u64 {
    let percent = (100 * part.as_nanos()).checked_div(all.as_nanos()).unwrap_or(0);
    u64::try_from(percent).unwrap_or(u64::MAX)
}

/// A time, for people.
pub(super) fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

/// So many rows, for people.
pub(super) fn rows(count: u64) -> String {
    match count {
        1 => "1 row".to_owned(),
        _ => format!("{count} rows"),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Operators, each of which reads the next one.
    fn chain(count: usize) -> Explanation {
        let mut explanation = Explanation::new(Kind::View, Some("deep"));
        let mut tree = explanation.tree();
        for depth in 0..count {
            tree.add(depth, None, Node::new(format!("map {depth}"), vec!["append-only".into()]));
        }
        explanation
    }

    #[test]
    fn a_plan_at_any_depth_needs_little_stack() {
        let write = || {
            let explanation = chain(10_000);
            for format in [ExplainFormat::Json, ExplainFormat::Dot, ExplainFormat::Svg] {
                let written = explanation.written(format);
                assert!(written.contains("map 9999"), "{format:?}");
            }
        };
        let thread = thread::Builder::new().stack_size(128 << 10).spawn(write);
        thread.expect("it starts").join().expect("it has stack");
    }

    #[test]
    fn lines_of_one_operator_are_one_node() {
        let mut explanation = Explanation::new(Kind::View, None);
        let mut tree = explanation.tree();
        for (depth, key) in [(0, "a"), (1, "b"), (2, "c"), (1, "c"), (1, "b"), (2, "c"), (0, "d")] {
            tree.add(depth, Some(key.to_owned()), Node::new(key.to_owned(), Vec::new()));
        }
        tree.read_by_first();
        let inputs: Vec<&[usize]> = explanation.nodes.iter().map(|node| &node.inputs[..]).collect();
        assert_eq!(inputs, [&[1, 2, 1, 3][..], &[2], &[], &[]]);
        assert_eq!(explanation.written(ExplainFormat::Text), "a\n  b\n    c\n  c\n  b\n    c\nd\n");
    }
}
