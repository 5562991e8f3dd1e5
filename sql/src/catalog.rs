//! The interface through which SQL looks up existing tables and views.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_expr::{Expr, LogicalPlan};

/// The rule for when a table keeps its contents, for error messages.
pub const KEEPING: &str = "a table keeps its contents if it has no connector, has a PRIMARY KEY, or says \
                           'materialized' = 'true'";

/// The relations that a statement can name.
pub trait Catalog {
    /// The relation of this name, which is folded like identifiers; a name in a schema is `schema.name`.
    fn relation(&self, name: &str) -> Option<Relation>;

    /// The names of all relations, for suggestions.
    fn names(&self) -> Vec<String>;
}

/// The definition of a relation.
#[derive(Clone, Debug)]
pub enum Relation {
    /// A table.
    Table {
        /// Its columns.
        schema: SchemaRef,
        /// The columns of the primary key; empty without one.
        primary_key: Vec<usize>,
        /// The defaults of columns that an INSERT omits: one entry per column, `None` for NULL.
        defaults: Vec<Option<Expr>>,
        /// Whether it keeps its contents. Rows of a table that does not only flow into its views.
        kept: bool,
        /// Whether rows are only ever inserted.
        append_only: bool,
    },
    /// A materialized view.
    MaterializedView {
        /// Its columns.
        schema: SchemaRef,
    },
    /// A view that is not materialized: its query is inlined where it is named.
    View {
        /// Its columns.
        schema: SchemaRef,
        /// Its query: [`PlannedView::logical`](crate::planner::PlannedView::logical).
        plan: Arc<LogicalPlan>,
        /// Whether it is local: it is built only as a part of the views that name it, and its errors are reported
        /// there.
        local: bool,
    },
    /// The relation of one row with the time of the epoch, [`CLOCK`](crate::planner::CLOCK), which statements
    /// cannot name.
    Clock,
    /// A system relation, such as `alluvium.errors`, which only queries can read.
    System {
        /// Its columns.
        schema: SchemaRef,
    },
}
