//! Rows as plain values, independent of the database they come from.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use alluvium::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use alluvium::arrow::compute::cast;
use alluvium::arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int64Type, TimeUnit, UInt64Type,
};
use alluvium::arrow::util::display::{ArrayFormatter, FormatOptions};

/// One value of a row. All text types are one variant, and so are integers of all widths.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Null,
    Boolean(bool),
    Integer(i128),
    Float(f64),
    /// With all digits of its scale.
    Decimal(String),
    /// A date, a time, a timestamp or an interval, printed.
    Time(String),
    Text(String),
    Bytes(Vec<u8>),
}

/// The values of a row, column by column.
pub(crate) type Row = Vec<Cell>;

/// Equal if bitwise equal: -0.0 differs from 0.0, and 1.0 from 1.
impl Ord for Cell {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Cell::Null, Cell::Null) => Ordering::Equal,
            (Cell::Boolean(a), Cell::Boolean(b)) => a.cmp(b),
            (Cell::Integer(a), Cell::Integer(b)) => a.cmp(b),
            (Cell::Float(a), Cell::Float(b)) => a.total_cmp(b),
            (Cell::Decimal(a), Cell::Decimal(b)) => a.cmp(b),
            (Cell::Time(a), Cell::Time(b)) => a.cmp(b),
            (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
            (Cell::Bytes(a), Cell::Bytes(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Cell {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Cell {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Cell {}

impl Cell {
    fn rank(&self) -> u8 {
        match self {
            Cell::Null => 0,
            Cell::Boolean(_) => 1,
            Cell::Integer(_) => 2,
            Cell::Float(_) => 3,
            Cell::Decimal(_) => 4,
            Cell::Time(_) => 5,
            Cell::Text(_) => 6,
            Cell::Bytes(_) => 7,
        }
    }
}

/// As the SQL files print it.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Null => f.write_str("NULL"),
            Cell::Boolean(value) => write!(f, "{value}"),
            Cell::Integer(value) => write!(f, "{value}"),
            Cell::Float(value) => write!(f, "{value:?}"),
            Cell::Decimal(value) | Cell::Time(value) => f.write_str(value),
            Cell::Text(value) if value.is_empty() => f.write_str("(empty)"),
            Cell::Text(value) => f.write_str(value),
            Cell::Bytes(value) => {
                f.write_str("x")?;
                value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

/// All rows of some batches.
pub(crate) fn rows(batches: &[RecordBatch]) -> Vec<Row> {
    batches.iter().flat_map(rows_of).collect()
}

/// The rows of a batch.
pub(crate) fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let columns: Vec<Vec<Cell>> = batch.columns().iter().map(cells).collect();
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    (0..batch.num_rows())
        .map(|_| {
            columns
                .iter_mut()
                .map(|column| column.next().expect("columns are as long as their batch"))
                .collect()
        })
        .collect()
}

const UTC: &str = "+00:00";

/// A column without types that only encode others, and with times in UTC.
fn decoded(column: &ArrayRef) -> ArrayRef {
    let plain = match column.data_type() {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::Timestamp(unit, Some(zone)) if **zone != *UTC => {
            DataType::Timestamp(*unit, Some(UTC.into()))
        }
        _ => return Arc::clone(column),
    };
    decoded(&cast(column, &plain).expect("a cast to what a type encodes"))
}

fn cells(column: &ArrayRef) -> Vec<Cell> {
    let column = &decoded(column);
    let converted =
        |data_type| cast(column, &data_type).expect("a cast to the widest type of its kind");
    let value: Box<dyn Fn(usize) -> Cell> = match column.data_type() {
        DataType::Null => Box::new(|_| Cell::Null),
        DataType::Boolean => {
            let values = column.as_boolean().clone();
            Box::new(move |row| Cell::Boolean(values.value(row)))
        }
        DataType::UInt64 => {
            let values = column.as_primitive::<UInt64Type>().clone();
            Box::new(move |row| Cell::Integer(values.value(row).into()))
        }
        integer if integer.is_integer() => {
            let values = converted(DataType::Int64).as_primitive::<Int64Type>().clone();
            Box::new(move |row| Cell::Integer(values.value(row).into()))
        }
        DataType::Float32 => {
            // Converted through its shortest decimal representation, so that 0.1 stays 0.1.
            let values = column.as_primitive::<Float32Type>().clone();
            Box::new(move |row| {
                Cell::Float(
                    format!("{:?}", values.value(row)).parse().expect("a printed float parses"),
                )
            })
        }
        DataType::Float64 => {
            let values = column.as_primitive::<Float64Type>().clone();
            Box::new(move |row| Cell::Float(values.value(row)))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let values = converted(DataType::Utf8).as_string::<i32>().clone();
            Box::new(move |row| Cell::Text(values.value(row).to_owned()))
        }
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => {
            let values = converted(DataType::Binary).as_binary::<i32>().clone();
            Box::new(move |row| Cell::Bytes(values.value(row).to_vec()))
        }
        other => {
            let decimal = other.is_decimal();
            let printed = printed(column);
            Box::new(move |row| {
                let text = printed[row].clone();
                if decimal { Cell::Decimal(text) } else { Cell::Time(text) }
            })
        }
    };
    (0..column.len()).map(|row| if column.is_null(row) { Cell::Null } else { value(row) }).collect()
}

fn printed(column: &ArrayRef) -> Vec<String> {
    let options = FormatOptions::default()
        .with_null("NULL")
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.fZ"));
    let formatter =
        ArrayFormatter::try_new(column, &options).expect("every scalar type can be printed");
    (0..column.len()).map(|row| formatter.value(row).to_string()).collect()
}

/// A row as one line of text.
pub(crate) fn line(row: &Row) -> String {
    row.iter().map(Cell::to_string).collect::<Vec<_>>().join(" ")
}
