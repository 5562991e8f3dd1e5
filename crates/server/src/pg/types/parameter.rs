//! Parameters of statements.

use alluvium::Value;
use arrow::datatypes::DataType;

use super::arrays::array_text::ArrayText;
use super::arrays::list_builder::{Head, ListBuilder};
use super::builder::ColumnBuilder;
use super::field::Field;
use super::format::Format;
use super::numbers::decimal::Decimal;
use super::pg_type::{PgType, Scalar, item};
use super::rejected::{Rejected, Result, code};
use super::time::zone::Zone;

/// The value of a parameter for which the client has given a type by its OID, zero if none, and the engine has found one, if any.
///
/// It has the type that the client has given, and the engine casts it to the one that it has found. A number has the digits that are
/// written. A struct or a map is a text, which the engine casts. Texts without a time zone are instants in UTC.
///
/// # Errors
///
/// If the bytes are no value of the type, or its values cannot be read.
pub(crate) fn decode(
    oid: u32,
    found: Option<&DataType>,
    format: Format,
    bytes: &[u8],
) -> Result<Value> {
    let given = Some(oid).filter(|oid| ![0, Scalar::Unknown.oid()].contains(oid));
    let field = Field { format, bytes };
    let kind = match (given, found) {
        (Some(oid), _) => PgType::of_oid(oid)?,
        (None, Some(found)) => PgType::of(found),
        (None, None) => return text(field, Scalar::Unknown),
    };
    match kind.is_array() {
        true => array(kind.scalar(), found, field),
        false => scalar(kind.scalar(), field),
    }
}

fn scalar(scalar: Scalar, field: Field<'_>) -> Result<Value> {
    Ok(match scalar {
        Scalar::Bool => field.boolean()?.into(),
        Scalar::Int2 => field.integer::<i16>(scalar)?.into(),
        Scalar::Int4 => field.integer::<i32>(scalar)?.into(),
        Scalar::Int8 => field.integer::<i64>(scalar)?.into(),
        Scalar::Oid => i64::from(field.integer::<u32>(scalar)?).into(),
        Scalar::Float4 => field.float4()?.into(),
        Scalar::Float8 => field.float8()?.into(),
        Scalar::Numeric => decimal(field.decimal(None)?)?,
        Scalar::Bytea => field.blob()?.into_owned().into(),
        Scalar::Date => Value::date(field.date()?),
        Scalar::Time => Value::time(field.time()?),
        Scalar::Timestamp => Value::timestamp(field.timestamp()?),
        Scalar::Timestamptz => Value::instant(field.instant(Zone::UTC)?),
        Scalar::Interval => {
            let interval = field.interval()?;
            Value::interval(interval.months, interval.days, interval.nanoseconds)
        }
        _ => text(field, scalar)?,
    })
}

fn text(field: Field<'_>, scalar: Scalar) -> Result<Value> {
    Ok(field.string(scalar)?.into_owned().into())
}

fn decimal(number: Decimal) -> Result<Value> {
    Ok(Value::decimal(number.unscaled, number.precision(), number.scale)?)
}

/// A list of as many dimensions as the type that was found, or else as the array has.
fn array(scalar: Scalar, found: Option<&DataType>, field: Field<'_>) -> Result<Value> {
    let depth = match found.map_or(0, depth_of) {
        0 => match field.format {
            Format::Text => ArrayText::new(field.bytes)?.depth()?,
            Format::Binary => Head::read(field.bytes)?.0.dimensions.max(1),
        },
        found => found,
    };
    let mut column = ColumnBuilder::of_scalar(scalar, Zone::UTC)?;
    for _ in 0..depth {
        column = ColumnBuilder::List(Box::new(ListBuilder::new(column, None)));
    }
    column.append(field)?;
    let array = column.finish()?;
    Value::from_array(&array, 0).map_err(|error| Rejected::new(code::INTERNAL, error.to_string()))
}

/// How many lists of a type are inside each other.
fn depth_of(data_type: &DataType) -> usize {
    let mut depth = 0;
    let mut inner = data_type;
    while let Some(item) = item(inner) {
        depth += 1;
        inner = item.data_type();
    }
    depth
}
