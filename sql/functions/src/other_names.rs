//! Other names of functions.

/// Names of DuckDB and Postgres, with the names that DataFusion has for these functions.
pub(super) const OTHER_NAMES: &[(&str, &str)] = &[
    ("ceiling", "ceil"),
    ("strlen", "octet_length"),
    ("ucase", "upper"),
    ("lcase", "lower"),
    ("prefix", "starts_with"),
    ("suffix", "ends_with"),
    ("string_split", "string_to_array"),
    ("str_split", "string_to_array"),
    ("split", "string_to_array"),
    ("regexp_matches", "regexp_like"),
    ("editdist3", "levenshtein"),
    ("list_min", "array_min"),
    ("list_value", "make_array"),
    ("list_pack", "make_array"),
    ("struct_extract", "get_field"),
];
