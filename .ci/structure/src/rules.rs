//! What the code has to keep to.

/// The bounds of a crate. They only fall: where one is above what is aimed at (circles of 6 files, files of 500 lines, functions of 80,
/// folders of 20 entries), it is what the crate has today.
pub struct Bounds {
    /// The crate's folder.
    pub path: &'static str,
    /// Files that import each other in a circle.
    pub circle: usize,
    /// Lines of a file.
    pub file: usize,
    /// Lines of a function.
    pub function: usize,
    /// Entries of a folder.
    pub folder: usize,
}

/// A part of a crate that never imports another.
pub struct Never {
    /// The crate's folder.
    pub crate_path: &'static str,
    /// Files or folders below its `src`, without `.rs`.
    pub from: &'static [&'static str],
    /// Files or folders that they never import.
    pub to: &'static [&'static str],
    /// The reason, as a sentence.
    pub why: &'static str,
}

/// The crates of the product.
pub const CRATES: &[Bounds] = &[
    Bounds { path: "crates/storage", circle: 6, file: 500, function: 80, folder: 20 },
    Bounds { path: "crates/trace", circle: 6, file: 500, function: 80, folder: 20 },
    Bounds { path: "crates/dataflow", circle: 6, file: 500, function: 80, folder: 20 },
    Bounds { path: "sql", circle: 6, file: 500, function: 80, folder: 20 },
    Bounds { path: "crates/engine", circle: 6, file: 500, function: 80, folder: 20 },
    Bounds { path: "crates/connect", circle: 6, file: 500, function: 80, folder: 20 },
    Bounds { path: "crates/cli", circle: 6, file: 500, function: 80, folder: 20 },
];

/// What never imports what.
pub const NEVERS: &[Never] = &[
    Never {
        crate_path: "sql",
        from: &["syntax", "statement", "error", "name"],
        to: &["planner", "plan", "physical"],
        why: "what is read does not depend on what is planned",
    },
    Never { crate_path: "sql", from: &["planner"], to: &["plan", "physical"], why: "the planner ends at a logical plan" },
    Never {
        crate_path: "crates/engine",
        from: &["source", "sink", "transaction"],
        to: &["durable"],
        why: "what changes tables does not know how it is made durable",
    },
];
