//! Texts in place of DataFusion's.

use alluvium_dataflow::messages::wording::{Rewording, reworded};

/// DataFusion's messages about statements that it cannot plan, and ours.
#[rustfmt::skip]
const STATEMENTS: &[Rewording] = &[
    // Operators.
    ("Cannot coerce arithmetic expression {} to valid types", "{0} cannot be computed: CAST one of them"),
    ("Cannot get result type for temporal operation {}: {}", "{0} cannot be computed: CAST one of them"),
    ("Cannot infer common argument type for comparison operation {}", "{0} cannot be compared: CAST one of them"),
    ("Cannot infer common argument type for logical boolean operation {}", "{0} cannot be computed: both must be BOOLEAN"),
    ("Cannot infer common argument type for regex operation {}", "{0} cannot be computed: both must be VARCHAR"),
    ("Cannot infer common string type for string concat operation {}", "{0} cannot be computed: CAST it to VARCHAR"),
    ("Cannot infer common type for bitwise operation {}", "{0} cannot be computed: both must be integers"),
    ("There isn't a common type to coerce {} and {} in LIKE expression", "{0} LIKE {1} cannot be computed: both must be VARCHAR"),
    ("Failed to coerce then ({}) and else ({}) to common types in CASE WHEN expression", "CASE gives {0} or {1}: CAST them to one type"),
    ("Failed to coerce case ({}) and when ({}) to common types in CASE WHEN expression", "CASE {0} WHEN {1} cannot be compared: CAST one of them"),
    ("Unsupported CAST from {} to {}", "{0} cannot be CAST to {1}"),
    ("Unsupported SQL type {}", "no type {0}: there are BOOLEAN, INTEGER, BIGINT, DOUBLE, DECIMAL, VARCHAR, DATE, TIME, TIMESTAMP and others"),
    ("Decimal(precision = {}, scale = {}) should satisfy {}", "DECIMAL({0}, {1}) does not exist: of at most 38 digits, at most all are behind the point"),
    ("Cannot access field at argument 1: type {} is not Struct, Map, or Null", "{0} has no fields: only a STRUCT and a MAP have"),
    ("Field {} not found in struct", "the STRUCT has no field \"{0}\""),
    ("unnest() can only be applied to array, struct and null", "unnest() takes a list or a STRUCT"),
    ("The function '{}' expected a lambda at position 0 but received a value", "{0}() takes a lambda, as x -> x + 1, as its first argument"),
    ("The function '{}' expected a lambda at position 1 but received a value", "{0}() takes a lambda, as x -> x + 1, as its second argument"),
    ("Unsupported date_trunc granularity: '{}'. Supported values are: {}", "'{0}' is no unit of time: there are {1}"),
    ("Date part '{}' not supported", "'{0}' is no part of a time: there are year, quarter, month, week, day, dow, doy, hour, minute, second, epoch and others"),
    ("Percentile value must be between 0.0 and 1.0 inclusive, {} is invalid", "a percentile is between 0 and 1, not {0}"),
    ("Month value '{}' is out of range", "{0} is no month"),
    ("Substring without for/from is not valid {}", "substr() needs a start: write substr(str, start[, length])"),
    // Conditions.
    ("Cannot create filter with non-boolean predicate '{}' returning {}", "a condition must be BOOLEAN, and this is {1}"),
    ("Join condition must be boolean type, but got {}", "a condition must be BOOLEAN, and this is {0}"),
    // Aggregates and groups.
    ("'{}' must appear in GROUP BY clause because it's not an aggregate expression", "{0} must be in GROUP BY, or in an aggregate"),
    ("HAVING clause references: {} must appear in the GROUP BY clause or be used in an aggregate function", "HAVING takes what is in GROUP BY, or in an aggregate, and not {0}"),
    ("Aggregate functions are not allowed in the WHERE clause. Consider using HAVING instead", "an aggregate cannot be in WHERE: use HAVING"),
    ("Aggregate function calls cannot be nested", "an aggregate cannot be in another one: compute one of them in a subquery"),
    ("Cannot find column with position {} in SELECT clause. Valid columns: 1 to {}", "GROUP BY {0}: the columns of SELECT have the numbers 1 to {1}"),
    // Windows.
    ("Physical plan does not support logical expression WindowFunction({}", "a window function can be in SELECT, ORDER BY and QUALIFY only"),
    ("QUALIFY clause requires window functions in the SELECT list or QUALIFY clause", "QUALIFY needs a window function: use WHERE for other conditions"),
    ("RANGE requires exactly one ORDER BY column", "RANGE with an offset needs an ORDER BY of one column"),
    ("Invalid window frame: frame offsets for ROWS / GROUPS must be non negative integers", "an offset of ROWS or GROUPS is a whole number, and not negative"),
    // Order and limits.
    ("Order by column out of bounds, specified: {}, max: {}", "ORDER BY {0}: the columns of SELECT have the numbers 1 to {1}"),
    ("Order by index starts at 1 for column indexes", "ORDER BY 0: the columns of SELECT are counted from 1"),
    ("For SELECT DISTINCT, ORDER BY expressions {} must appear in select list", "ORDER BY of SELECT DISTINCT takes what is selected, and {0} is not"),
    ("LIMIT must be >= 0, '{}' was provided", "LIMIT must not be negative, and is {0}"),
    ("OFFSET must be >=0, '{}' was provided", "OFFSET must not be negative, and is {0}"),
    ("Expected LIMIT to be an integer or null, but got {}", "LIMIT takes a whole number, not {0}"),
    ("Expected OFFSET to be an integer or null, but got {}", "OFFSET takes a whole number, not {0}"),
    ("Unsupported LIMIT expression: {}", "LIMIT takes a constant"),
    ("Unsupported OFFSET expression: {}", "OFFSET takes a constant"),
    // Relations and columns.
    ("Unsupported compound identifier '{}'. Expected 1, 2 or 3 parts, got {}", "no table or view \"{0}\""),
    ("Invalid qualifier {}", "no table \"{0}\" in FROM"),
    ("SELECT * with no tables specified is not valid", "SELECT * needs FROM"),
    ("Source table contains {} columns but only {} names given as column alias", "the number of names, {1}, is not that of the columns, {0}"),
    ("WITH query name \"{}\" specified more than once", "WITH has two queries \"{0}\": rename one"),
    ("Non-recursive term and recursive term must have the same number of columns ({} != {})", "the parts of a recursion select different numbers of columns: {0} and {1}"),
    ("Too many columns! The subquery should only return one column", "this subquery must select one column"),
    ("{} queries have different number of columns", "the two sides of {0} select different numbers of columns"),
    ("Incompatible inputs for {}: Previous inputs were of type {}, but got incompatible type {} on column '{}'", "{1} and {2} have no type in common: CAST column \"{3}\""),
    ("Column count doesn't match insert query!", "the query selects another number of columns than are inserted"),
];

/// Rewords a message of DataFusion's for someone who knows SQL; `None` if it needs no rewording.
pub(super) fn told(message: &str) -> Option<String> {
    if message.starts_with("Projections require unique expression names") {
        let name = message.split('"').nth(1)?;
        let name = name.rsplit('.').next().unwrap_or(name);
        return Some(format!("column \"{name}\" appears twice; rename one with AS"));
    }
    if let Some(rest) = message.strip_prefix("Inconsistent data length across values list: got ") {
        let (given, row, wanted) = numbers(rest)?;
        let s = if given == 1 { "" } else { "s" };
        let row = row + 1;
        return Some(format!(
            "row {row} of VALUES has {given} value{s}, and the first has {wanted}"
        ));
    }
    if let Some(rest) = message.strip_prefix("Inconsistent data type across values list at row ") {
        let (place, types) = rest.split_once(". Was ")?;
        let (first, other) = types.split_once(" but found ")?;
        let (row, column) = place.split_once(" column ")?;
        let (row, column) = (row.parse::<u64>().ok()? + 1, column.parse::<u64>().ok()? + 1);
        return Some(format!(
            "row {row} of VALUES has {other} in column {column}, and rows before it {first}: CAST one of them"
        ));
    }
    if let Some(rest) = message.strip_prefix("regex parse error:") {
        let reason = rest.rsplit_once("error: ")?.1;
        return Some(format!("the pattern is no regular expression: {}", reason.trim()));
    }
    reworded(STATEMENTS, message.trim_end_matches(['.', '\n']))
}

/// The first three numbers of a text.
fn numbers(text: &str) -> Option<(u64, u64, u64)> {
    let mut numbers = text.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.by_ref().find(|digits| !digits.is_empty())?.parse::<u64>().ok();
    Some((number()?, number()?, number()?))
}

/// A message without the kinds of errors in front of it.
pub(super) fn without_kind(mut message: &str) -> &str {
    const KINDS: [&str; 7] = [
        "Error during planning: ",
        "Execution error: ",
        "Arrow error: ",
        "Parser error: ",
        "Cast error: ",
        "Invalid argument error: ",
        "This feature is not implemented: ",
    ];
    while let Some(rest) = KINDS.iter().find_map(|kind| message.strip_prefix(kind)) {
        message = rest;
    }
    message
}
