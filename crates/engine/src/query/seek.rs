//! From filters to the keys that a scan reads.
//!
//! A filter counts if it compares a column of the key with constants. Filters are evaluated again above the scan, so
//! the ranges may hold more rows than the filters leave, but never fewer.

use std::fmt;

use alluvium_dataflow::rows::layout::Layout;
use alluvium_dataflow::state::key_ranges::{KeyBound, KeyCondition, KeyEncoder, KeyRanges};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{InList, Placeholder};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use datafusion::scalar::ScalarValue;

/// The ranges of keys that a scan reads.
#[derive(Clone)]
pub(super) struct Seek {
    pub(super) ranges: KeyRanges,
    /// The conditions on the first columns of the key.
    pub(super) conditions: Vec<KeyCondition>,
    /// How many of them are one of some values.
    pub(super) equal: usize,
    /// The columns that filters restrict.
    names: String,
}

impl fmt::Display for Seek {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "seek=[{}], ranges={}", self.names, self.ranges.len())
    }
}

/// The values of one column that a filter leaves.
enum Values {
    /// One of these; none of them is NULL, unless NULL is wanted.
    In(Vec<ScalarValue>),
    /// Between these, and not NULL. The flag says whether the bound itself is within.
    Between(Option<(ScalarValue, bool)>, Option<(ScalarValue, bool)>),
}

/// The keys of the rows that filters leave, those that have NULL in the next column of the key apart: `conditions` restrict all
/// columns before it, each to one value. `None` if they do not.
pub(super) fn nulls_apart(
    conditions: &[KeyCondition],
    layout: &Layout,
) -> Result<Option<[KeyRanges; 2]>> {
    let is_one = |condition: &KeyCondition| matches!(condition, KeyCondition::In(values) if values.len() == 1);
    let Some(&next) = layout.sorted_by().get(conditions.len()) else { return Ok(None) };
    if !conditions.iter().all(is_one) {
        return Ok(None);
    }
    let null = arrow::array::new_null_array(layout.schema().field(next).data_type(), 1);
    let encoder = KeyEncoder::new(layout).map_err(external)?;
    let ranges = |next| encoder.ranges(&[conditions, &[next]].concat()).map_err(external);
    let others = ranges(KeyCondition::Between(None, None))?;
    Ok(Some([others, ranges(KeyCondition::In(null))?]))
}

impl Seek {
    /// The keys that filters leave in arrangements of this layout; `None` if they leave all.
    pub(super) fn new(filters: &[Expr], layout: &Layout) -> Result<Option<Self>> {
        let key = layout.sorted_by();
        let mut left: Vec<Option<Values>> = key.iter().map(|_| None).collect();
        for filter in filters.iter().flat_map(|filter| split_conjunction(filter)) {
            if let Some((column, values)) = values(filter, layout.schema())
                && let Some(place) = key.iter().position(|&key| key == column)
            {
                left[place] = Some(match left[place].take() {
                    Some(before) => before.and(values),
                    None => values,
                });
            }
        }
        let mut conditions = Vec::new();
        for values in left.into_iter().map_while(|values| values) {
            let is_last = matches!(values, Values::Between(..));
            let place = conditions.len();
            conditions.push(values.compiled(layout.schema().field(key[place]).data_type())?);
            if is_last {
                break;
            }
        }
        if conditions.is_empty() {
            return Ok(None);
        }
        let encoder = KeyEncoder::new(layout).map_err(external)?;
        let ranges = encoder.ranges(&conditions).map_err(external)?;
        let names: Vec<&str> = key[..conditions.len()]
            .iter()
            .map(|&column| layout.schema().field(column).name().as_str())
            .collect();
        let is_equal = |condition: &&KeyCondition| matches!(condition, KeyCondition::In(_));
        let equal = conditions.iter().take_while(is_equal).count();
        let names = names.join(", ");
        Ok(Some(Self { ranges, conditions, equal, names }))
    }
}

fn external(error: alluvium_dataflow::rows::codec::CodecError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl Values {
    /// Values that satisfy both, and maybe more.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::In(one), Self::In(other)) => {
                Self::In(if one.len() <= other.len() { one } else { other })
            }
            (Self::In(values), Self::Between(..)) | (Self::Between(..), Self::In(values)) => {
                Self::In(values)
            }
            (Self::Between(low, high), Self::Between(other_low, other_high)) => {
                Self::Between(low.or(other_low), high.or(other_high))
            }
        }
    }

    /// The condition on a column of this type.
    fn compiled(self, data_type: &DataType) -> Result<KeyCondition> {
        let is_float = matches!(data_type, DataType::Float32 | DataType::Float64);
        let bound = |bound: Option<(ScalarValue, bool)>| -> Result<Option<KeyBound>> {
            let Some((value, is_inclusive)) = bound else { return Ok(None) };
            // Of -0.0 and 0.0, which are one key, a comparison may leave one.
            let is_inclusive = is_inclusive || is_float;
            Ok(Some(KeyBound { value: value.to_array()?, is_inclusive }))
        };
        Ok(match self {
            Self::In(values) if values.is_empty() => {
                KeyCondition::In(arrow::array::new_empty_array(data_type))
            }
            Self::In(values) => KeyCondition::In(ScalarValue::iter_to_array(values)?),
            Self::Between(low, high) => KeyCondition::Between(bound(low)?, bound(high)?),
        })
    }
}

/// Whether a filter compares a column with constants, so that it can be part of a seek.
pub(super) fn is_seekable(filter: &Expr, schema: &SchemaRef) -> bool {
    values(filter, schema).is_some()
}

/// Whether a filter restricts the keys of rows that are sorted by the columns `key`.
pub(super) fn is_on_key(filter: &Expr, schema: &SchemaRef, key: &[usize]) -> bool {
    !key.is_empty()
        && split_conjunction(filter)
            .into_iter()
            .any(|part| values(part, schema).is_some_and(|(column, _)| key.contains(&column)))
}

/// Whether values of this type compare as their keys do, but for the signs of zeros.
pub(super) fn is_comparable(data_type: &DataType) -> bool {
    data_type.is_integer()
        || data_type.is_decimal()
        || matches!(
            data_type,
            DataType::Boolean
                | DataType::Float32
                | DataType::Float64
                | DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
                | DataType::FixedSizeBinary(_)
                | DataType::Date32
                | DataType::Date64
                | DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Timestamp(..)
        )
}

/// The column that a filter compares with constants of its own type, and the values that it leaves.
fn values(filter: &Expr, schema: &SchemaRef) -> Option<(usize, Values)> {
    let constant = |column: usize, expr: &Expr| match expr {
        Expr::Literal(value, _) if value.data_type() == *schema.field(column).data_type() => {
            Some(value.clone())
        }
        // A constant, whose value is there before rows are sought.
        Expr::Placeholder(Placeholder { field: Some(field), .. })
            if field.data_type() == schema.field(column).data_type() =>
        {
            ScalarValue::try_from(field.data_type()).ok()
        }
        _ => None,
    };
    match filter {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => one_of(filter, schema),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (column, op, value) = match (column_of(left, schema), column_of(right, schema)) {
                (Some(column), None) => (column, *op, constant(column, right)?),
                (None, Some(column)) => (column, op.swap()?, constant(column, left)?),
                _ => return None,
            };
            compared(op, value).map(|values| (column, values))
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let column = column_of(expr, schema)?;
            let (low, high) = (constant(column, low)?, constant(column, high)?);
            let (low, high) = (compared(Operator::GtEq, low)?, compared(Operator::LtEq, high)?);
            Some((column, low.and(high)))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let column = column_of(expr, schema)?;
            let values: Option<Vec<_>> = list.iter().map(|value| constant(column, value)).collect();
            // NULL equals nothing.
            let values = values?.into_iter().filter(|value| !value.is_null()).collect();
            Some((column, Values::In(values)))
        }
        Expr::IsNull(expr) => {
            let column = column_of(expr, schema)?;
            let null = ScalarValue::try_from(schema.field(column).data_type()).ok()?;
            Some((column, Values::In(vec![null])))
        }
        Expr::IsNotNull(expr) => Some((column_of(expr, schema)?, Values::Between(None, None))),
        Expr::Not(expr) => boolean(expr, false, schema),
        filter => boolean(filter, true, schema),
    }
}

/// The values that one of several filters leaves, if all of them compare one column for equality.
fn one_of(filters: &Expr, schema: &SchemaRef) -> Option<(usize, Values)> {
    let mut all: Option<(usize, Vec<ScalarValue>)> = None;
    // Not by recursion: there may be thousands.
    let mut waiting = vec![filters];
    while let Some(filter) = waiting.pop() {
        if let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) = filter {
            waiting.extend([left.as_ref(), right.as_ref()]);
            continue;
        }
        let (column, Values::In(values)) = values(filter, schema)? else { return None };
        match &mut all {
            None => all = Some((column, values)),
            Some((known, all)) if *known == column => all.extend(values),
            Some(_) => return None,
        }
    }
    all.map(|(column, values)| (column, Values::In(values)))
}

/// The values for which a comparison with a constant is true.
fn compared(op: Operator, value: ScalarValue) -> Option<Values> {
    let is_comparison =
        matches!(op, Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq);
    if is_comparison && value.is_null() {
        return Some(Values::In(Vec::new()));
    }
    Some(match op {
        Operator::Eq => Values::In(vec![value]),
        Operator::Lt => Values::Between(None, Some((value, false))),
        Operator::LtEq => Values::Between(None, Some((value, true))),
        Operator::Gt => Values::Between(Some((value, false)), None),
        Operator::GtEq => Values::Between(Some((value, true)), None),
        _ => return None,
    })
}

/// A column of booleans as a filter.
fn boolean(filter: &Expr, value: bool, schema: &SchemaRef) -> Option<(usize, Values)> {
    let column = column_of(filter, schema)?;
    let is_boolean = *schema.field(column).data_type() == DataType::Boolean;
    is_boolean.then(|| (column, Values::In(vec![ScalarValue::from(value)])))
}

/// The column that an expression is, if keys of its type compare as SQL does.
fn column_of(expr: &Expr, schema: &SchemaRef) -> Option<usize> {
    let Expr::Column(column) = expr else { return None };
    let column = schema.index_of(&column.name).ok()?;
    is_comparable(schema.field(column).data_type()).then_some(column)
}
