//! Faults that no input may cause.

use std::fmt;

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The process ended.
    Abort,
    /// A thread panicked, or a message says that something did.
    Panic,
    /// A message speaks of internal errors.
    Internal,
    /// A statement did not end, and could not be interrupted.
    Hang,
    /// A statement took more than its time, and ended when it was interrupted.
    Slow,
    /// The process took more memory than the budget allows.
    Memory,
    /// A message is longer than anyone reads.
    Long,
    /// The engine stopped.
    Stopped,
    /// A known view no longer holds the rows that it should.
    Wrong,
}

impl Fault {
    /// All there are.
    const ALL: [Fault; 9] = [
        Self::Abort,
        Self::Panic,
        Self::Internal,
        Self::Hang,
        Self::Slow,
        Self::Memory,
        Self::Long,
        Self::Stopped,
        Self::Wrong,
    ];

    /// The fault of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.to_string() == name)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{self:?}").to_lowercase();
        f.write_str(&name)
    }
}

/// One fault of one case.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its kind.
    pub fault: Fault,
    /// The evidence.
    pub what: String,
}

impl Finding {
    pub(crate) fn new(fault: Fault, what: impl Into<String>) -> Self {
        Self { fault, what: what.into() }
    }
}

/// The longest message that is not a finding, in bytes.
const LONGEST: usize = 4096;

/// Words that messages of engines must not contain.
const PANICS: [&str; 3] = ["panicked", "fault in the engine", "RUST_BACKTRACE"];

/// Words of libraries about themselves.
const INTERNALS: [&str; 8] = [
    "Internal error",
    "internal error",
    "likely caused by a bug",
    "bug in DataFusion",
    "SchemaError(",
    "ParserError(",
    "External error",
    "not implemented: ",
];

/// The fault in a message.
pub(crate) fn of_message(message: &str) -> Option<Finding> {
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let fault = if has(&PANICS) {
        Fault::Panic
    } else if has(&INTERNALS) {
        Fault::Internal
    } else if message.len() > LONGEST {
        Fault::Long
    } else {
        return None;
    };
    Some(Finding::new(fault, shortened(message)))
}

/// The beginning and the end of a text, on one line.
pub(crate) fn shortened(text: &str) -> String {
    const HALF: usize = 300;
    let characters = text.chars().count();
    let line = |part: String| part.escape_debug().to_string();
    if characters <= 2 * HALF {
        return line(text.to_owned());
    }
    let head = line(text.chars().take(HALF).collect());
    let tail = line(text.chars().skip(characters - HALF).collect());
    format!("{head} … {} bytes … {tail}", text.len())
}
