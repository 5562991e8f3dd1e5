//! Names of columns, as people write them and as plans need them.

pub(crate) mod merged;
pub(crate) mod named_casts;
pub(crate) mod repeated_names;
pub(crate) mod selected_names;
pub(crate) mod unnested_names;
pub(crate) mod wildcards;
