//! Planning INSERT, UPDATE and DELETE: which rows are inserted into and deleted from a table.
//!
//! - `target` is the table, `insert` plans INSERT, and `change` UPDATE and DELETE, as queries of the rows they change;
//! - `assignments` reads SET, `defaults` has DEFAULT as a value;
//! - `checks` compiles the conditions of CHECK;
//! - `conflict` is ON CONFLICT, and `returning` RETURNING: both are plans over `statement_rows`, which are known only while the
//!   statement runs;
//! - `query` makes the syntax of queries.
mod assignments;
mod change;
mod checks;
mod conflict;
pub(crate) mod defaults;
mod insert;
mod query;
mod returning;
pub(crate) mod statement_rows;
mod target;

use alluvium_sql_syntax::error::{Error, Result};
use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::LogicalPlan;

pub(crate) use self::change::{delete, update};
pub(crate) use self::checks::checks;
pub use self::checks::{Checks, Violation};
pub use self::conflict::{Arbiter, OnConflict};
pub(crate) use self::insert::insert;
use crate::statements::parameter_types::parameter_types;
use crate::statements::parameters::{bind, typed};

/// The rows with which a statement changes a table.
#[derive(Clone, Debug)]
pub struct PlannedWrite {
    /// The table that is changed.
    pub table: String,
    /// The rows.
    pub plan: LogicalPlan,
    /// The action of an INSERT for rows whose keys are taken.
    pub on_conflict: Option<OnConflict>,
    /// The values that the statement returns of the rows that it changed.
    pub returning: Option<Returning>,
}

impl PlannedWrite {
    /// The types of so many parameters of the statement, by place; `None` where nothing tells.
    pub fn parameter_types(&self, count: usize) -> Result<Vec<Option<DataType>>> {
        let on_conflict = self.on_conflict.iter().flat_map(OnConflict::plans);
        let returning = self.returning.as_ref().map(|returning| &returning.plan);
        let plans = [&self.plan].into_iter().chain(on_conflict).chain(returning);
        parameter_types(&plans.collect::<Vec<_>>(), count)
    }
}

/// RETURNING: a query of the rows that a statement changed.
#[derive(Clone, Debug)]
pub struct Returning {
    plan: LogicalPlan,
}

impl Returning {
    /// With values for its parameters.
    pub fn bind(self, values: &[ScalarValue]) -> Result<Returning> {
        Ok(Returning { plan: bind(self.plan, values)? })
    }

    /// With open parameters of these types, but where the context asks for others.
    pub fn typed(self, types: &[DataType]) -> Result<Returning> {
        Ok(Returning { plan: typed(self.plan, types)? })
    }

    /// The query of these rows, which have the columns of the table.
    pub fn of(&self, rows: &RecordBatch) -> Result<LogicalPlan> {
        statement_rows::put(self.plan.clone(), rows).map_err(|error| Error::from_datafusion(&error))
    }
}
