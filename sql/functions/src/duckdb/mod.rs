//! Functions in the names and with the meaning of DuckDB, where neither DataFusion nor a definition in SQL has them.
//!
//! - `plain` is a function of columns; all others are made of it, except `by_type`, which chooses among DataFusion's;
//! - `text`, `text_slice`, `text_split`, `grapheme`, `accent`, `pattern`, `similarity`, `path` and `hashes`: of texts and bytes;
//! - `format`: `format` and `printf`, `size`: sizes of data;
//! - `time`: parts, differences and buckets of times, `time_format`: `strftime` and `strptime`;
//! - `whole`: whole numbers next to a DECIMAL, `trunc`: digits that are cut off; `number`: bits and lengths of time, `type_names`: `typeof`;
//! - `json` and `json_edit`: functions of JSON, over the trees of `json_value`;
//! - `list`, `has_lists`: elements of lists, and lists in lists; `list_aggregate`: aggregates of elements,
//!   `reduce`: elements that are combined;
//! - `struct_fields`: structs of structs, `map`: maps of entries;
//! - `collected`: aggregates of all values of a group, `gathered`: those that SQL defines by lists of them.
mod accent;
mod by_type;
mod collected;
mod format;
mod gathered;
mod grapheme;
mod has_lists;
mod hashes;
mod json;
mod json_edit;
mod json_value;
mod list;
mod list_aggregate;
mod map;
mod number;
mod path;
mod pattern;
mod plain;
mod reduce;
mod similarity;
mod size;
mod struct_fields;
mod text;
mod text_slice;
mod text_split;
mod time;
mod time_format;
mod trunc;
mod type_names;
mod whole;

use std::sync::Arc;

use datafusion_expr::{AggregateUDF, ScalarUDF};

pub use self::json::{EXTRACT, EXTRACT_TEXT};
pub(super) use self::list_aggregate::functions as of_lists;
pub use self::number::{OVER, TIMES};
pub(super) use self::reduce::function as reduce;
pub use self::text_slice::TextSlices;
pub(super) use self::time::{TIMESTAMP, date_time};

/// The scalar functions.
pub(super) fn scalar() -> impl Iterator<Item = Arc<ScalarUDF>> {
    text::functions()
        .into_iter()
        .chain(text_slice::functions())
        .chain(text_split::functions())
        .chain(pattern::functions())
        .chain(hashes::functions())
        .chain(format::functions())
        .chain(json::functions())
        .chain(json_edit::functions())
        .chain(accent::functions())
        .chain(gathered::functions())
        .chain(grapheme::functions())
        .chain(list::functions())
        .chain(map::functions())
        .chain(path::functions())
        .chain(similarity::functions())
        .chain(size::functions())
        .chain(struct_fields::functions())
        .chain(number::functions())
        .chain(time::functions())
        .chain(time_format::functions())
        .chain([type_names::function(), trunc::function()])
        .chain(has_lists::functions())
        .chain(by_type::functions())
}

/// The aggregates.
pub(super) fn aggregate() -> impl Iterator<Item = Arc<AggregateUDF>> {
    collected::functions().into_iter()
}
