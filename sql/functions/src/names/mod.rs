//! Names of functions: those that SQL defines by others, other names of functions, and names
//! that are near one that does not exist.

mod definitions;
mod near;
mod other_names;

pub use self::definitions::{DEFINITIONS, FORMS};
pub use self::near::{did_you_mean, nearest};
pub(crate) use self::other_names::OTHER_NAMES;
