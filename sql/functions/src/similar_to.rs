//! `SIMILAR TO`: the regular expressions of the SQL standard, as PostgreSQL has them.
//!
//! A pattern matches the whole text. `%` stands for any text, `_` for any character; `|`, `*`, `+`, `?`, `{m,n}`, `(…)`
//! and `[…]` mean what they mean in other regular expressions; all else, `.`, `^` and `$` among it, stands for itself, and
//! so does what follows the escape character. DataFusion takes the pattern for an unanchored regular expression.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::expr::{Like, ScalarFunction};
use datafusion_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, lit,
};

static PATTERN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::from(SimilarPattern {
        signature: Signature::string(2, Volatility::Immutable),
    }))
});

/// `SIMILAR TO` as a match of a regular expression.
pub(super) fn as_regular_expression(expression: Expr) -> Result<Transformed<Expr>> {
    let Expr::SimilarTo(Like { negated, expr, pattern, escape_char, .. }) = expression else {
        return Ok(Transformed::no(expression));
    };
    let escape = lit(escape_char.unwrap_or('\\').to_string());
    let pattern = ScalarFunction::new_udf(PATTERN.clone(), vec![*pattern, escape]);
    let op = if negated { Operator::RegexNotMatch } else { Operator::RegexMatch };
    let pattern = Box::new(Expr::ScalarFunction(pattern));
    Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left: expr, op, right: pattern })))
}

/// The regular expression of a pattern.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SimilarPattern {
    signature: Signature,
}

impl ScalarUDFImpl for SimilarPattern {
    fn name(&self) -> &str {
        "similar_to_regular_expression"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [patterns, ColumnarValue::Scalar(escape)] = &arguments.args[..] else {
            return exec_err!("the escape character of SIMILAR TO must be a constant");
        };
        let escape = escape.try_as_str().flatten().and_then(|text| text.chars().next());
        match patterns {
            ColumnarValue::Scalar(pattern) => {
                let pattern = pattern.try_as_str().flatten();
                let expression = pattern.map(|pattern| regular_expression(pattern, escape));
                Ok(ColumnarValue::Scalar(ScalarValue::Utf8(expression.transpose()?)))
            }
            ColumnarValue::Array(patterns) => {
                let patterns: ArrayRef = cast(patterns, &DataType::Utf8)?;
                let expressions = patterns.as_string::<i32>().iter();
                let expressions = expressions.map(|pattern| {
                    pattern.map(|pattern| regular_expression(pattern, escape)).transpose()
                });
                Ok(ColumnarValue::Array(Arc::new(expressions.collect::<Result<StringArray>>()?)))
            }
        }
    }
}

fn regular_expression(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut expression = String::with_capacity(pattern.len() + 12);
    expression.push_str(r"\A(?s:");
    let mut in_brackets = false;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            _ if Some(character) == escape => match characters.next() {
                Some(next) => push_literal(next, &mut expression),
                None => return exec_err!("the pattern '{pattern}' ends with its escape character"),
            },
            ']' => {
                in_brackets = false;
                expression.push(']');
            }
            // The regular expressions of the library nest brackets and have operators inside of them.
            '[' | '&' | '~' | '\\' if in_brackets => push_literal(character, &mut expression),
            _ if in_brackets => expression.push(character),
            '[' => {
                in_brackets = true;
                expression.push('[');
            }
            '%' => expression.push_str(".*"),
            '_' => expression.push('.'),
            '(' => expression.push_str("(?:"),
            ')' | '|' | '*' | '+' | '?' | '{' | '}' => expression.push(character),
            _ => push_literal(character, &mut expression),
        }
    }
    expression.push_str(r")\z");
    Ok(expression)
}

fn push_literal(character: char, expression: &mut String) {
    if character.is_ascii_punctuation() && character != ',' {
        expression.push('\\');
    }
    expression.push(character);
}
