//! How a row is cut into the key and the value of an arrangement.

use std::fmt;

use alluvium_trace::BoundColumn;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, SchemaRef};

use crate::rows::codec::{CodecError, Encoded, KeyCodec, ValueCodec, has_floats};

/// Which columns of a row are its key, which its value, and how each is encoded.
///
/// A column that can be read back from the key is not repeated in the value. A float cannot be read back: as a
/// key -0.0 equals 0.0 and all NaN are one, while values keep their bits.
#[derive(Clone, Debug)]
pub struct Layout {
    schema: SchemaRef,
    key: KeyPart,
    key_columns: Vec<usize>,
    value: ValueCodec,
    value_columns: Vec<usize>,
    places: Vec<Place>,
}

#[derive(Clone, Debug)]
enum KeyPart {
    /// Bytes that sort as SQL does.
    Sorted(KeyCodec),
    /// Bytes that tell rows apart and sort somehow.
    Dense(ValueCodec),
    /// One column in bytes that sort as SQL does, and then all others in bytes that tell rows apart.
    Led(Led),
}

/// The least bytes of a column that a key begins with: four, and the one for NULL. Rows do not come in the order of smaller numbers.
const LEAST_LED: usize = 5;

/// A key that begins with one of its columns.
#[derive(Clone, Debug)]
struct Led {
    /// The number of the column.
    column: usize,
    first: KeyCodec,
    /// How many bytes it has.
    width: usize,
    others: ValueCodec,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Key(usize),
    Value(usize),
}

impl Layout {
    /// Rows of `schema` under the columns `keys`, in SQL order; all else, and floats, in the value.
    pub fn keyed(schema: SchemaRef, keys: &[usize]) -> Result<Self, CodecError> {
        let key = KeyPart::Sorted(KeyCodec::new(&types_of(&schema, keys))?);
        Self::assign(schema, keys, key, |data_type| !has_floats(data_type))
    }

    /// Rows of `schema` grouped by the columns `keys`: floats among them are read back canonical.
    pub fn grouped(schema: SchemaRef, keys: &[usize]) -> Result<Self, CodecError> {
        let key = KeyPart::Sorted(KeyCodec::new(&types_of(&schema, keys))?);
        Self::assign(schema, keys, key, |_| true)
    }

    /// Whole rows as keys, in SQL order, for which equal rows are one: floats are canonical.
    pub fn distinct(schema: SchemaRef) -> Result<Self, CodecError> {
        let all = all_columns(&schema);
        Self::grouped(schema, &all)
    }

    /// Whole rows as keys that keep their bits and sort somehow; the value is empty.
    pub fn rows(schema: SchemaRef) -> Result<Self, CodecError> {
        let all = all_columns(&schema);
        Self::dense(schema, &all)
    }

    /// As [`Layout::rows`], sorted first by a time, or else by a number, if there is one. Rows mostly arrive in the order of these:
    /// then few are compared by anything else, and merges move whole pages.
    pub(crate) fn rows_by_arrival(schema: SchemaRef) -> Result<Self, CodecError> {
        let first = |&column: &usize| -> Option<(usize, KeyCodec, usize)> {
            let first = KeyCodec::new(&types_of(&schema, &[column])).ok()?;
            let width = first.length().filter(|width| *width >= LEAST_LED)?;
            Some((column, first, width))
        };
        let is_time =
            |column: &usize| matches!(schema.field(*column).data_type(), DataType::Timestamp(..));
        let all = all_columns(&schema);
        let times = all.iter().filter(|column| is_time(column));
        let Some((column, first, width)) = times.chain(&all).find_map(first) else {
            return Self::rows(schema);
        };
        let others: Vec<usize> = all.iter().copied().filter(|other| *other != column).collect();
        let key = KeyPart::Led(Led {
            column,
            first,
            width,
            others: ValueCodec::new(&types_of(&schema, &others))?,
        });
        Self::assign(schema, &all, key, |_| true)
    }

    /// Rows of `schema` under the columns `keys`, which keep their bits and sort somehow.
    pub fn dense(schema: SchemaRef, keys: &[usize]) -> Result<Self, CodecError> {
        let key = KeyPart::Dense(ValueCodec::new(&types_of(&schema, keys))?);
        Self::assign(schema, keys, key, |_| true)
    }

    fn assign(
        schema: SchemaRef,
        keys: &[usize],
        key: KeyPart,
        readable: impl Fn(&DataType) -> bool,
    ) -> Result<Self, CodecError> {
        let mut value_columns = Vec::new();
        let places = (0..schema.fields().len())
            .map(|column| match keys.iter().position(|&key| key == column) {
                Some(place) if readable(schema.field(column).data_type()) => Place::Key(place),
                _ => {
                    value_columns.push(column);
                    Place::Value(value_columns.len() - 1)
                }
            })
            .collect();
        Ok(Self {
            key,
            key_columns: keys.to_vec(),
            value: ValueCodec::new(&types_of(&schema, &value_columns))?,
            value_columns,
            places,
            schema,
        })
    }

    /// The columns of a row.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Where a column lies in the bytes of every row, if it is an integer, a date or a time and lies at the same place in all.
    pub fn bound_column(&self, column: usize) -> Option<BoundColumn> {
        match (self.places[column], &self.key) {
            (Place::Key(place), KeyPart::Sorted(codec)) => codec.bound_column(place),
            (Place::Key(_), KeyPart::Dense(_) | KeyPart::Led(_)) => None,
            (Place::Value(place), _) => self.value.bound_column(place),
        }
    }

    /// The number of columns that are the key.
    pub(crate) fn key_width(&self) -> usize {
        self.key_columns.len()
    }

    /// The columns that rows are sorted by, in SQL order with NULLs first; none if rows sort somehow.
    pub fn sorted_by(&self) -> &[usize] {
        match self.key {
            KeyPart::Sorted(_) => &self.key_columns,
            KeyPart::Dense(_) | KeyPart::Led(_) => &[],
        }
    }

    /// The names of the columns that are the key, in its order.
    pub fn key_names(&self) -> String {
        let name = |&column: &usize| self.schema.field(column).name().as_str();
        self.key_columns.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// Appends the key and the value of each row.
    ///
    /// Panics if the columns are not those of the schema.
    pub fn encode(&self, rows: &RecordBatch, keys: &mut Encoded, values: &mut Encoded) {
        self.encode_keys(rows, keys);
        self.encode_values_of(rows, values);
    }

    /// Appends the key of each row.
    ///
    /// Panics as [`Layout::encode`] does.
    pub(crate) fn encode_keys(&self, rows: &RecordBatch, keys: &mut Encoded) {
        let before = keys.len();
        let columns = pick(rows, &self.key_columns);
        matching(match &self.key {
            KeyPart::Sorted(codec) => codec.encode(&columns, rows.num_rows(), keys),
            KeyPart::Dense(codec) => codec.encode(&columns, rows.num_rows(), keys),
            KeyPart::Led(led) => led.encode(columns, rows.num_rows(), keys),
        });
        debug_assert_eq!(keys.len() - before, rows.num_rows());
    }

    /// Appends the value of each row.
    ///
    /// Panics as [`Layout::encode`] does.
    pub(crate) fn encode_values_of(&self, rows: &RecordBatch, values: &mut Encoded) {
        self.encode_values(&pick(rows, &self.value_columns), rows.num_rows(), values);
    }

    /// The columns that are not read from the key.
    pub fn value_columns(&self) -> &[usize] {
        &self.value_columns
    }

    /// The columns of a key, floats canonical.
    ///
    /// Panics as [`Layout::decode`] does.
    pub(crate) fn decode_key(&self, key: &[u8]) -> RecordBatch {
        let columns = encoded_here(match &self.key {
            KeyPart::Sorted(codec) => codec.decode([key]),
            KeyPart::Dense(codec) => {
                codec.decode([key], &(0..self.key_columns.len()).collect::<Vec<_>>())
            }
            KeyPart::Led(led) => led.decode([key], &self.key_columns),
        });
        assemble(project(&self.schema, &self.key_columns), columns, 1)
    }

    /// Appends the values of `rows` rows, given the columns that are not read from the key.
    ///
    /// Panics if these are not [`Layout::value_columns`].
    pub fn encode_values(&self, columns: &[ArrayRef], rows: usize, values: &mut Encoded) {
        matching(self.value.encode(columns, rows, values));
    }

    /// The columns `columns` of the rows whose keys and values these are.
    ///
    /// Panics if the bytes were not encoded with the same layout. Files are checked when they are read, so other bytes
    /// can only come from a defect.
    pub fn decode<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a [u8]>,
        values: impl IntoIterator<Item = &'a [u8]>,
        columns: &[usize],
    ) -> Vec<ArrayRef> {
        let mut of_key = Vec::new();
        let mut of_value = Vec::new();
        for &column in columns {
            match self.places[column] {
                Place::Key(place) => of_key.push(place),
                Place::Value(place) => of_value.push(place),
            }
        }
        let mut from_key = match &self.key {
            _ if of_key.is_empty() => Vec::new(),
            KeyPart::Dense(codec) => encoded_here(codec.decode(keys, &of_key)),
            KeyPart::Led(led) => encoded_here(led.decode(keys, &of_key)),
            KeyPart::Sorted(codec) => {
                let all = encoded_here(codec.decode(keys));
                of_key.iter().map(|&place| all[place].clone()).collect()
            }
        }
        .into_iter();
        let mut from_value = match of_value.is_empty() {
            true => Vec::new(),
            false => encoded_here(self.value.decode(values, &of_value)),
        }
        .into_iter();
        columns
            .iter()
            .map(|&column| match self.places[column] {
                Place::Key(_) => from_key.next(),
                Place::Value(_) => from_value.next(),
            })
            .map(|column| column.expect("a codec returns each column it is asked for"))
            .collect()
    }

    /// As [`Layout::decode`], with the names of the columns.
    pub fn decode_batch(&self, keys: &Encoded, values: &Encoded, columns: &[usize]) -> RecordBatch {
        let arrays = self.decode(keys.iter(), values.iter(), columns);
        assemble(project(&self.schema, columns), arrays, keys.len())
    }
}

impl Led {
    /// Appends the keys of rows of these columns.
    fn encode(
        &self,
        mut columns: Vec<ArrayRef>,
        rows: usize,
        keys: &mut Encoded,
    ) -> Result<(), CodecError> {
        let mut firsts = Encoded::new();
        self.first.encode(&[columns.remove(self.column)], rows, &mut firsts)?;
        let start = keys.len();
        self.others.encode_behind(self.width, &columns, rows, keys)?;
        for (row, first) in firsts.iter().enumerate() {
            keys.overwrite(start + row, first);
        }
        Ok(())
    }

    /// The columns `columns` of keys.
    fn decode<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a [u8]>,
        columns: &[usize],
    ) -> Result<Vec<ArrayRef>, CodecError> {
        let keys: Vec<&[u8]> = keys.into_iter().collect();
        if keys.iter().any(|key| key.len() < self.width) {
            return Err(CodecError::Corrupt("a key is shorter than its first column"));
        }
        let others: Vec<usize> = columns
            .iter()
            .filter(|column| **column != self.column)
            .map(|&column| if column < self.column { column } else { column - 1 })
            .collect();
        let behind = keys.iter().map(|key| &key[self.width..]);
        let mut others = self.others.decode(behind, &others)?.into_iter();
        let first = match columns.contains(&self.column) {
            true => self.first.decode(keys.iter().map(|key| &key[..self.width]))?,
            false => Vec::new(),
        };
        let column = |column: &usize| match *column == self.column {
            true => first.first().cloned(),
            false => others.next(),
        };
        let missing = CodecError::Corrupt("a column is missing");
        columns.iter().map(column).collect::<Option<_>>().ok_or(missing)
    }
}

/// The meaning of the bytes: the columns of the key and of the value with their types. Two layouts are interchangeable
/// exactly if these texts are equal.
impl fmt::Display for Layout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            KeyPart::Sorted(_) => write!(formatter, "sorted(")?,
            KeyPart::Dense(_) => write!(formatter, "dense(")?,
            KeyPart::Led(led) => write!(formatter, "dense by {}(", led.column)?,
        }
        let column = |formatter: &mut fmt::Formatter<'_>, column: usize| {
            let data_type = self.schema.field(column).data_type();
            let source = match self.places[column] {
                Place::Key(_) => "key",
                Place::Value(_) => "value",
            };
            write!(formatter, " {column}:{data_type}:{source}")
        };
        self.key_columns.iter().try_for_each(|&key| column(formatter, key))?;
        write!(formatter, " |")?;
        self.value_columns.iter().try_for_each(|&value| column(formatter, value))?;
        write!(formatter, " )")
    }
}

/// The columns `columns` of the rows.
fn pick(rows: &RecordBatch, columns: &[usize]) -> Vec<ArrayRef> {
    columns.iter().map(|&column| rows.column(column).clone()).collect()
}

/// Rows that were encoded: a layout encodes only rows of its own schema.
fn matching(encoded: Result<(), CodecError>) {
    encoded.expect("rows have the types their layout was made for");
}

/// Rows that were decoded: a layout decodes only what it encoded.
pub(crate) fn encoded_here<T>(decoded: Result<T, CodecError>) -> T {
    decoded.expect("a batch holds what its layout encoded")
}

/// The numbers of all columns of `schema`.
pub fn all_columns(schema: &SchemaRef) -> Vec<usize> {
    (0..schema.fields().len()).collect()
}

/// A schema of the columns `columns` of `schema`.
pub fn project(schema: &SchemaRef, columns: &[usize]) -> SchemaRef {
    if columns.iter().copied().eq(0..schema.fields().len()) {
        return schema.clone();
    }
    std::sync::Arc::new(schema.project(columns).expect("columns are of this schema"))
}

/// A record batch of `rows` rows; unlike arrow's constructor also without columns.
pub fn assemble(schema: SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> RecordBatch {
    let options =
        RecordBatchOptions::new().with_row_count(Some(rows)).with_match_field_names(false);
    RecordBatch::try_new_with_options(schema, columns, &options)
        .expect("columns are made for their schema")
}

/// The types of the columns `columns` of `schema`.
pub fn types_of(schema: &SchemaRef, columns: &[usize]) -> Vec<DataType> {
    columns.iter().map(|&column| schema.field(column).data_type().clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BooleanArray, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray,
    };
    use arrow::datatypes::{Field, Schema};

    use super::*;

    fn rows() -> RecordBatch {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("text", Arc::new(StringArray::from(vec![Some("b"), None, Some(""), Some("a")]))),
            ("number", Arc::new(Int64Array::from(vec![Some(-1), Some(7), None, Some(7)]))),
            (
                "at",
                Arc::new(TimestampMicrosecondArray::from(vec![Some(300), Some(-5), None, Some(3)])),
            ),
            ("float", Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, 1.5]))),
            ("flag", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)]))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn keys(layout: &Layout, rows: &RecordBatch) -> Encoded {
        let (mut keys, mut values) = (Encoded::new(), Encoded::new());
        // A key may follow others.
        keys.push(b"before");
        layout.encode(rows, &mut keys, &mut values);
        assert!(values.iter().all(<[u8]>::is_empty));
        keys
    }

    #[test]
    fn rows_by_arrival_are_sorted_by_a_time_or_else_a_number_and_come_back() {
        let all = rows();
        for (columns, order) in [
            (vec![0, 1, 2, 3, 4], Some([2, 1, 3, 0])),
            (vec![2], Some([2, 1, 3, 0])),
            (vec![0, 1, 3, 4], Some([2, 0, 1, 3])),
            (vec![0, 3, 4], None),
        ] {
            let rows = all.project(&columns).unwrap();
            let layout = Layout::rows_by_arrival(rows.schema()).unwrap();
            let keys = keys(&layout, &rows);
            if let Some(order) = order {
                assert!(keys.get(order[0] + 1) < keys.get(order[1] + 1));
                assert!(keys.get(order[1] + 1) < keys.get(order[2] + 1));
            }
            for wanted in [all_columns(&rows.schema()), vec![0], vec![columns.len() - 1, 0]] {
                let wanted: Vec<usize> = wanted[..wanted.len().min(columns.len())].to_vec();
                let decoded = layout.decode(keys.iter().skip(1), keys.iter().skip(1), &wanted);
                for (column, wanted) in decoded.iter().zip(wanted) {
                    // Floats keep their bits, which arrow compares.
                    assert_eq!(column.to_data(), rows.column(wanted).to_data());
                }
            }
            assert_eq!(layout.decode_key(keys.get(2)), rows.slice(1, 1));
            assert!(layout.sorted_by().is_empty());
        }
    }

    #[test]
    fn rows_by_arrival_tell_the_bits_of_floats_apart() {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, 0.0]));
        let times: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 1]));
        let rows = RecordBatch::try_from_iter([("float", floats), ("number", times)]).unwrap();
        let layout = Layout::rows_by_arrival(rows.schema()).unwrap();
        let keys = keys(&layout, &rows);
        assert_ne!(keys.get(1), keys.get(2));
        assert_eq!(keys.get(1), keys.get(3));
        let narrow = Schema::new(vec![Field::new("small", DataType::Int16, true)]);
        let narrow = Layout::rows_by_arrival(Arc::new(narrow)).unwrap();
        assert_eq!(narrow.to_string(), "dense( 0:Int16:key | )");
        assert_eq!(layout.to_string(), "dense by 1( 0:Float64:key 1:Int64:key | )");
    }
}
