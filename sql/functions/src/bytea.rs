//! Texts as bytes, as Postgres reads `bytea`: `\x` and two digits for each byte, or else bytes with `\\` for a backslash and `\ooo` for
//! any byte.
//!
//! `CAST(text AS BYTEA)` reads a text so. A text that is cast to BLOB is read as DuckDB does, which has `\xAA` for each byte that is no
//! letter.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The function by which a text is cast to BYTEA. It takes bytes, too.
pub static BYTEA: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(Bytea { signature: signature() })));

fn signature() -> Signature {
    Signature::user_defined(Volatility::Immutable)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bytea {
    signature: Signature,
}

impl ScalarUDFImpl for Bytea {
    fn name(&self) -> &str {
        "bytea"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match arguments {
            [text] if text.is_string() || text.is_null() => Ok(vec![DataType::Utf8]),
            [bytes] if bytes.is_binary() => Ok(vec![DataType::Binary]),
            [other] => plan_err!("a text is cast to BYTEA, not {other}"),
            several => plan_err!("it has 1 argument, not {}", several.len()),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &arguments.args[0] {
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(read_all(array)?)),
            ColumnarValue::Scalar(value) => {
                let bytes = read_all(&value.to_array()?)?;
                Ok(ScalarValue::try_from_array(&bytes, 0)?.into())
            }
        }
    }
}

fn read_all(array: &ArrayRef) -> Result<ArrayRef> {
    let Some(texts) = array.as_string_opt::<i32>() else { return Ok(Arc::clone(array)) };
    let mut bytes = BinaryBuilder::with_capacity(texts.len(), texts.value_data().len() / 2);
    for text in texts {
        match text {
            Some(text) => bytes.append_value(read(text)?),
            None => bytes.append_null(),
        }
    }
    Ok(Arc::new(bytes.finish()))
}

/// The bytes of a text.
fn read(text: &str) -> Result<Vec<u8>> {
    let read = match text.strip_prefix("\\x") {
        Some(digits) => hexadecimal(digits),
        None => unescaped(text.as_bytes()),
    };
    read.ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        let message = format!(
            "\"{shown}\" is no BYTEA: write \\x and two digits for each byte, or \\\\ for a backslash and \\ooo for any byte"
        );
        ArrowError::ParseError(message).into()
    })
}

/// Pairs of digits, with blanks between them.
fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let digit = |letter: char| letter.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    let mut rest = digits.chars();
    while let Some(first) = rest.next() {
        if first.is_ascii_whitespace() {
            continue;
        }
        bytes.push(digit(first)? << 4 | digit(rest.next()?)?);
    }
    Some(bytes)
}

fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return Some(bytes),
            [b'\\', b'\\', rest @ ..] => {
                bytes.push(b'\\');
                rest
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', rest @ ..] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest
            }
            [b'\\', ..] => return None,
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_postgres_reads_them() {
        let read = |text: &str| read(text).ok();
        assert_eq!(read("\\x00fF"), Some(vec![0, 255]));
        assert_eq!(read("\\x 00 ff\n"), Some(vec![0, 255]));
        assert_eq!(read("\\x"), Some(vec![]));
        assert_eq!(read(""), Some(vec![]));
        assert_eq!(read("a\\\\\\377é"), Some(vec![b'a', b'\\', 255, 0xc3, 0xa9]));
        for wrong in ["\\x0", "\\xg0", "\\x0 0", "\\", "\\400", "\\8", "\\xAA\\xBB"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
