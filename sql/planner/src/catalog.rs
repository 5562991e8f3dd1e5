//! The catalog: the facts about tables and views that SQL needs.

use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock};

use alluvium_sql_syntax::error::Error;
use alluvium_sql_syntax::statement::Lateness;
use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion_expr::{Expr, LogicalPlan};

use crate::SqlFunctions;
use crate::checks::extent::Extent;
use crate::system::SystemSchemas;

/// The relations and functions that a statement can name.
pub trait Catalog {
    /// The relation of this name, folded as identifiers fold; a name in a schema is `schema.name`.
    fn relation(&self, name: &str) -> Option<Relation>;

    /// The names of all relations, for suggestions.
    fn names(&self) -> Vec<String>;

    /// The functions that SQL has defined.
    fn functions(&self) -> &SqlFunctions {
        static NONE: LazyLock<SqlFunctions> = LazyLock::new(SqlFunctions::new);
        &NONE
    }

    /// The relations that the statement names and that are outside of the database, such as files, with their columns.
    fn outside(&self) -> Vec<(String, SchemaRef)> {
        Vec::new()
    }

    /// The types of the parameters of the statement, by place; those without one have the type that is expected where they stand.
    fn parameters(&self) -> &[Option<FieldRef>] {
        &[]
    }

    /// The views and functions of the program's own.
    fn system(&self) -> Option<&SystemSchemas> {
        None
    }

    /// The error for which a view of the program's own is not there.
    fn failure(&self, _name: &str) -> Option<Error> {
        None
    }
}

/// Views that recur over each other.
#[derive(Debug)]
pub struct DeclaredRecursion {
    /// The views.
    pub views: Vec<DeclaredView>,
    /// The size of their plans.
    pub extent: Extent,
    /// The last round.
    pub limit: u64,
}

/// A view that recurs.
#[derive(Clone, Debug)]
pub struct DeclaredView {
    /// Its name.
    pub name: String,
    /// Its columns, as they were declared.
    pub schema: SchemaRef,
    /// Its query, which scans the relations that recur as [`Relation::Declared`].
    pub plan: Arc<LogicalPlan>,
}

/// Facts about the plan of a materialized view for the plans that read the view. Only they look at it.
pub trait Maintained: Any + Debug + Send + Sync {}

/// A relation.
#[derive(Clone, Debug)]
pub enum Relation {
    /// A table.
    Table {
        /// Its columns.
        schema: SchemaRef,
        /// The columns of the primary key; empty without one.
        primary_key: Vec<usize>,
        /// The columns of a primary key that is not enforced; empty without one.
        promised_key: Vec<usize>,
        /// The columns of each of its UNIQUE constraints.
        uniques: Vec<Vec<usize>>,
        /// The default of each column, for columns that an INSERT leaves out; `None` for NULL.
        defaults: Vec<Option<Expr>>,
        /// The columns whose values statements cannot give.
        always_generated: Vec<usize>,
        /// Whether it keeps its rows; if not, they only pass into the views that read it.
        kept: bool,
        /// Whether rows are only ever inserted.
        append_only: bool,
        /// The columns that have a waterline.
        waterlines: Vec<usize>,
    },
    /// A view whose rows are kept.
    MaterializedView {
        /// Its columns.
        schema: SchemaRef,
        /// Whether rows are only ever inserted.
        append_only: bool,
        /// Facts about its plan for those that read it.
        maintained: Arc<dyn Maintained>,
    },
    /// A view that is not materialized; it is expanded where it is named.
    View {
        /// Its columns.
        schema: SchemaRef,
        /// Its query: [`LogicalView::logical`](crate::LogicalView::logical).
        plan: Arc<LogicalPlan>,
        /// The size of the plan.
        extent: Extent,
        /// Whether it has no dataflow of its own: then the views that name it report its errors.
        local: bool,
        /// The column by which its rows are final, if it has no others.
        emit_final: Option<usize>,
        /// How late its changes may come, by columns that differ.
        lateness: Vec<Lateness>,
    },
    /// A view that recurs and is not materialized, or one that is declared and not created yet.
    Declared {
        /// Its columns.
        schema: SchemaRef,
        /// The recursion that it is part of; `None` before all views are there that recur over each other.
        recursion: Option<Arc<DeclaredRecursion>>,
        /// Whether it has no dataflow of its own: then the views that name it report its errors.
        local: bool,
    },
    /// The one row with the time of the epoch: [`CLOCK`](crate::CLOCK). It cannot be named.
    Clock,
    /// A relation about the engine itself, as `alluvium.errors`, for queries and not for views.
    System {
        /// Its columns.
        schema: SchemaRef,
    },
}
