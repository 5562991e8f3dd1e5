//! Choices of timing that must not change any result.
//!
//! The defaults are for production. Tests vary them and compare the results.

/// When state is merged and how batches are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// When spines merge their layers.
    pub merging: Merging,
    /// How the owner of a spine does merges that nothing does in the background.
    pub pace: Pace,
    /// The bytes of the smallest merge that is not done at once: smaller ones cost less than the hand-over.
    pub smallest_job: usize,
    /// Whether an arrangement emits one batch for each time it has seen, where it would emit one for all of them.
    pub tiled: bool,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            merging: Merging::default(),
            pace: Pace::default(),
            smallest_job: 128 << 10,
            tiled: false,
        }
    }
}

/// How the owner of a spine does merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// As a whole, in the call that makes them due.
    #[default]
    AtOnce,
    /// In slices, in proportion to insertions, and while there is nothing else to do.
    InSlices,
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
