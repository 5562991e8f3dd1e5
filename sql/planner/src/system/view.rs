//! A view of a program.

use std::sync::{Arc, OnceLock};

use alluvium_sql_syntax::error::Result;
use alluvium_sql_syntax::statement::ViewDefinition;
use datafusion_expr::LogicalPlan;

/// A view, which is planned when it is first named.
#[derive(Debug)]
pub(super) struct SystemView {
    definition: ViewDefinition,
    planned: OnceLock<Result<Arc<LogicalPlan>>>,
}

impl SystemView {
    pub(super) fn new(definition: ViewDefinition) -> Self {
        Self { definition, planned: OnceLock::new() }
    }

    pub(super) fn name(&self) -> &str {
        &self.definition.name
    }

    /// Whether a plan is that of this view.
    pub(super) fn is(&self, plan: &Arc<LogicalPlan>) -> bool {
        matches!(self.planned.get(), Some(Ok(planned)) if Arc::ptr_eq(planned, plan))
    }

    /// The plan of its query, made by `plan` if it was not yet.
    pub(super) fn planned(
        &self,
        plan: impl FnOnce(&ViewDefinition) -> Result<Arc<LogicalPlan>>,
    ) -> &Result<Arc<LogicalPlan>> {
        self.planned.get_or_init(|| plan(&self.definition))
    }
}
