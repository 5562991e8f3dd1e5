//! Alluvium's SQL: from text to statements, to an incremental plan, to a dataflow.
//!
//! Read the crates in this order; each depends on those before it alone:
//!
//! - [`functions`]: the functions that SQL can call;
//! - [`statement`] and [`syntax`]: from text to statements, with errors that have positions;
//! - [`planner`]: from statements to logical plans, with DataFusion's planner and optimizer, over a [`catalog`];
//! - [`plan`]: the incremental plan of a view, and the indexes it shares; [`physical`]: the operators that maintain it.
//!
//! This crate has all of them under one name.

pub use alluvium_sql_functions as functions;
pub use alluvium_sql_functions::{decimal, texts};
pub use alluvium_sql_plan as plan;
pub use alluvium_sql_plan::physical;
pub use alluvium_sql_planner as planner;
pub use alluvium_sql_planner::catalog;
pub use alluvium_sql_syntax::error::{self, Error, Position};
pub use alluvium_sql_syntax::{name, stack, statement, syntax};

/// The seeded faults of all of them.
pub mod fault {
    use alluvium_trace::fault::FaultId;

    /// Those that make wrong results and do not panic, with their names.
    pub fn wrong() -> impl Iterator<Item = (String, FaultId)> {
        let functions = alluvium_sql_functions::fault::Fault::WRONG.into_iter().map(named);
        let syntax = alluvium_sql_syntax::fault::Fault::WRONG.into_iter().map(named);
        let planner = alluvium_sql_planner::fault::Fault::WRONG.into_iter().map(named);
        let plan = alluvium_sql_plan::fault::Fault::WRONG.into_iter().map(named);
        functions.chain(syntax).chain(planner).chain(plan)
    }

    /// A fault with its name.
    pub fn named<F: Copy + std::fmt::Debug + Into<FaultId>>(fault: F) -> (String, FaultId) {
        (format!("{fault:?}"), fault.into())
    }
}
