//! Ad-hoc queries: DataFusion over the relations as of one epoch.
//!
//! A planned query scans relations by name. The [`Reader`] pins them all as of one epoch ([`providers`]), replaces each
//! scan by a [`RelationTable`](table::RelationTable) or, for `generate_series`, a [series](mod@series), and begins to run the
//! plan, which computes rows as they are [pulled](Rows), on the thread that pulls them ([running]). Arithmetic is checked as in views ([`checked`]), and what [windows] hold is counted. `NOW()` is
//! the time of the epoch that is read or, inside a transaction, the transaction's. Queries compute in [slots], share [memory], and move
//! rows that do not fit to files ([spill], [merge_joins]), and can be [measured]. [Recursions](recursions) may have NULLs. The plans of statements by key are
//! [kept](mod@kept_plans): they run step by step, without the query engine, and reads of one row by key look it up.

mod access_path;
mod batch_size;
mod checked;
mod clock;
mod combined;
mod conditions;
mod deep;
mod distinct_rows;
mod engine;
mod errors;
mod explain;
mod file;
mod grouping_sets;
mod interruptible;
mod kept_plans;
mod key_order;
mod memory;
mod merge_joins;
mod metrics;
mod objects;
mod providers;
mod reader;
mod recursions;
mod relations;
mod rows;
mod running;
mod scan;
mod seek;
mod sequence;
mod series;
mod simple;
mod slots;
mod spill;
mod strict;
mod table;
mod tables;
mod values;
mod windows;
mod wrapped;

pub(crate) use self::objects::shown_settings::ShownSettings;
pub(crate) use engine::{Held, QueryEngine};
pub(crate) use explain::{Explanation, explain_view};
pub(crate) use file::{File, FileScope, Files};
pub(crate) use kept_plans::{
    Change, Execution, KeptPlan, OwnPlan, Plan, Plans, shape_before_parsing, shape_of,
};
pub(crate) use metrics::Observed;
pub use metrics::{Metric, MetricFamily, MetricKind, MetricValue};
pub(crate) use reader::{Answer, Reader, Reading, relations};
pub use rows::Rows;
pub(crate) use running::Running;
pub(crate) use values::allow_nulls;
