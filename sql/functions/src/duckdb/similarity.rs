//! How much two texts have in common.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array};
use arrow::datatypes::DataType;
use datafusion_common::{Result, exec_err};
use datafusion_expr::ScalarUDF;

use super::plain::{Plain, texts};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let two = texts::<2, 2>;
    let number = |_: &[DataType]| DataType::Int64;
    let share = |_: &[DataType]| DataType::Float64;
    vec![
        Plain::function(&["damerau_levenshtein"], two, number, |of| {
            counts(of, |one, two| Ok(strsim::damerau_levenshtein(one, two)))
        }),
        Plain::function(&["hamming", "mismatches"], two, number, |of| counts(of, mismatches)),
        Plain::function(&["jaccard"], two, share, jaccards),
        Plain::function(&["jaro_similarity"], two, share, |of| shares(of, strsim::jaro)),
        Plain::function(&["jaro_winkler_similarity"], two, share, |of| {
            shares(of, strsim::jaro_winkler)
        }),
    ]
}

fn counts(arguments: &[ArrayRef], count: fn(&str, &str) -> Result<usize>) -> Result<ArrayRef> {
    let (ones, twos) = (arguments[0].as_string::<i32>(), arguments[1].as_string::<i32>());
    let counts = ones.iter().zip(twos).map(|pair| match pair {
        (Some(one), Some(two)) => count(one, two).map(|count| Some(count as i64)),
        _ => Ok(None),
    });
    Ok(Arc::new(counts.collect::<Result<Int64Array>>()?))
}

fn shares(arguments: &[ArrayRef], share: fn(&str, &str) -> f64) -> Result<ArrayRef> {
    let (ones, twos) = (arguments[0].as_string::<i32>(), arguments[1].as_string::<i32>());
    let shares = ones.iter().zip(twos).map(|(one, two)| Some(share(one?, two?)));
    Ok(Arc::new(shares.collect::<Float64Array>()))
}

/// The characters that differ, of two texts of one length.
fn mismatches(one: &str, two: &str) -> Result<usize> {
    match strsim::hamming(one, two) {
        Ok(count) => Ok(count),
        Err(_) => exec_err!("\"{one}\" and \"{two}\" do not have the same length"),
    }
}

fn jaccards(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let (ones, twos) = (arguments[0].as_string::<i32>(), arguments[1].as_string::<i32>());
    let shares = ones.iter().zip(twos).map(|pair| match pair {
        (Some(""), Some(_)) | (Some(_), Some("")) => {
            exec_err!("the empty text has no characters to compare")
        }
        (one, two) => Ok(one.zip(two).map(|(one, two)| jaccard(one, two))),
    });
    Ok(Arc::new(shares.collect::<Result<Float64Array>>()?))
}

/// The share of the characters of both texts in those of one or the other.
fn jaccard(one: &str, two: &str) -> f64 {
    let [one, two] = [one, two].map(|text| text.chars().collect::<HashSet<_>>());
    let common = one.intersection(&two).count();
    common as f64 / one.union(&two).count() as f64
}
