//! INTERSECT and EXCEPT: weights computed from the weights on both sides.

use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;
use arrow::datatypes::SchemaRef;

use crate::fault::{self, Fault};
use crate::movement::delta::DeltaStream;
use crate::movement::exchange::exchange;
use crate::reductions::reduce::{History, OutputRows, PairLogic, Rows, Shape, cogroup};
use crate::rows::codec::CodecError;
use crate::rows::key_columns::KeyColumns;
use crate::rows::layout::{Layout, all_columns};
use crate::rows::weight::add;
use crate::state::arrangement::keep;

/// A set operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SetOperation {
    /// The rows that are on both sides, once.
    Intersect,
    /// Multiset intersection: min(left, right).
    IntersectAll,
    /// The rows that are on the left and not on the right, once.
    Except,
    /// Multiset difference: max(left − right, 0).
    ExceptAll,
}

impl SetOperation {
    /// The weight of a row with the weights `left` and `right` on the two sides.
    fn weight(self, left: i64, right: i64) -> i64 {
        let weight = match self {
            SetOperation::Intersect => i64::from(left > 0 && right > 0),
            SetOperation::Except => i64::from(left > 0 && right <= 0),
            SetOperation::IntersectAll if fault::armed(Fault::IntersectOnce) => {
                left.min(right).min(1)
            }
            SetOperation::IntersectAll => left.min(right),
            SetOperation::ExceptAll if fault::armed(Fault::MissLastPartner) => {
                add(left, -right.max(1))
            }
            SetOperation::ExceptAll => add(left, -right.max(0)),
        };
        weight.max(0)
    }
}

/// A set operation over rows of a schema.
#[derive(Clone, Debug)]
pub struct Spec {
    operation: SetOperation,
    key: KeyColumns,
    layout: Layout,
}

impl Spec {
    /// `operation` over rows of `schema`. Fails if a column cannot be a key.
    pub fn compile(operation: SetOperation, schema: SchemaRef) -> Result<Self, CodecError> {
        let key = KeyColumns::new(&schema, &all_columns(&schema))?;
        Ok(Self { operation, key, layout: Layout::distinct(schema)? })
    }

    /// The layout of the rows that are kept.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// The rows of `left` and `right` with the weights of the set operation.
///
/// Exchanges rows by all columns. NULLs are equal. Floats come out canonical.
pub fn set_operation<'scope>(
    spec: &Spec,
    left: DeltaStream<'scope, Epoch>,
    right: DeltaStream<'scope, Epoch>,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let layout = &spec.layout;
    let shape = Shape::of_rows(layout.schema().clone());
    let left = keep(exchange(left, &spec.key, context), layout.clone(), "ArrangeLeft", context);
    let right = keep(exchange(right, &spec.key, context), layout.clone(), "ArrangeRight", context);
    let output = OutputRows::new(layout.clone(), shape, context);
    let logic =
        Weights { operation: spec.operation, left: History::default(), right: History::default() };
    cogroup(left, right, "SetOperation", context, logic, output)
}

struct Weights {
    operation: SetOperation,
    left: History,
    right: History,
}

impl PairLogic for Weights {
    type Output = OutputRows;

    fn reduce(
        &mut self,
        key: &[u8],
        left: &mut Rows,
        right: &mut Rows,
        output: &mut OutputRows,
    ) -> bool {
        for (rows, history) in [(left, &mut self.left), (right, &mut self.right)] {
            history.clear();
            // The key is the whole row, and the value is empty.
            rows.history_of(key, &[], history);
            history.settle();
        }
        let (mut on_left, mut on_right) = (self.left.before, self.right.before);
        let mut weight = self.operation.weight(on_left, on_right);
        let (mut lefts, mut rights) = (self.left.changes.as_slice(), self.right.changes.as_slice());
        loop {
            let time = match (lefts.first(), rights.first()) {
                (Some(left), Some(right)) => left.0.min(right.0),
                (Some(one), None) | (None, Some(one)) => one.0,
                (None, None) => return true,
            };
            for (changes, count) in [(&mut lefts, &mut on_left), (&mut rights, &mut on_right)] {
                if let Some((&(at, by), later)) = changes.split_first()
                    && at == time
                {
                    *count = add(*count, by);
                    *changes = later;
                }
            }
            let now = self.operation.weight(on_left, on_right);
            output.push(key, &[], false, time, add(now, -weight));
            weight = now;
        }
    }
}
