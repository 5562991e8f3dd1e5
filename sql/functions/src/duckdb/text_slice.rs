//! Parts of texts, by characters: `substr`, whose negative starts count from the end, and `text[2:4]`.

use std::sync::{Arc, LazyLock};

use arrow::array::types::Int64Type;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringBuilder};
use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result, exec_err, plan_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::planner::{ExprPlanner, PlannerResult, RawFieldAccessExpr};
use datafusion_expr::{Expr, ExprSchemable, GetFieldAccess, ScalarUDF};

use super::plain::{Plain, texts, wrong_number};

static SUBSTR: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Plain::function(&["substr", "substring"], text_and_places, |_| DataType::Utf8, substr)
});

static SLICE: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Plain::function(&["text_slice"], text_and_places, |_| DataType::Utf8, slice));

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        Arc::clone(&SUBSTR),
        Plain::function(&["ord", "unicode"], texts::<1, 1>, |_| DataType::Int64, first_character),
    ]
}

/// Plans `SUBSTRING`, and subscripts and slices of texts.
#[derive(Debug)]
pub struct TextSlices;

impl ExprPlanner for TextSlices {
    fn plan_substring(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let call = ScalarFunction::new_udf(Arc::clone(&SUBSTR), arguments);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
    }

    fn plan_field_access(
        &self,
        raw: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        if !raw.expr.get_type(schema).is_ok_and(|kind| kind.is_string()) {
            return Ok(PlannerResult::Original(raw));
        }
        let arguments = match raw.field_access {
            GetFieldAccess::ListIndex { key } => vec![raw.expr, *key.clone(), *key],
            GetFieldAccess::ListRange { start, stop, .. } => vec![raw.expr, *start, *stop],
            access @ GetFieldAccess::NamedStructField { .. } => {
                let raw = RawFieldAccessExpr { field_access: access, expr: raw.expr };
                return Ok(PlannerResult::Original(raw));
            }
        };
        let call = ScalarFunction::new_udf(Arc::clone(&SLICE), arguments);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
    }
}

fn text_and_places(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let (2 | 3, [text, places @ ..]) = (arguments.len(), arguments) else {
        return wrong_number(2, 3, arguments.len());
    };
    if !text.is_string() && !text.is_null() {
        return plan_err!("a text is expected, not {text}: cast it");
    }
    if let Some(other) = places.iter().find(|place| !place.is_integer() && !place.is_null()) {
        return plan_err!("a place in a text is an integer, not {other}");
    }
    let places = vec![DataType::Int64; places.len()];
    Ok(std::iter::once(DataType::Utf8).chain(places).collect())
}

/// The characters from a place up to another one, both counted from one; places outside of the text are skipped.
fn part(text: &str, is_ascii: bool, from: i64, to: i64) -> &str {
    let from = usize::try_from(from.max(1) - 1).unwrap_or(usize::MAX);
    let Ok(to @ 1..) = usize::try_from(to) else { return "" };
    if from >= to {
        return "";
    }
    if is_ascii {
        return text.get(from.min(text.len())..to.min(text.len())).unwrap_or("");
    }
    let mut starts = text.char_indices().map(|(start, _)| start);
    let Some(start) = starts.nth(from) else { return "" };
    let end = starts.nth(to - from - 1).unwrap_or(text.len());
    &text[start..end]
}

/// The place that a negative one counts from the end.
fn from_start(place: i64, text: &str, is_ascii: bool) -> i64 {
    match place {
        0.. => place,
        _ => {
            let length = if is_ascii { text.len() } else { text.chars().count() };
            place.saturating_add(length as i64 + 1)
        }
    }
}

fn each(
    arguments: &[ArrayRef],
    part_of: impl for<'a> Fn(&'a str, i64, Option<i64>) -> Result<&'a str>,
) -> Result<ArrayRef> {
    let texts = arguments[0].as_string::<i32>();
    let first = arguments[1].as_primitive::<Int64Type>();
    let second: Option<&Int64Array> =
        arguments.get(2).map(|second| second.as_primitive::<Int64Type>());
    let mut parts = StringBuilder::with_capacity(texts.len(), texts.value_data().len());
    for (row, text) in texts.iter().enumerate() {
        let has_places = first.is_valid(row) && second.is_none_or(|second| second.is_valid(row));
        match text {
            Some(text) if has_places => {
                let second = second.map(|second| second.value(row));
                parts.append_value(part_of(text, first.value(row), second)?);
            }
            _ => parts.append_null(),
        }
    }
    Ok(Arc::new(parts.finish()))
}

fn substr(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    each(arguments, |text, start, length| {
        let is_ascii = text.is_ascii();
        let start = from_start(start, text, is_ascii);
        let to = match length {
            Some(length @ 0..) => start.saturating_add(length).saturating_sub(1),
            Some(length) => return exec_err!("a text has no {length} characters"),
            None => i64::MAX,
        };
        Ok(part(text, is_ascii, start, to))
    })
}

fn slice(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    each(arguments, |text, from, to| {
        let is_ascii = text.is_ascii();
        // The place before the first one is none.
        let from = from_start(from, text, is_ascii);
        let to = from_start(to.unwrap_or(from), text, is_ascii);
        Ok(part(text, is_ascii, from, to))
    })
}

/// The number of the first character; -1 if there is none.
fn first_character(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let number = |text: &str| text.chars().next().map_or(-1, |first| i64::from(u32::from(first)));
    let texts = arguments[0].as_string::<i32>().iter();
    Ok(Arc::new(texts.map(|text| text.map(number)).collect::<Int64Array>()))
}
