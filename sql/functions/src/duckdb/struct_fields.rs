//! Structs made of structs, and their fields by place and by value.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray, StringArray, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{cast, is_null, nullif};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion_common::{Result, ScalarValue, internal_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::plain::{Plain, wrong_number};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let texts = |_: &[DataType]| DataType::new_list(DataType::Utf8, true);
    let of_all = |types: &[DataType]| DataType::Struct(joined(types));
    let unnamed = |types: &[DataType]| DataType::Struct(by_place(&types[0]));
    let position = ["struct_position", "struct_indexof"];
    let contains = ["struct_contains", "struct_has"];
    vec![
        Plain::function(&["struct_concat"], structs, of_all, concat),
        Plain::function(&["struct_update"], two_structs, of_all, concat),
        Arc::new(ScalarUDF::from(FieldAt {
            signature: Signature::user_defined(Volatility::Immutable),
        })),
        Plain::function(&["struct_keys"], one_struct, texts, keys),
        Plain::function(&["struct_values"], one_struct, unnamed, values),
        Plain::function(
            &contains,
            with_value,
            |_| DataType::Boolean,
            |of| {
                let places = places(of)?;
                let nulls = [0, 1].map(|place| of[place].logical_nulls());
                let valid = NullBuffer::union(nulls[0].as_ref(), nulls[1].as_ref());
                Ok(Arc::new(BooleanArray::new(
                    places.iter().map(|at| at.is_some()).collect(),
                    valid,
                )))
            },
        ),
        Plain::function(&position, with_value, |_| DataType::Int64, |of| Ok(Arc::new(places(of)?))),
    ]
}

fn fields(kind: &DataType) -> Result<&Fields> {
    match kind {
        DataType::Struct(fields) => Ok(fields),
        other => plan_err!("a struct is expected, not {other}"),
    }
}

/// Structs without a name in common.
fn structs(arguments: &[DataType]) -> Result<Vec<DataType>> {
    if arguments.is_empty() {
        return wrong_number(1, 100, 0);
    }
    let mut names = std::collections::HashSet::new();
    for argument in arguments {
        for field in fields(argument)? {
            if !names.insert(field.name()) {
                return plan_err!("two of the structs have a field \"{}\"", field.name());
            }
        }
    }
    Ok(arguments.to_vec())
}

fn two_structs(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [one, two] = arguments else { return wrong_number(2, 2, arguments.len()) };
    fields(one)?;
    fields(two)?;
    Ok(arguments.to_vec())
}

fn one_struct(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [one] = arguments else { return wrong_number(1, 1, arguments.len()) };
    fields(one)?;
    Ok(arguments.to_vec())
}

/// A struct, and a value of a type that one of its fields has or can be compared with.
fn with_value(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [one, value] = arguments else { return wrong_number(2, 2, arguments.len()) };
    fields(one)?;
    Ok(vec![one.clone(), value.clone()])
}

/// The fields of all of these types; of one name, the last one at the place of the first.
fn joined(types: &[DataType]) -> Fields {
    let mut all: Vec<Arc<Field>> = Vec::new();
    for field in types.iter().filter_map(|kind| fields(kind).ok()).flatten() {
        let field = Arc::new(Field::clone(field).with_nullable(true));
        match all.iter().position(|known| known.name() == field.name()) {
            Some(place) => all[place] = field,
            None => all.push(field),
        }
    }
    all.into()
}

/// The fields under the names that those of `row()` have.
fn by_place(kind: &DataType) -> Fields {
    let fields = fields(kind).into_iter().flatten().enumerate();
    fields
        .map(|(place, field)| {
            Arc::new(Field::new(format!("c{place}"), field.data_type().clone(), true))
        })
        .collect()
}

/// A field as a column of its own, which is NULL where the struct is.
fn column(of: &StructArray, place: usize) -> Result<ArrayRef> {
    match of.nulls() {
        None => Ok(Arc::clone(of.column(place))),
        Some(_) => Ok(nullif(of.column(place), &is_null(of)?)?),
    }
}

/// The fields of all structs, which are NULL where the struct is.
fn concat(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let types: Vec<_> = arguments.iter().map(|of| of.data_type().clone()).collect();
    let all = joined(&types);
    let mut columns = Vec::with_capacity(all.len());
    for field in &all {
        for of in arguments.iter().rev().map(|of| of.as_struct()) {
            let place = of.fields().iter().position(|known| known.name() == field.name());
            if let Some(place) = place {
                columns.push(column(of, place)?);
                break;
            }
        }
    }
    Ok(Arc::new(StructArray::try_new_with_length(all, columns, None, arguments[0].len())?))
}

fn keys(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let of = arguments[0].as_struct();
    let names: Vec<&str> = of.fields().iter().map(|field| field.name().as_str()).collect();
    let offsets = OffsetBuffer::from_repeated_length(names.len(), of.len());
    let names = std::iter::repeat_n(names, of.len()).flatten();
    let names = Arc::new(names.map(Some).collect::<StringArray>());
    let name = Arc::new(Field::new_list_field(DataType::Utf8, true));
    Ok(Arc::new(ListArray::try_new(name, offsets, names, of.nulls().cloned())?))
}

fn values(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let of = arguments[0].as_struct();
    let (columns, nulls) = (of.columns().to_vec(), of.nulls().cloned());
    let fields = by_place(of.data_type());
    Ok(Arc::new(StructArray::try_new_with_length(fields, columns, nulls, of.len())?))
}

/// The first place, counted from one, at which each struct has the value.
fn places(arguments: &[ArrayRef]) -> Result<Int64Array> {
    let (of, value) = (arguments[0].as_struct(), &arguments[1]);
    let mut places = vec![None; of.len()];
    for place in 0..of.num_columns() {
        let field = column(of, place)?;
        // A value that cannot be read as the type of a field is not in it.
        let Ok(value) = cast(value, field.data_type()) else { continue };
        let Ok(equal) = not_distinct(&field, &value) else { continue };
        for (row, found) in places.iter_mut().enumerate() {
            if found.is_none() && of.is_valid(row) && equal.value(row) {
                *found = Some(place as i64 + 1);
            }
        }
    }
    Ok(places.into_iter().collect())
}

/// `struct_extract_at(s, n)`: the field at a constant place, counted from one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FieldAt {
    signature: Signature,
}

impl FieldAt {
    /// The place of the field, counted from zero.
    fn place(of: &Fields, number: Option<&ScalarValue>) -> Result<usize> {
        let number = number.and_then(|number| number.cast_to(&DataType::UInt64).ok());
        match number {
            Some(ScalarValue::UInt64(Some(number))) if (1..=of.len() as u64).contains(&number) => {
                // There are fewer fields than a place counts.
                Ok(number as usize - 1)
            }
            _ => plan_err!("the place of a field is a constant from 1 to {}", of.len()),
        }
    }
}

impl ScalarUDFImpl for FieldAt {
    fn name(&self) -> &str {
        "struct_extract_at"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [one, place] = arguments else { return wrong_number(2, 2, arguments.len()) };
        fields(one)?;
        match place.is_integer() {
            true => Ok(arguments.to_vec()),
            false => plan_err!("the place of a field is an integer, not {place}"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type is that of the field")
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let of = fields(arguments.arg_fields[0].data_type())?;
        let place = Self::place(of, arguments.scalar_arguments.get(1).copied().flatten())?;
        Ok(Arc::new(Field::new(self.name(), of[place].data_type().clone(), true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [of, ColumnarValue::Scalar(number)] = &arguments.args[..] else {
            return plan_err!("the place of a field is a constant");
        };
        let is_scalar = matches!(of, ColumnarValue::Scalar(_));
        let of = of.to_array(if is_scalar { 1 } else { arguments.number_rows })?;
        let of = of.as_struct();
        let field = column(of, Self::place(of.fields(), Some(number))?)?;
        match is_scalar {
            true => ScalarValue::try_from_array(&field, 0).map(ColumnarValue::Scalar),
            false => Ok(ColumnarValue::Array(field)),
        }
    }
}
