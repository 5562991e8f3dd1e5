//! Rows that come too late.

use std::sync::Arc;

use alluvium_dataflow::map::print_row;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch};
use arrow::compute::kernels::cmp::lt;
use arrow::compute::{cast, filter_record_batch, min, not, or, prep_null_mask_filter};
use arrow::datatypes::{DataType, Int64Type, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::Result;

/// The lower bounds in some columns for rows to be in time. NULL is always in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds(Arc<[(usize, i64)]>);

impl Bounds {
    /// These columns, by their numbers, with the least value of each; `None` without any.
    pub(crate) fn new(columns: impl IntoIterator<Item = (usize, i64)>) -> Option<Self> {
        let columns: Arc<[_]> = columns.into_iter().collect();
        (!columns.is_empty()).then_some(Self(columns))
    }

    /// Which rows come too late; `None` if all are in time.
    pub(crate) fn late(&self, columns: &[ArrayRef]) -> Result<Option<BooleanArray>> {
        let mut all: Option<BooleanArray> = None;
        for &(column, least) in &*self.0 {
            let values = integers(&columns[column])?;
            if min(&values).is_none_or(|smallest| smallest >= least) {
                continue;
            }
            let mut late = lt(&values, &Int64Array::new_scalar(least))?;
            if late.null_count() > 0 {
                late = prep_null_mask_filter(&late);
            }
            all = Some(match all {
                Some(all) => or(&all, &late)?,
                None => late,
            });
        }
        Ok(all)
    }

    /// The rows that are in time. More columns may follow those of the table.
    pub(crate) fn in_time(&self, rows: RecordBatch) -> Result<RecordBatch> {
        match self.late(rows.columns())? {
            Some(late) => Ok(filter_record_batch(&rows, &not(&late)?)?),
            None => Ok(rows),
        }
    }

    /// Why a row comes too late: the first column in which it does, its value and the bound.
    pub(crate) fn reason(&self, schema: &Schema, columns: &[ArrayRef], row: usize) -> String {
        let is_late = |&&(column, least): &&(usize, i64)| {
            let value = integers(&columns[column].slice(row, 1)).ok();
            value.is_some_and(|value| value.is_valid(0) && value.value(0) < least)
        };
        let Some(&(column, least)) = self.0.iter().find(is_late) else { return String::new() };
        let (field, values) = (schema.field(column), &columns[column]);
        let (name, value) = (field.name(), printed(values, row));
        let waterline = written(least, field.data_type());
        format!("\"{name}\" is {}, and the waterline is at {waterline}", value.unwrap_or_default())
    }
}

/// A row as `column=value, …`, without the columns after those of the table.
pub(crate) fn row_text(rows: &RecordBatch, width: usize, row: usize) -> String {
    let columns: Vec<usize> = (0..width).collect();
    rows.project(&columns).map_or_else(|_| String::new(), |rows| print_row(&rows, row))
}

/// The values of a column with a waterline, as numbers.
pub(crate) fn integers(column: &ArrayRef) -> Result<Int64Array> {
    Ok(cast(column, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// A value of a column of this type as SQL writes it, or the number if the type does not have it.
pub(crate) fn written(value: i64, data_type: &DataType) -> String {
    let number: ArrayRef = Arc::new(Int64Array::from(vec![value]));
    let number = match data_type {
        DataType::Date32 => cast(&number, &DataType::Int32),
        _ => Ok(number),
    };
    let array = number.and_then(|number| cast(&number, data_type));
    let text = array.ok().filter(|array| array.is_valid(0)).and_then(|array| printed(&array, 0));
    text.unwrap_or_else(|| value.to_string())
}

fn printed(values: &ArrayRef, row: usize) -> Option<String> {
    let options = FormatOptions::default();
    ArrayFormatter::try_new(values, &options).ok()?.value(row).try_to_string().ok()
}

#[cfg(test)]
mod tests {
    use arrow::array::{Date32Array, TimestampMicrosecondArray};
    use arrow::datatypes::TimeUnit;

    use super::*;

    #[test]
    fn rows_below_a_bound_are_late_and_null_never_is() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(5), Some(9)]));
        let dates: ArrayRef = Arc::new(Date32Array::from(vec![Some(3), Some(2), None, Some(1)]));
        let columns = [numbers, dates];
        let late = |bounds: &[(usize, i64)]| {
            let bounds = Bounds::new(bounds.iter().copied()).unwrap();
            let late = bounds.late(&columns).unwrap();
            late.map(|late| late.iter().map(|late| late.unwrap()).collect::<Vec<_>>())
        };
        assert_eq!(late(&[(0, 1), (1, 1)]), None);
        assert_eq!(late(&[(0, 5)]), Some(vec![true, false, false, false]));
        assert_eq!(late(&[(0, 5), (1, 2)]), Some(vec![true, false, false, true]));
        assert_eq!(late(&[(0, i64::MIN), (1, i64::MAX)]), Some(vec![true, true, false, true]));
        assert!(Bounds::new([]).is_none());
    }

    #[test]
    fn values_are_written_as_in_sql_or_as_numbers() {
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert_eq!(written(0, &timestamp), "1970-01-01T00:00:00");
        assert_eq!(written(i64::MIN, &timestamp), i64::MIN.to_string());
        assert_eq!(written(-1, &DataType::Date32), "1969-12-31");
        assert_eq!(written(1 << 40, &DataType::Date32), (1_u64 << 40).to_string());
        assert_eq!(written(-40_000, &DataType::Int16), "-40000");
        let values: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1_500_000]));
        assert_eq!(integers(&values).unwrap().value(0), 1_500_000);
    }
}
