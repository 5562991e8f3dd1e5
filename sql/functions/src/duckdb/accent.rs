//! Letters and their accents: one character or several.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::DataType;
use datafusion_common::Result;
use datafusion_expr::ScalarUDF;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

use super::plain::{Plain, texts};

const COMPOSED: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfc();
const DECOMPOSED: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizerBorrowed::new_nfd();

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let text = |_: &[DataType]| DataType::Utf8;
    vec![
        Plain::function(&["nfc_normalize"], texts::<1, 1>, text, composed),
        Plain::function(&["strip_accents"], texts::<1, 1>, text, without_accents),
    ]
}

/// The normal form C of Unicode.
fn composed(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let texts = arguments[0].as_string::<i32>().iter();
    let composed = texts.map(|text| text.map(|text| COMPOSED.normalize(text)));
    Ok(Arc::new(composed.collect::<StringArray>()))
}

/// Without the marks that stand over and under letters.
fn without_accents(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let is_mark = |character: &char| matches!(character, '\u{300}'..='\u{36f}');
    let plain = |text: &str| -> String {
        DECOMPOSED.normalize(text).chars().filter(|character| !is_mark(character)).collect()
    };
    let texts = arguments[0].as_string::<i32>().iter();
    Ok(Arc::new(texts.map(|text| text.map(plain)).collect::<StringArray>()))
}
