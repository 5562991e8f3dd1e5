//! The physical plan: how a plan runs, with every layout and codec made.
//!
//! [`compile`] runs on the client's thread and finds everything that can go wrong; [`render`] builds the dataflow on
//! a worker and cannot fail. All workers render the same physical plan.
//!
//! - [`compile`]: from a plan over indexes to operators, inputs before the operators that read them.
//! - [`operator`]: an operator of a physical plan. Each is defined beside its plan node, in [`crate::node`].
//! - [`arranged`]: inputs sorted by keys: tables, indexes, or arrangements of the dataflow's own.
//! - [`own`]: rows that an operator keeps in its own order.
//! - [`rounds`]: the inside of a recursion.
//! - [`state`]: ids and fingerprints of state. Checkpoints and metrics name state by them.
//! - [`table`]: how a table runs.
//! - [`render`]: the dataflow of a plan, on one worker.
mod arranged;
mod compile;
mod operator;
mod own;
mod pruning;
mod render;
mod rounds;
mod state;
mod table;

use alluvium_dataflow::rows::codec::CodecError;

pub(crate) use self::arranged::Arranged;
pub(crate) use self::compile::Compiler;
pub use self::compile::{Compiled, CompiledIndex, Output, PhysicalPlan, compile, compile_index};
pub(crate) use self::operator::{Operator, OperatorId};
pub(crate) use self::own::OwnRows;
pub(crate) use self::pruning::PrunedBy;
pub(crate) use self::render::Rendering;
pub use self::render::{Relations, StreamInput, ViewDataflow};
pub(crate) use self::rounds::{
    RoundCompiler, RoundId, RoundOperator, RoundPlan, RoundRendering, RoundSide, SidePlacement,
};
pub use self::state::{Place, State};
pub use self::table::{Table, TableDataflow};

/// The result of compiling a part of a plan.
pub(crate) type CompileResult<T> = Result<T, CodecError>;
