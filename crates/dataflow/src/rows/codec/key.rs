//! Keys as bytes that sort.

use std::sync::Arc;

use alluvium_trace::BoundColumn;
use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow::buffer::MutableBuffer;
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use arrow_row::{RowConverter, RowParser, SortField};

use super::canonical::{canonical_floats, has_floats};
use super::fixed::{self, FixedCodec};
use super::{CodecError, Encoded, is_reversible};

/// Encodes keys so that comparing their bytes compares the keys in SQL order.
///
/// Two keys are equal exactly when their bytes are: NULL equals NULL, -0.0 equals 0.0 and all NaN
/// are equal, and come last. The bytes are those of arrow-row 59. Clones share what they hold.
#[derive(Clone, Debug)]
pub struct KeyCodec {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    types: Vec<DataType>,
    is_ascending: bool,
    way: Way,
}

/// How keys become bytes, and columns again.
#[derive(Debug)]
enum Way {
    /// Faster, with the same bytes.
    Fixed(FixedCodec),
    Any {
        converter: RowConverter,
        parser: RowParser,
        has_floats: bool,
    },
}

impl KeyCodec {
    /// A codec for keys of these column types, all ascending, NULLs first.
    ///
    /// Fails with [`CodecError::Unsupported`] for a type that cannot be decoded unchanged, and with [`CodecError::Key`] for
    /// maps: equal maps may hold their entries in another order.
    pub fn new(types: &[DataType]) -> Result<Self, CodecError> {
        let ascending = SortOptions { descending: false, nulls_first: true };
        Self::with_order(types.iter().map(|data_type| (data_type.clone(), ascending)).collect())
    }

    /// A codec for keys of these column types, each in its own direction.
    pub fn with_order(fields: Vec<(DataType, SortOptions)>) -> Result<Self, CodecError> {
        let types: Vec<DataType> = fields.iter().map(|(data_type, _)| data_type.clone()).collect();
        if let Some(data_type) = types.iter().find(|data_type| !is_reversible(data_type)) {
            return Err(CodecError::Unsupported(data_type.clone()));
        }
        if let Some(data_type) = types.iter().find(|data_type| has_maps(data_type)) {
            return Err(CodecError::Key(data_type.clone()));
        }
        let is_ascending =
            fields.iter().all(|(_, options)| !options.descending && options.nulls_first);
        let fixed = if is_ascending { FixedCodec::new(&types) } else { None };
        let way = match fixed {
            Some(fixed) => Way::Fixed(fixed),
            None => {
                let fields = fields.into_iter();
                let fields = fields
                    .map(|(data_type, options)| SortField::new_with_options(data_type, options));
                let converter = RowConverter::new(fields.collect())?;
                let parser = converter.parser();
                Way::Any { converter, parser, has_floats: types.iter().any(has_floats) }
            }
        };
        Ok(Self { inner: Arc::new(Inner { types, is_ascending, way }) })
    }

    /// The types of the columns.
    pub fn types(&self) -> &[DataType] {
        &self.inner.types
    }

    /// How many bytes every key has, if that does not depend on its values.
    pub(crate) fn length(&self) -> Option<usize> {
        match &self.inner.way {
            Way::Fixed(fixed) => Some(fixed.length()),
            Way::Any { .. } => None,
        }
    }

    /// Where a signed number lies in every key, if the columns before it have fixed widths, and NULLs come first.
    pub(crate) fn bound_column(&self, column: usize) -> Option<BoundColumn> {
        let types = &self.inner.types;
        let before: Option<Vec<usize>> = types[..column].iter().map(fixed::width).collect();
        let at = before?.into_iter().map(|width| 1 + width).sum();
        let is_signed = !types[column].is_unsigned_integer();
        let width =
            fixed::width(&types[column]).filter(|_| is_signed && self.inner.is_ascending)?;
        Some(BoundColumn::Key { at, width })
    }

    /// Where the signed number of the first column lies in every value that begins with such a key, if it is in this order.
    pub(crate) fn order_column(&self, descending: bool) -> Option<BoundColumn> {
        let first = self.inner.types.first().filter(|first| !first.is_unsigned_integer())?;
        Some(BoundColumn::Order { width: fixed::width(first)?, descending })
    }

    /// Appends the keys of the `rows` rows of `columns` to `out`.
    ///
    /// Without columns every key is the empty byte string.
    pub fn encode(
        &self,
        columns: &[ArrayRef],
        rows: usize,
        out: &mut Encoded,
    ) -> Result<(), CodecError> {
        super::check(columns, rows, &self.inner.types)?;
        if columns.is_empty() {
            out.ends.resize(out.ends.len() + rows, out.bytes.len());
            return Ok(());
        }
        let encoded = match &self.inner.way {
            Way::Fixed(fixed) => {
                fixed.encode(columns, rows, out);
                return Ok(());
            }
            Way::Any { converter, has_floats: true, .. } => {
                let canonical = columns.iter().map(canonical_floats);
                converter.convert_columns(&canonical.collect::<Result<Vec<_>, _>>()?)?
            }
            Way::Any { converter, .. } => converter.convert_columns(columns)?,
        };
        out.bytes.reserve(encoded.lengths().sum());
        out.ends.reserve(rows);
        for row in &encoded {
            out.push(row.data());
        }
        Ok(())
    }

    /// The columns of `rows`, which must have been encoded by a codec of the same types and order.
    ///
    /// Other bytes give an error, wrong columns, or a panic, and never anything undefined.
    pub fn decode<'a>(
        &self,
        rows: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Vec<ArrayRef>, CodecError> {
        match &self.inner.way {
            Way::Fixed(fixed) => fixed.decode(rows),
            Way::Any { converter, parser, .. } => {
                let columns =
                    converter.convert_rows(rows.into_iter().map(|row| parser.parse(row)))?;
                columns.into_iter().map(zero_under_nulls).collect()
            }
        }
    }
}

/// A column of fixed width with zeros where it is NULL.
///
/// arrow-row leaves the least number there, on which functions that ignore NULLs overflow.
fn zero_under_nulls(column: ArrayRef) -> Result<ArrayRef, CodecError> {
    let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
    let (Some(nulls), Some(width)) = (nulls, column.data_type().primitive_width()) else {
        return Ok(column);
    };
    let data = column.to_data();
    let held = &data.buffers()[0].as_slice()[data.offset() * width..];
    let mut values = MutableBuffer::from_len_zeroed(column.len() * width);
    for row in nulls.valid_indices() {
        let at = row * width..(row + 1) * width;
        values.as_slice_mut()[at.clone()].copy_from_slice(&held[at]);
    }
    let data = ArrayData::builder(column.data_type().clone())
        .len(column.len())
        .add_buffer(values.into())
        .nulls(Some(nulls.clone()));
    Ok(make_array(data.build()?))
}

/// Whether a map occurs in `data_type`.
pub(crate) fn has_maps(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(..) => true,
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            has_maps(field.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| has_maps(field.data_type())),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        AsArray, Decimal128Array, Decimal256Array, Float64Array, Int64Array, ListArray, StringArray,
    };
    use arrow::datatypes::{Float64Type, Int64Type, i256};

    use super::*;

    fn encode(codec: &KeyCodec, columns: &[ArrayRef]) -> Encoded {
        let mut out = Encoded::new();
        codec.encode(columns, columns[0].len(), &mut out).unwrap();
        out
    }

    #[test]
    fn bytes_sort_as_sql_does_with_nulls_first_and_nan_last() {
        let codec = KeyCodec::new(&[DataType::Float64]).unwrap();
        let ascending: ArrayRef = Arc::new(Float64Array::from(vec![
            None,
            Some(f64::NEG_INFINITY),
            Some(-1.5),
            Some(-f64::MIN_POSITIVE),
            Some(0.0),
            Some(5e-324),
            Some(2.0),
            Some(f64::INFINITY),
            Some(f64::NAN),
        ]));
        let keys = encode(&codec, &[ascending]);
        assert!(keys.iter().is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn decimals_sort_as_numbers() {
        let narrow = [i128::MIN, -10_i128.pow(37), -256, -1, 0, 1, 255, 256, i128::MAX];
        let wide = narrow.map(i256::from_i128);
        let wide = [&[i256::MIN][..], &wide, &[i256::MAX]].concat();
        let narrow: ArrayRef = Arc::new(Decimal128Array::from(narrow.to_vec()));
        let wide: ArrayRef = Arc::new(Decimal256Array::from(wide));
        for column in [narrow, wide] {
            let codec = KeyCodec::new(&[column.data_type().clone()]).unwrap();
            assert!(encode(&codec, &[column]).iter().is_sorted_by(|a, b| a < b));
        }
    }

    #[test]
    fn equal_floats_are_equal_keys_at_any_depth() {
        let nan = f64::from_bits(0xfff8_0000_0000_0001);
        let flat: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, nan]));
        let nested: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(
            [0.0, -0.0, f64::NAN, nan].map(|x| Some(vec![Some(1.0), Some(x)])),
        ));
        for column in [flat, nested] {
            let codec = KeyCodec::new(&[column.data_type().clone()]).unwrap();
            let keys = encode(&codec, &[column]);
            assert_eq!(keys.get(0), keys.get(1));
            assert_eq!(keys.get(2), keys.get(3));
            assert_ne!(keys.get(0), keys.get(2));
        }
    }

    #[test]
    fn a_descending_column_sorts_the_other_way() {
        let descending = SortOptions { descending: true, nulls_first: false };
        let codec = KeyCodec::with_order(vec![
            (DataType::Utf8, SortOptions::default()),
            (DataType::Int64, descending),
        ])
        .unwrap();
        let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "a", "a", "aa"]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(9), Some(-9), None, Some(99)]));
        let keys = encode(&codec, &[names, numbers]);
        assert!(keys.iter().is_sorted_by(|a, b| a < b));
        let back = codec.decode(keys.iter()).unwrap();
        assert_eq!(back[0].as_string::<i32>().value(3), "aa");
        assert_eq!(back[1].as_primitive::<Int64Type>().value(1), -9);
        assert!(back[1].is_null(2));
    }

    #[test]
    fn without_columns_every_key_is_empty() {
        let codec = KeyCodec::new(&[]).unwrap();
        let mut out = Encoded::new();
        codec.encode(&[], 3, &mut out).unwrap();
        assert_eq!(out.iter().collect::<Vec<_>>(), [b"", b"", b""]);
        assert!(codec.decode(out.iter()).unwrap().is_empty());
    }

    #[test]
    fn types_that_would_come_back_changed_are_refused() {
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let error = KeyCodec::new(&[dictionary]).unwrap_err().to_string();
        assert!(error.contains("Dictionary"), "{error}");
    }
}
