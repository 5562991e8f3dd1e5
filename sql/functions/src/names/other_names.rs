//! Other names of functions.

/// Names of DuckDB and Postgres, with the names that DataFusion has for these functions.
pub(crate) const OTHER_NAMES: &[(&str, &str)] = &[
    ("ceiling", "ceil"),
    ("strlen", "octet_length"),
    ("ucase", "upper"),
    ("lcase", "lower"),
    ("prefix", "starts_with"),
    ("suffix", "ends_with"),
    ("regexp_matches", "regexp_like"),
    ("editdist3", "levenshtein"),
    ("list_min", "array_min"),
    ("list_value", "make_array"),
    ("list_pack", "make_array"),
    ("array_value", "make_array"),
    ("struct_extract", "get_field"),
    ("row_to_json", "to_json"),
    ("json_build_object", "json_object"),
    ("greatest_common_divisor", "gcd"),
    ("least_common_multiple", "lcm"),
    ("array_zip", "arrays_zip"),
    ("list_cosine_distance", "cosine_distance"),
    ("array_cosine_distance", "cosine_distance"),
    ("list_inner_product", "inner_product"),
    ("list_dot_product", "inner_product"),
    ("array_inner_product", "inner_product"),
    ("array_dot_product", "inner_product"),
];
