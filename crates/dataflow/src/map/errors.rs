//! Errors as rows.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion_common::DataFusionError;

use crate::messages::notice::without_notice;
use crate::messages::shorten::{print, shorten};
use crate::messages::wording;
use crate::movement::delta::{Delta, Times, batch};

/// The characters after which a printed row is cut off.
const ROW_LIMIT: usize = 240;

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let text = |name| Field::new(name, DataType::Utf8, false);
    Arc::new(Schema::new(vec![text("expression"), text("row"), text("message")]))
});

/// The columns of an error: the expression that failed, the row it failed for, and a message, all as text.
pub fn error_schema() -> SchemaRef {
    SCHEMA.clone()
}

/// Collects errors into a delta.
#[derive(Debug)]
pub struct ErrorRows<T> {
    expressions: StringBuilder,
    rows: StringBuilder,
    messages: StringBuilder,
    times: Vec<T>,
    weights: Vec<i64>,
}

impl<T> Default for ErrorRows<T> {
    fn default() -> Self {
        Self {
            expressions: StringBuilder::new(),
            rows: StringBuilder::new(),
            messages: StringBuilder::new(),
            times: Vec::new(),
            weights: Vec::new(),
        }
    }
}

impl<T: Clone> ErrorRows<T> {
    /// Whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Appends the error that `expression` fails with `message` for row `row` of `rows`, a row that
    /// changes at `time` by `weight`.
    pub fn push(
        &mut self,
        expression: &str,
        rows: &RecordBatch,
        row: usize,
        message: &str,
        time: T,
        weight: i64,
    ) {
        self.expressions.append_value(shorten(expression));
        self.rows.append_value(print_row(rows, row));
        self.messages.append_value(shorten(message));
        self.times.push(time);
        self.weights.push(weight);
    }

    /// The errors, with the columns of [`error_schema`].
    pub fn finish(mut self) -> Delta<T> {
        let count = self.times.len();
        let columns = [&mut self.expressions, &mut self.rows, &mut self.messages]
            .map(|column| Arc::new(column.finish()) as _);
        Delta::new(
            batch(error_schema(), columns.to_vec(), count),
            Times::Each(self.times.into()),
            Some(self.weights.into()),
        )
    }
}

/// A row as `column=value, …`, truncated.
pub fn print_row(rows: &RecordBatch, row: usize) -> String {
    let options = FormatOptions::default().with_null("NULL");
    let mut text = String::new();
    for (field, column) in rows.schema_ref().fields().iter().zip(rows.columns()) {
        if !text.is_empty() {
            text.push_str(", ");
        }
        let quote = match column.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if column.is_valid(row) => {
                "'"
            }
            _ => "",
        };
        let left = ROW_LIMIT.saturating_sub(text.chars().count());
        let Ok(values) = ArrayFormatter::try_new(column, &options) else {
            text.push('?');
            continue;
        };
        let value = values.value(row);
        let (shown, is_all) = print(format_args!("{}={quote}{value}{quote}", field.name()), left);
        text.push_str(&shown);
        if !is_all {
            text.push('…');
            break;
        }
    }
    text
}

/// The message of an error for users, [shortened](crate::messages::shorten), in [the terms of SQL](crate::messages::wording) and without the
/// internal context that DataFusion adds.
pub fn message(error: &DataFusionError) -> String {
    shorten(wording::of_values(&without_notice(whole_message(error))))
}

/// The message of an error without the internal context that DataFusion adds, as it is.
pub fn whole_message(error: &DataFusionError) -> String {
    match error {
        DataFusionError::ArrowError(error, _) => arrow_message(error),
        DataFusionError::Context(_, error) | DataFusionError::Diagnostic(_, error) => {
            whole_message(error)
        }
        DataFusionError::Shared(error) => whole_message(error),
        DataFusionError::Collection(errors) => {
            errors.first().map_or_else(String::new, whole_message)
        }
        DataFusionError::External(error) => match error.downcast_ref::<DataFusionError>() {
            Some(error) => whole_message(error),
            None => plain(&error.to_string()),
        },
        other => plain(&other.strip_backtrace()),
    }
}

fn arrow_message(error: &ArrowError) -> String {
    match error {
        ArrowError::DivideByZero => "division by zero".to_owned(),
        ArrowError::ArithmeticOverflow(text) => {
            let operation = text.strip_prefix("Overflow happened on: ").unwrap_or(text);
            format!("overflow: {operation}")
        }
        ArrowError::ExternalError(error) => match error.downcast_ref::<DataFusionError>() {
            Some(error) => whole_message(error),
            None => plain(&error.to_string()),
        },
        ArrowError::CastError(text)
        | ArrowError::ParseError(text)
        | ArrowError::ComputeError(text)
        | ArrowError::InvalidArgumentError(text)
        | ArrowError::NotYetImplemented(text) => plain(text),
        other => plain(&other.to_string()),
    }
}

/// `text` without the kind of error in front of it.
fn plain(text: &str) -> String {
    let mut text = text.trim();
    while let Some((kind, rest)) = text.split_once(": ")
        && (kind.ends_with(" error") || kind.ends_with(" Error"))
        && kind.split(' ').count() <= 3
    {
        text = rest.trim();
    }
    text = text.strip_prefix("This feature is not implemented: ").unwrap_or(text);
    if text == "Divide by zero error" {
        return "division by zero".to_owned();
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    #[test]
    fn rows_are_printed_with_names_and_cut_off() {
        let rows = RecordBatch::try_from_iter([
            ("id", Arc::new(Int64Array::from(vec![Some(7), None])) as ArrayRef),
            ("name", Arc::new(StringArray::from(vec![Some("x"), None]))),
        ])
        .unwrap();
        assert_eq!(print_row(&rows, 0), "id=7, name='x'");
        assert_eq!(print_row(&rows, 1), "id=NULL, name=NULL");
        let long: ArrayRef = Arc::new(StringArray::from(vec!["ä".repeat(1000)]));
        let rows = RecordBatch::try_from_iter([("text", long)]).unwrap();
        assert_eq!(print_row(&rows, 0).chars().count(), ROW_LIMIT + 1);
    }

    #[test]
    fn messages_say_what_is_wrong_and_nothing_else() {
        let unknown = DataFusionError::NotImplemented("too many sets".to_owned());
        assert_eq!(message(&unknown), "too many sets");
        let arrow = |error| DataFusionError::ArrowError(Box::new(error), None);
        let overflow = ArrowError::ArithmeticOverflow("Overflow happened on: 1 + 2".to_owned());
        for (error, expected) in [
            (arrow(ArrowError::DivideByZero), "division by zero"),
            (arrow(overflow), "overflow: 1 + 2"),
            (arrow(ArrowError::CastError("no number".to_owned())), "no number"),
            (
                DataFusionError::Execution("Arrow error: Parser error: not a date".to_owned()),
                "not a date",
            ),
            (arrow(ArrowError::DivideByZero).context("in a function"), "division by zero"),
        ] {
            assert_eq!(message(&error), expected);
        }
    }
}
