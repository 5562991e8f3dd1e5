//! The rows of a delta that may come first in their groups.
//!
//! Of rows that come together, only the first of each group can come out where one row does and rows only
//! ever come. The others are let go here, before they are encoded, sent and sorted: of many rows of few groups
//! little is left.

use arrow::array::{ArrayRef, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::Operator;

use alluvium_trace::PageTime;
use alluvium_trace::memory::StateContext;

use crate::codec::{CodecError, Encoded, KeyCodec};
use crate::delta::{Delta, DeltaStream, Times};
use crate::layout::types_of;

/// Lets go of rows that come together with one of their group, the columns `keys`, that is before them in
/// `order`. All weights are positive.
pub(super) fn shortlist<'scope, T: PageTime>(
    rows: DeltaStream<'scope, T>,
    schema: &SchemaRef,
    keys: &[usize],
    order: &[(usize, SortOptions)],
    context: &StateContext,
) -> Result<DeltaStream<'scope, T>, CodecError> {
    let options =
        order.iter().map(|&(at, options)| (schema.field(at).data_type().clone(), options));
    let mut shortlist = Shortlist {
        keys: Part::new(keys.to_vec(), KeyCodec::new(&types_of(schema, keys))?, context),
        orders: Part::new(
            order.iter().map(|&(column, _)| column).collect(),
            KeyCodec::with_order(options.collect())?,
            context,
        ),
    };
    Ok(rows.unary(Pipeline, "Shortlist", move |_, _| {
        move |input, output: &mut OutputBuilderSession<'_, T, NoopBuilder<Delta<T>>>| {
            input.for_each(|capability, delta: &mut Delta<T>| {
                let mut session = output.session_with_builder(&capability);
                match shortlist.select(delta) {
                    Some(kept) => session.give_container(&mut delta.filter(&kept)),
                    None => session.give_container(delta),
                }
            });
        }
    }))
}

struct Shortlist {
    keys: Part,
    orders: Part,
}

/// Some columns of a delta, encoded.
struct Part {
    columns: Vec<usize>,
    codec: KeyCodec,
    encoded: Encoded,
}

impl Shortlist {
    /// The rows that are not behind another; `None` if the rows do not come together, or all but few are kept.
    fn select<T: Clone>(&mut self, delta: &Delta<T>) -> Option<BooleanArray> {
        let Times::Same(_) = delta.times else { return None };
        let (keys, orders) = (self.keys.encode(delta), self.orders.encode(delta));
        let mut firsts: HashMap<&[u8], &[u8]> = HashMap::new();
        for (key, order) in keys.iter().zip(orders.iter()) {
            match firsts.entry(key) {
                Entry::Vacant(first) => drop(first.insert(order)),
                Entry::Occupied(mut first) if order < *first.get() => drop(first.insert(order)),
                Entry::Occupied(_) => {}
            }
        }
        if firsts.len() > delta.len() / 8 * 7 {
            return None;
        }
        let is_first = |row: usize| firsts.get(keys.get(row)) == Some(&orders.get(row));
        Some(BooleanArray::new(BooleanBuffer::collect_bool(delta.len(), is_first), None))
    }
}

impl Part {
    fn new(columns: Vec<usize>, codec: KeyCodec, context: &StateContext) -> Self {
        Self { columns, codec, encoded: Encoded::counted(context) }
    }

    fn encode<T>(&mut self, delta: &Delta<T>) -> &Encoded {
        let columns: Vec<ArrayRef> =
            self.columns.iter().map(|&column| delta.rows.column(column).clone()).collect();
        self.encoded.clear();
        self.codec
            .encode(&columns, delta.rows.num_rows(), &mut self.encoded)
            .expect("the columns are of the codec's types");
        &self.encoded
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch};
    use arrow::datatypes::DataType;

    use super::*;

    #[test]
    fn the_first_of_each_group_and_its_equals_are_kept() {
        let number = |numbers: [i64; 8]| Arc::new(Int64Array::from(numbers.to_vec())) as ArrayRef;
        let rows = RecordBatch::try_from_iter([
            ("group", number([1, 2, 1, 1, 2, 1, 2, 1])),
            ("order", number([5, 7, 3, 4, 9, 3, 8, 6])),
        ]);
        let mut delta = Delta::insertions(rows.unwrap(), 4_u64);
        let context = StateContext::default();
        let codec = || KeyCodec::new(&[DataType::Int64]).unwrap();
        let part = |column| Part::new(vec![column], codec(), &context);
        let mut shortlist = Shortlist { keys: part(0), orders: part(1) };
        let kept = shortlist.select(&delta).unwrap();
        assert_eq!(kept.values().set_indices().collect::<Vec<_>>(), [1, 2, 5]);

        // A row that is behind one of a later time comes out before that.
        delta.times = Times::Each((0..8).collect());
        assert_eq!(shortlist.select(&delta), None);
    }
}
