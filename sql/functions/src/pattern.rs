//! Patterns that are computed: `LIKE`, `SIMILAR TO` and regular expressions compile them, which takes far more memory than
//! they have.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::kernels::length::length;
use arrow::compute::{cast, max};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Result, exec_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::similar_to::as_regular_expression;

/// The largest number of characters of a pattern.
pub const LONGEST_PATTERN: usize = 10_000;

static PATTERN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::from(Pattern { signature: Signature::any(1, Volatility::Immutable) }))
});

/// An expression that matches a pattern, with a pattern that is bounded; `SIMILAR TO` as the match of a regular expression.
pub fn with_bounded_pattern(mut expression: Expr) -> Result<Transformed<Expr>> {
    let pattern = match &mut expression {
        Expr::Like(like) | Expr::SimilarTo(like) => Some(like.pattern.as_mut()),
        Expr::BinaryExpr(matched) if is_match(matched.op) => Some(matched.right.as_mut()),
        Expr::ScalarFunction(call) if call.func.name().starts_with("regexp_") => {
            call.args.get_mut(1)
        }
        _ => None,
    };
    let Some(pattern) = pattern else { return Ok(Transformed::no(expression)) };
    let is_bounded = match &*pattern {
        Expr::Literal(value, _) => {
            value.try_as_str().flatten().is_none_or(|text| text.len() <= LONGEST_PATTERN)
        }
        _ => false,
    };
    if !is_bounded {
        let call = ScalarFunction::new_udf(Arc::clone(&PATTERN), vec![std::mem::take(pattern)]);
        *pattern = Expr::ScalarFunction(call);
    }
    let mut expression = as_regular_expression(expression)?;
    expression.transformed |= !is_bounded;
    Ok(expression)
}

/// Whether an operator matches a pattern.
fn is_match(operator: Operator) -> bool {
    use Operator::{
        ILikeMatch, LikeMatch, NotILikeMatch, NotLikeMatch, RegexIMatch, RegexMatch,
        RegexNotIMatch, RegexNotMatch,
    };
    matches!(
        operator,
        RegexMatch
            | RegexIMatch
            | RegexNotMatch
            | RegexNotIMatch
            | LikeMatch
            | ILikeMatch
            | NotLikeMatch
            | NotILikeMatch
    )
}

/// Its argument, unless that is too long for a pattern.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Pattern {
    signature: Signature,
}

impl ScalarUDFImpl for Pattern {
    fn name(&self) -> &str {
        "pattern"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [pattern] = <[ColumnarValue; 1]>::try_from(arguments.args)
            .or_else(|arguments| exec_err!("a match has one pattern, not {}", arguments.len()))?;
        let longest = match &pattern {
            ColumnarValue::Scalar(value) => {
                value.try_as_str().flatten().map_or(0, |text| text.chars().count())
            }
            ColumnarValue::Array(texts) => longest(texts)?,
        };
        match longest <= LONGEST_PATTERN {
            true => Ok(pattern),
            false => exec_err!("a pattern has at most {LONGEST_PATTERN} characters"),
        }
    }
}

/// The number of characters of the longest text, or less than that of the longest pattern.
fn longest(texts: &ArrayRef) -> Result<usize> {
    // Other types are refused where they are matched.
    if !texts.data_type().is_string() || texts.get_buffer_memory_size() <= LONGEST_PATTERN {
        return Ok(0);
    }
    let bytes = cast(&length(texts)?, &DataType::Int64)?;
    let bytes = max(bytes.as_primitive::<Int64Type>()).map_or(0, |bytes| bytes as usize);
    if bytes <= LONGEST_PATTERN {
        return Ok(bytes);
    }
    let texts = cast(texts, &DataType::LargeUtf8)?;
    let texts = texts.as_string::<i64>().iter().flatten();
    Ok(texts.map(|text| text.chars().count()).max().unwrap_or(0))
}
