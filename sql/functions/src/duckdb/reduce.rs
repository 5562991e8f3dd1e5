//! `list_reduce(l, (a, x) -> …[, first])`: the elements of a list, combined one after the other.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array, new_null_array};
use arrow::compute::{cast, interleave, take, take_arrays};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_expr::type_coercion::binary::type_union_coercion;
use datafusion_expr::{
    ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature,
    HigherOrderUDF, HigherOrderUDFImpl, LambdaArgument, LambdaParametersProgress, ValueOrLambda,
    Volatility,
};

pub(crate) fn function() -> Arc<HigherOrderUDF> {
    let aliases = ["array_reduce", "reduce"].map(str::to_owned).to_vec();
    let signature = HigherOrderSignature::user_defined(Volatility::Immutable);
    Arc::new(HigherOrderUDF::new_from_impl(Reduce { aliases, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Reduce {
    aliases: Vec<String>,
    signature: HigherOrderSignature,
}

/// The type of the elements of a list, which is that of what they are combined to.
fn element(list: &DataType) -> Result<FieldRef> {
    match list {
        DataType::List(element) => {
            Ok(Arc::new(Field::new("element", element.data_type().clone(), true)))
        }
        other => plan_err!("a list is expected, not {other}"),
    }
}

impl HigherOrderUDFImpl for Reduce {
    fn name(&self) -> &str {
        "list_reduce"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn coerce_value_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (list, first) = match types {
            [list] => (list, None),
            [list, first] => (list, Some(first)),
            _ => return plan_err!("it takes a list, a lambda and perhaps a first value"),
        };
        let element = match list {
            DataType::List(element)
            | DataType::LargeList(element)
            | DataType::FixedSizeList(element, _) => element.data_type(),
            DataType::Null => &DataType::Null,
            other => return plan_err!("a list is expected, not {other}"),
        };
        // The combined values have one type.
        let common = match first {
            Some(first) if element.is_null() => first.clone(),
            Some(first) => type_union_coercion(element, first).unwrap_or_else(|| element.clone()),
            None => element.clone(),
        };
        let mut taken = vec![DataType::new_list(common.clone(), true)];
        taken.extend(first.map(|_| common));
        Ok(taken)
    }

    fn lambda_parameters(
        &self,
        _: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        match fields.first() {
            Some(ValueOrLambda::Value(list)) => {
                let element = element(list.data_type())?;
                Ok(LambdaParametersProgress::Complete(vec![vec![Arc::clone(&element), element]]))
            }
            _ => plan_err!("list_reduce takes a list, and then a lambda"),
        }
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs<'_>) -> Result<FieldRef> {
        match args.arg_fields {
            [ValueOrLambda::Value(list), ValueOrLambda::Lambda(_), ..] => element(list.data_type()),
            _ => plan_err!("list_reduce takes a list, and then a lambda"),
        }
    }

    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let [ValueOrLambda::Value(list), ValueOrLambda::Lambda(lambda), first @ ..] =
            &args.args[..]
        else {
            return exec_err!("list_reduce takes a list, and then a lambda");
        };
        let lists = list.to_array(args.number_rows)?;
        let first = match first {
            [ValueOrLambda::Value(first)] => Some(first.to_array(args.number_rows)?),
            _ => None,
        };
        reduced(lists.as_list::<i32>(), lambda, first).map(ColumnarValue::Array)
    }
}

/// Combines the first elements of all lists, then the second ones, and so on.
fn reduced(
    lists: &ListArray,
    lambda: &LambdaArgument,
    first: Option<ArrayRef>,
) -> Result<ArrayRef> {
    let kind = lists.value_type();
    let offsets = lists.value_offsets();
    // Where an element of the list of a row is among those of all lists.
    let place = |row: usize, number: usize| {
        let at = offsets[row] as usize + number;
        (lists.is_valid(row) && at < offsets[row + 1] as usize).then_some(at as u32)
    };
    let (mut combined, from) = match first {
        Some(first) => (take_valid(&first, lists)?, 0),
        None => {
            if (0..lists.len()).any(|row| lists.is_valid(row) && lists.value_length(row) == 0) {
                return exec_err!("an empty list has no first value");
            }
            let places: UInt32Array = (0..lists.len()).map(|row| place(row, 0)).collect();
            if lists.values().is_empty() {
                (new_null_array(&kind, lists.len()), 1)
            } else {
                (take(lists.values(), &places, None)?, 1)
            }
        }
    };
    for number in from.. {
        let active = (0..lists.len()).filter_map(|row| Some((row, place(row, number)?)));
        let (rows, places): (Vec<usize>, Vec<u32>) = active.unzip();
        if rows.is_empty() {
            break;
        }
        let these: UInt32Array = rows.iter().map(|row| Some(*row as u32)).collect();
        let so_far = take(&combined, &these, None)?;
        let elements = take(lists.values(), &UInt32Array::from(places), None)?;
        let next = lambda
            .evaluate(&[&|| Ok(Arc::clone(&so_far)), &|| Ok(Arc::clone(&elements))], |captured| {
                Ok(take_arrays(captured, &these, None)?)
            })?
            .into_array(rows.len())?;
        let next = cast(&next, &kind)?;
        let mut from: Vec<(usize, usize)> = (0..lists.len()).map(|row| (0, row)).collect();
        rows.iter().enumerate().for_each(|(place, row)| from[*row] = (1, place));
        combined = interleave(&[combined.as_ref(), next.as_ref()], &from)?;
    }
    Ok(combined)
}

/// The values, but NULL beside a list that is NULL.
fn take_valid(values: &ArrayRef, lists: &ListArray) -> Result<ArrayRef> {
    let rows = (0..lists.len()).map(|row| lists.is_valid(row).then_some(row as u32));
    Ok(take(values, &rows.collect::<UInt32Array>(), None)?)
}
