//! `to_timestamp` and its kind, with formats that leave fields out.
//!
//! DataFusion reads `'2024-05-06 07'` in the format `'%Y-%m-%d %H'` as midnight, because a time needs minutes. Here fields
//! that a format leaves out are the least, as in PostgreSQL: the first month and day, hour, minute and second zero.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion_functions::datetime;

use super::microseconds::in_microseconds;
use super::to_char::as_format;
use crate::texts;

/// The functions that take formats.
pub(super) fn functions() -> impl Iterator<Item = Arc<ScalarUDF>> {
    let options = ConfigOptions::default();
    [
        datetime::to_timestamp(&options),
        datetime::to_timestamp_seconds(&options),
        datetime::to_timestamp_millis(&options),
        datetime::to_timestamp_micros(&options),
        datetime::to_timestamp_nanos(&options),
        datetime::to_unixtime(),
        datetime::to_date(),
    ]
    .into_iter()
    .map(move |function| {
        let seconds = datetime::to_timestamp_seconds(&options);
        let microseconds = datetime::to_timestamp_micros(&options);
        Arc::new(ScalarUDF::from(Completed { function, seconds, microseconds }))
    })
}

/// A function of a text and formats that are completed.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Completed {
    function: Arc<ScalarUDF>,
    seconds: Arc<ScalarUDF>,
    microseconds: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Completed {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(in_microseconds(&self.function.return_type(arguments)?))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = self.function.return_field_from_args(arguments)?;
        let kind = in_microseconds(field.data_type());
        Ok(Arc::new(field.as_ref().clone().with_data_type(kind)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let result = in_microseconds(arguments.return_type());
        let function = match (self.name(), arguments.args.first().map(ColumnarValue::data_type)) {
            // DataFusion's has the range of nanoseconds.
            ("to_timestamp", Some(kind)) if kind.is_integer() => &self.seconds,
            ("to_timestamp", Some(kind)) if kind.is_string() => {
                if let [text] = &arguments.args[..] {
                    return read(text, &result);
                }
                &self.microseconds
            }
            _ => &self.function,
        };
        Self::completed(function, arguments)?.cast_to(&result, None)
    }
}

/// A text without a format as a timestamp.
fn read(text: &ColumnarValue, kind: &DataType) -> Result<ColumnarValue> {
    Ok(match text {
        ColumnarValue::Array(texts) => ColumnarValue::Array(texts::read(texts, kind, false)?),
        ColumnarValue::Scalar(text) => ColumnarValue::Scalar(texts::cast_value(text, kind)?),
    })
}

impl Completed {
    /// The result of a function, whose formats are completed.
    fn completed(function: &ScalarUDF, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // Its result may have another unit than what is promised here.
        let function = function.inner();
        let is_text = |value: &ColumnarValue| {
            matches!(value.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        };
        if arguments.args.len() < 2 || !arguments.args.iter().all(is_text) {
            return function.invoke_with_args(arguments);
        }
        for format in &mut arguments.args[1..] {
            *format = mapped(format.clone(), as_format)?;
        }
        if !arguments.args[1..].iter().any(is_partial) {
            return function.invoke_with_args(arguments);
        }
        let original = arguments.clone();
        let mut values = arguments.args.into_iter();
        let texts = values.next().map(|texts| mapped(texts, |text| format!("{LEAST}{text}")));
        let formats = values.map(|format| mapped(format, completed));
        arguments.args = texts.into_iter().chain(formats).collect::<Result<_>>()?;
        // The error is that of the text as it is.
        function
            .invoke_with_args(arguments)
            .or_else(|error| function.invoke_with_args(original).and(Err(error)))
    }
}

/// The least day, month, hour, minute and second, and the first half of the day: what stands before each text.
const LEAST: &str = "01 01 00 00 00 AM ";

/// Whether a format leaves fields out that its other fields need.
fn is_partial(formats: &ColumnarValue) -> bool {
    let is_partial = |format: &str| missing(format) != [None; 6];
    match formats {
        ColumnarValue::Scalar(format) => format.try_as_str().flatten().is_some_and(is_partial),
        ColumnarValue::Array(formats) => cast(formats, &DataType::Utf8)
            .is_ok_and(|formats| formats.as_string::<i32>().iter().flatten().any(is_partial)),
    }
}

/// A format of a text that [`LEAST`] precedes: it reads the fields that it leaves out from there, and skips the others.
fn completed(format: &str) -> String {
    let mut completed = String::with_capacity(LEAST.len() + format.len());
    for (field, least) in missing(format).into_iter().zip(LEAST.split(' ')) {
        completed.push_str(field.unwrap_or(least));
        completed.push(' ');
    }
    completed.push_str(format);
    completed
}

/// The fields that a format needs and does not have, in the order of [`LEAST`].
fn missing(format: &str) -> [Option<&'static str>; 6] {
    let mut has = Vec::new();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character == '%' {
            let modifiers = |next: &char| "-_0:#.369".contains(*next);
            has.extend(characters.by_ref().find(|next| !modifiers(next)));
        }
    }
    let has = |fields: &str| has.iter().any(|&field| fields.contains(field));
    let date = has("DFxvcs+") || has("jUWVaAuwG");
    let (year, month, day) = (has("YCy"), date || has("mbBh"), date || has("de"));
    let time = has("TXrc+s");
    let (hour, half, minute) = (has("HkIlR"), has("Il"), has("MR"));
    let second = has("S");
    let needs_date = year || has("mbBh");
    let some = |is_missing: bool, field| is_missing.then_some(field);
    [
        some(needs_date && !day, "%d"),
        some(needs_date && !month, "%m"),
        some(!time && !hour && (minute || second), "%H"),
        some(!time && !minute && (hour || second), "%M"),
        None,
        some(!time && half && !has("pP"), "%p"),
    ]
}

fn mapped(value: ColumnarValue, map: impl Fn(&str) -> String) -> Result<ColumnarValue> {
    Ok(match value {
        ColumnarValue::Scalar(text) => {
            let text = text.try_as_str().flatten().map(map);
            ColumnarValue::Scalar(ScalarValue::Utf8(text))
        }
        ColumnarValue::Array(texts) => {
            let texts: ArrayRef = cast(&texts, &DataType::Utf8)?;
            let texts = texts.as_string::<i32>().iter().map(|text| text.map(&map));
            ColumnarValue::Array(Arc::new(texts.collect::<StringArray>()))
        }
    })
}
