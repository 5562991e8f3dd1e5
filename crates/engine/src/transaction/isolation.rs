//! Isolation levels.

/// The isolation of a transaction from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// As if transactions ran one after the other, in an order in which each comes after those that had committed when it began.
    #[default]
    Serializable,
    /// All reads are of one version, and what queries read is not validated.
    RepeatableRead,
    /// Queries read the last version, and their reads are not validated; also `READ UNCOMMITTED`.
    ReadCommitted,
}

impl Isolation {
    /// The level of this name, as a setting has it.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "repeatable read" => Self::RepeatableRead,
            "read committed" | "read uncommitted" => Self::ReadCommitted,
            _ => Self::Serializable,
        }
    }
}
