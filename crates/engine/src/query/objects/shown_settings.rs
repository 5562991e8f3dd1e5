//! The settings of a session, as statements see them.

use std::sync::Arc;

use alluvium_sql::functions::session::SessionFacts;
use alluvium_sql::planner::SystemSchemas;

/// The settings of a session, as statements see them.
pub(crate) trait ShownSettings: Sync {
    /// What functions know of a session with these settings, in an engine with these schemas and settings of the program's own.
    fn facts(&self, system: &SystemSchemas) -> Arc<dyn SessionFacts>;

    /// All of them: their names, values and descriptions.
    fn all(&self) -> Vec<(&'static str, String, &'static str)>;
}
