//! The incremental plan: how a view is maintained, before it becomes a physical plan.
//!
//! - [`node`]: the nodes, one file each: columns, properties, pruning, explaining. A new plan node is one file
//!   there, with its `mod` and `pub use`, and one line in `nodes!`.
//! - [`incremental_plan`]: a plan, the tree of these nodes.
//! - [`view`]: all that is planned of a view: [`final_rows`] finds the column by which its rows are final, [`lateness`] those by
//!   which they may come late.
//! - [`properties`]: of the rows of a plan.
//! - [`mod@build`]: from an optimized logical plan to nodes.
//! - [`prune`]: drops the columns that nothing needs, so that no state holds them.
//! - [`ranking_filter`]: turns a filter on `ROW_NUMBER` and its relatives into a top-k.
//! - [`clock_filter`]: turns comparisons with `NOW()` into temporal filters.
//! - [`range_filter`]: turns comparisons with values that move into range joins.
//! - [`bounds`]: says which rows of state are not needed any more.
//! - [`share`]: finds the indexes that several plans can share.
//! - [`fingerprint`]: identifies equal plans, and state across processes.
//! - [`constructs`]: finds the clauses of a view's text that operators of its plan stand for.
//! - [`mod@explain`]: prints a plan; [`mod@explain_state`] lists its state and why; [`names`] writes its columns and expressions.
//! - [`expression`]: the expressions that maps evaluate; [`failure`]: whether one fails.
pub mod bounds;
mod build;
mod clock_filter;
mod constructs;
mod explain;
mod explain_state;
mod expression;
mod failure;
pub mod fault;
mod final_rows;
mod fingerprint;
mod incremental_plan;
mod lateness;
mod names;
pub mod node;
pub mod physical;
mod properties;
mod prune;
mod range_filter;
mod ranking_filter;
mod share;
mod view;

pub use self::bounds::{LowerBound, LowerBounds, Reason, Retention, Source};
pub use self::constructs::ViewText;
pub use self::explain::{ExplainedNode, explained_nodes};
pub use self::explain_state::{Keeping, KeptBy, KeptState, LastRows, explain_state};
pub(crate) use self::fingerprint::Canonical;
pub use self::fingerprint::{Fingerprint, Renamed};
pub use self::incremental_plan::IncrementalPlan;
pub use self::node::Node;
pub use self::properties::Properties;
pub use self::share::{Index, Shared, SharedIndex};
pub use self::view::PlannedView;
