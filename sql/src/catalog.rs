//! What SQL needs to know of the tables and views that exist.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_expr::{Expr, LogicalPlan};

/// When a table keeps its contents, for messages.
pub const KEEPING: &str = "a table keeps its contents if it has no connector, has a PRIMARY KEY, or says \
                           'materialized' = 'true'";

/// The relations that a statement can name.
pub trait Catalog {
    /// The relation of this name, folded as identifiers fold; a name in a schema is `schema.name`.
    fn relation(&self, name: &str) -> Option<Relation>;

    /// The names of all relations, for suggestions.
    fn names(&self) -> Vec<String>;
}

/// What is known of a relation.
#[derive(Clone, Debug)]
pub enum Relation {
    /// A table.
    Table {
        /// Its columns.
        schema: SchemaRef,
        /// The columns no two rows share; empty without a primary key.
        primary_key: Vec<usize>,
        /// What a column gets that an INSERT leaves out: one entry per column, `None` for NULL.
        defaults: Vec<Option<Expr>>,
        /// Whether it keeps its contents; the rows of one that does not only pass into the views of it.
        kept: bool,
        /// Whether rows are only ever inserted.
        append_only: bool,
    },
    /// A view whose rows are kept.
    MaterializedView {
        /// Its columns.
        schema: SchemaRef,
    },
    /// A view that is not kept: what names it is planned with the view written out in place.
    View {
        /// Its columns.
        schema: SchemaRef,
        /// What it selects: [`PlannedView::logical`](crate::planner::PlannedView::logical).
        plan: Arc<LogicalPlan>,
        /// Whether it is part of whatever names it, and built nowhere else: then its errors are told there.
        local: bool,
    },
    /// The one row that holds the time of the epoch: [`CLOCK`](crate::planner::CLOCK). No name stands for it.
    Clock,
    /// What the engine tells of itself, as `alluvium.errors`: for queries, not for views.
    System {
        /// Its columns.
        schema: SchemaRef,
    },
}
