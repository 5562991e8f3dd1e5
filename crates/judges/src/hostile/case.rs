//! The input of an engine in one case.

use super::calls::Calls;
use super::files::Files;
use super::statements::Statements;

/// The kind of input in cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Statements: mutated, deep, wide and long.
    Statements,
    /// Damaged files, and the statements that read them.
    Files,
    /// Calls of the library.
    Calls,
}

/// Which cases to run, and how.
#[derive(Clone, Debug)]
pub struct Run {
    /// The kind of their input.
    pub kind: Kind,
    /// The seed of the sequence.
    pub seed: u64,
    /// The number of the first case.
    pub first: u64,
    /// The number of cases.
    pub count: u64,
    /// The number of times by which the engine may be slower than a release build.
    pub factor: u32,
    /// The most bytes of a deep or wide statement, more or less; of a file, four times as many.
    pub longest: usize,
}

/// One case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    /// Cases of a round run on one engine.
    pub(crate) round: u64,
    /// Valid statements of its round that come before it. Those of the case before are the first of them.
    pub(crate) setup: Vec<String>,
    /// The names and contents of the files it reads.
    pub(crate) files: Vec<(String, Vec<u8>)>,
    /// Run one after the other, also when one is refused.
    pub(crate) statements: Vec<String>,
    /// The seed of calls.
    pub(crate) calls: Option<u64>,
}

/// The sequence of cases for a seed.
pub(crate) enum Cases {
    Statements(Statements),
    Files(Files),
    Calls(Calls),
}

impl Cases {
    pub(crate) fn new(run: &Run) -> Self {
        match run.kind {
            Kind::Statements => Self::Statements(Statements::new(run.seed, run.longest)),
            Kind::Files => Self::Files(Files::new(run.seed, 4 * run.longest)),
            Kind::Calls => Self::Calls(Calls::new(run.seed)),
        }
    }

    pub(crate) fn case(&self, number: u64) -> Case {
        match self {
            Self::Statements(statements) => statements.case(number),
            Self::Files(files) => files.case(number),
            Self::Calls(calls) => calls.case(number),
        }
    }
}

/// The random numbers of a case or a round.
pub(crate) fn random(seed: u64, number: u64) -> fastrand::Rng {
    let mixed =
        (seed ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xD129_0DDB_53C4_3E49).wrapping_add(number);
    let mut rng = fastrand::Rng::with_seed(mixed);
    // The first number of neighbouring seeds is similar.
    rng.u64(..);
    rng
}

/// The first case of a run: the names and contents of its files, and what is run, its round's setup first.
pub fn show(run: &Run) -> (Vec<(String, Vec<u8>)>, String) {
    let case = Cases::new(run).case(run.first);
    let mut text = String::new();
    for statement in &case.setup {
        text += &format!("{};\n", statement.trim_end());
    }
    text += "-- the case:\n";
    for statement in &case.statements {
        text += &format!("{};\n", statement.trim_end());
    }
    if let Some(seed) = case.calls {
        text += &format!("-- calls of the library with the seed {seed}\n");
    }
    (case.files, text)
}
