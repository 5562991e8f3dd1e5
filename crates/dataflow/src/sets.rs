//! INTERSECT and EXCEPT: how often a row is there, from how often it is on either side.

use alluvium_trace::memory::context;
use alluvium_trace::{Epoch, Spine};
use arrow::datatypes::SchemaRef;

use crate::arrangement::arrange;
use crate::codec::CodecError;
use crate::cogroup::{Answer, History, Logic, Rows, Shape, cogroup};
use crate::delta::DeltaStream;
use crate::fault::{self, Fault};
use crate::fold::add;
use crate::layout::Layout;

/// A set operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SetOperation {
    /// What is on both sides, once.
    Intersect,
    /// What is on both sides, as often as where it is less often.
    IntersectAll,
    /// What is on the left and not on the right, once.
    Except,
    /// What is on the left, as much more often as it is there than on the right.
    ExceptAll,
}

impl SetOperation {
    /// How often a row comes out that is `left` times on the left and `right` times on the right.
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

/// The rows of `left` and `right`, both of the columns of `schema`, that `operation` leaves.
///
/// Equal rows are on the same worker; NULLs are equal. Floats come out canonical.
pub fn set_operation<'scope>(
    left: DeltaStream<'scope, Epoch>,
    right: DeltaStream<'scope, Epoch>,
    operation: SetOperation,
    schema: SchemaRef,
) -> Result<DeltaStream<'scope, Epoch>, CodecError> {
    let layout = Layout::distinct(schema.clone())?;
    let shape = Shape {
        columns: (0..schema.fields().len()).collect(),
        schema,
        nulls_before: Vec::new(),
        nulls_after: Vec::new(),
        marked: false,
    };
    let left = arrange::<Epoch, Spine<Epoch>>(left, layout.clone(), "ArrangeLeft");
    let right = arrange::<Epoch, Spine<Epoch>>(right, layout.clone(), "ArrangeRight");
    let answer = Answer::new(layout, shape, &context::current());
    let logic = Weigh { operation, left: History::default(), right: History::default() };
    Ok(cogroup(left, right, "SetOperation", logic, answer))
}

struct Weigh {
    operation: SetOperation,
    left: History,
    right: History,
}

impl Logic for Weigh {
    fn group(&mut self, key: &[u8], left: &mut Rows, right: &mut Rows, answer: &mut Answer) {
        for (rows, history) in [(left, &mut self.left), (right, &mut self.right)] {
            history.clear();
            // A row is all key, and its value is empty.
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
                (None, None) => return,
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
            answer.push(key, &[], false, time, add(now, -weight));
            weight = now;
        }
    }
}
