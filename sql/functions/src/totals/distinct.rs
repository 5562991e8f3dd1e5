//! Totals of distinct rows.

use std::collections::HashSet;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::Accumulator;

use super::{Finish, Total};

/// The columns of a partial result: the keys of rows, of 16 bytes each.
pub(super) const STATE: &[(&str, DataType)] = &[("distinct", DataType::Binary)];

/// The distinct rows of a group.
#[derive(Debug)]
pub(super) struct Distinct<T: Total> {
    finish: Finish<T>,
    keys: HashSet<u128>,
}

impl<T: Total> Distinct<T> {
    pub(super) fn new(finish: Finish<T>) -> Self {
        Self { finish, keys: HashSet::new() }
    }
}

/// The bits of a float, which are those of equal floats.
pub(super) fn float_key(number: f64) -> u64 {
    match number {
        number if number.is_nan() => f64::NAN.to_bits(),
        number => (number + 0.0).to_bits(),
    }
}

impl<T: Total> Accumulator for Distinct<T> {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        T::each(columns, |_, input| {
            self.keys.insert(T::key(input));
        })
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        // In one order, since sums of squares are rounded.
        let mut keys: Vec<u128> = self.keys.iter().copied().collect();
        keys.sort_unstable();
        let mut total = T::default();
        keys.into_iter().for_each(|key| total.add(T::of_key(key)));
        self.finish.scalar(&total)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.keys.capacity() * (size_of::<u128>() + 1)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let keys = self.keys.iter().flat_map(|key| key.to_le_bytes());
        Ok(vec![ScalarValue::Binary(Some(keys.collect()))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for keys in states[0].as_binary::<i32>().iter().flatten() {
            let (keys, _) = keys.as_chunks();
            self.keys.extend(keys.iter().map(|&key| u128::from_le_bytes(key)));
        }
        Ok(())
    }
}
