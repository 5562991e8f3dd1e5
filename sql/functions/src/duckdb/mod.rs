//! Functions in the names and with the meaning of DuckDB, where neither DataFusion nor a definition in SQL has them.
//!
//! - `plain` is a function of columns; all others are made of it, except `by_type`, which chooses among DataFusion's;
//! - `text`, `text_slice`, `pattern` and `hashes`: of texts and bytes, `format`: `format` and `printf`;
//! - `time`: parts, differences and buckets of times, `time_format`: `strftime` and `strptime`;
//! - `whole`: whole numbers next to a DECIMAL; `number`: bits and lengths of time, `type_names`: `typeof`;
//! - `json`: functions of JSON, over the trees of `json_value`;
//! - `collected`: aggregates of all values of a group.
mod by_type;
mod collected;
mod format;
mod hashes;
mod json;
mod json_value;
mod number;
mod pattern;
mod plain;
mod text;
mod text_slice;
mod time;
mod time_format;
mod type_names;
mod whole;

use std::sync::Arc;

use datafusion_expr::{AggregateUDF, ScalarUDF};

pub use self::json::{EXTRACT, EXTRACT_TEXT};
pub use self::number::{OVER, TIMES};
pub use self::text_slice::TextSlices;
pub(super) use self::time::{TIMESTAMP, date_time};

/// The scalar functions.
pub(super) fn scalar() -> impl Iterator<Item = Arc<ScalarUDF>> {
    text::functions()
        .into_iter()
        .chain(text_slice::functions())
        .chain(pattern::functions())
        .chain(hashes::functions())
        .chain(format::functions())
        .chain(json::functions())
        .chain(number::functions())
        .chain(time::functions())
        .chain(time_format::functions())
        .chain([type_names::function()])
        .chain(by_type::functions())
}

/// The aggregates.
pub(super) fn aggregate() -> impl Iterator<Item = Arc<AggregateUDF>> {
    collected::functions().into_iter()
}
