//! Choices of timing that must not change any result.
//!
//! The defaults are for production. Tests vary them and compare the results.

/// When state is merged and how batches are cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// When spines merge their layers.
    pub merging: Merging,
    /// Whether an arrangement emits one batch for each time it has seen, where it would emit one for all of them.
    pub tiled: bool,
}

/// When a spine merges its layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merging {
    /// When their sizes are out of proportion.
    #[default]
    InProportion,
    /// All of them, always.
    Always,
    /// Not because of their sizes.
    Never,
}
