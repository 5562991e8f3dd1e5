//! Statements that are almost right.

use super::tokens::{is_literal, is_word, tokens};

/// Values at the ends of types, and beyond.
const EXTREMES: [&str; 44] = [
    "0",
    "-1",
    "1",
    "-0.0",
    "2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "99999999999999999999999999999999999999",
    "170141183460469231731687303715884105728",
    "1e308",
    "1e-320",
    "1e400",
    "-1e400",
    "0.1",
    "0.00000000000000000000000000000000000001",
    "NULL",
    "TRUE",
    "''",
    "'NaN'",
    "'-Infinity'",
    "'\u{0}'",
    "'\u{1F600}'",
    "'%'",
    "'(((('",
    "'[[[['",
    "X'ff'",
    "'9999-12-31'",
    "DATE '0000-01-01'",
    "TIMESTAMP '290000-01-01 00:00:00'",
    "TIMESTAMP '-290000-01-01'",
    "INTERVAL '1' YEAR",
    "INTERVAL '178956970 years'",
    "INTERVAL '-9223372036854775808' MICROSECOND",
    "ARRAY[]",
    "[]",
    "{}",
    "MAP {}",
    "DEFAULT",
    "$1",
    "(SELECT 1)",
    "*",
    "'NaN'::DOUBLE",
];

/// Words that mean something.
const WORDS: [&str; 90] = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "HAVING",
    "ORDER BY",
    "LIMIT",
    "OFFSET",
    "DISTINCT",
    "ALL",
    "UNION",
    "INTERSECT ALL",
    "EXCEPT",
    "JOIN",
    "LEFT JOIN",
    "FULL JOIN",
    "CROSS JOIN",
    "NATURAL JOIN",
    "LATERAL",
    "USING",
    "ON",
    "WITH",
    "RECURSIVE",
    "VALUES",
    "INSERT INTO",
    "UPDATE",
    "DELETE FROM",
    "SET",
    "CREATE TABLE",
    "CREATE MATERIALIZED VIEW",
    "CREATE LOCAL VIEW",
    "DROP TABLE",
    "IF EXISTS",
    "EXPLAIN",
    "SUBSCRIBE",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "CAST",
    "AS",
    "NOT",
    "AND",
    "OR",
    "IN",
    "EXISTS",
    "BETWEEN",
    "LIKE",
    "SIMILAR TO",
    "IS DISTINCT FROM",
    "IS NULL",
    "ANY",
    "OVER",
    "PARTITION BY",
    "ROWS BETWEEN",
    "RANGE",
    "GROUPS",
    "UNBOUNDED PRECEDING",
    "CURRENT ROW",
    "FOLLOWING",
    "FILTER",
    "WITHIN GROUP",
    "ROLLUP",
    "CUBE",
    "GROUPING SETS",
    "UNNEST",
    "INT",
    "DECIMAL(38, 10)",
    "TEXT",
    "BYTEA",
    "DOUBLE",
    "TIMESTAMP",
    "DATE",
    "INTERVAL",
    "BOOLEAN",
    "BIGINT[]",
    "STRUCT<a INT>",
    "MAP<TEXT, INT>",
    "TABLESAMPLE",
    "FETCH FIRST",
    "FOR UPDATE",
    "QUALIFY",
    "NULLS FIRST",
    "ASOF JOIN",
    "WITH ORDINALITY",
    "COLLATE",
];

/// Functions of all kinds.
const FUNCTIONS: [&str; 78] = [
    "abs",
    "round",
    "power",
    "ln",
    "sqrt",
    "factorial",
    "gcd",
    "lcm",
    "trunc",
    "log",
    "length",
    "lpad",
    "rpad",
    "repeat",
    "replace",
    "substr",
    "left",
    "right",
    "translate",
    "split_part",
    "regexp_replace",
    "regexp_match",
    "regexp_like",
    "strpos",
    "concat",
    "concat_ws",
    "upper",
    "initcap",
    "chr",
    "ascii",
    "to_hex",
    "encode",
    "decode",
    "overlay",
    "levenshtein",
    "reverse",
    "date_trunc",
    "date_part",
    "date_bin",
    "to_char",
    "to_timestamp",
    "to_date",
    "make_date",
    "from_unixtime",
    "age",
    "now",
    "array_append",
    "array_concat",
    "array_sort",
    "array_distinct",
    "array_position",
    "array_slice",
    "array_to_string",
    "string_to_array",
    "array_repeat",
    "array_resize",
    "array_element",
    "flatten",
    "range",
    "generate_series",
    "cardinality",
    "map",
    "map_keys",
    "struct",
    "named_struct",
    "coalesce",
    "nullif",
    "greatest",
    "arrow_cast",
    "arrow_typeof",
    "sum",
    "avg",
    "array_agg",
    "string_agg",
    "percentile_cont",
    "approx_percentile_cont",
    "nth_value",
    "lag",
];

/// Characters that do not belong.
const STRANGE: [&str; 22] = [
    "'",
    "\"",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "$$",
    "/*",
    "*/",
    "--",
    ";",
    "\\",
    "\u{0}",
    "\u{1b}[31m",
    "\u{7f}",
    "é",
    "\u{1F600}",
    "\u{202e}",
    "\u{feff}",
    "`",
];

/// Mutates a statement; `donor` gives others.
pub(crate) fn mutated<'a>(
    rng: &mut fastrand::Rng,
    text: &'a str,
    mut donor: impl FnMut(&mut fastrand::Rng) -> &'a str,
) -> String {
    let mut mutant: Vec<String> = tokens(text).into_iter().map(str::to_owned).collect();
    // One change leaves most of its meaning; some have many.
    let changes = match rng.u32(..10) {
        0..5 => 1,
        5..8 => 2,
        8 => 4,
        _ => 12,
    };
    for _ in 0..changes {
        let other = donor(rng);
        change(rng, &mut mutant, &tokens(other));
    }
    let mut text = mutant.concat();
    if rng.u32(..20) == 0 {
        let mut cut = rng.usize(..=text.len());
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        text.truncate(cut);
    }
    text
}

fn change(rng: &mut fastrand::Rng, mutant: &mut Vec<String>, other: &[&str]) {
    if mutant.is_empty() || other.is_empty() {
        return;
    }
    let at = rng.usize(..mutant.len());
    let foreign = other[rng.usize(..other.len())];
    match rng.u32(..20) {
        0 | 1 => {
            let end = (at + 1 + rng.usize(..6)).min(mutant.len());
            mutant.drain(at..end);
        }
        2 | 3 => {
            let times = [1, 2, 3, 40, 500][rng.usize(..5)];
            let end = (at + 1 + rng.usize(..8)).min(mutant.len());
            let piece = mutant[at..end].concat();
            mutant.insert(at, format!("{piece} ").repeat(times));
        }
        4 | 5 => {
            let with = rng.usize(..mutant.len());
            mutant.swap(at, with);
        }
        6 | 7 => replace(rng, mutant, is_word, foreign),
        8 => mutant.insert(at, format!(" {foreign} ")),
        9..12 => {
            let extreme = choose(rng, &EXTREMES);
            replace(rng, mutant, is_literal, extreme);
        }
        12 => {
            let word = choose(rng, &WORDS);
            replace(rng, mutant, is_word, word);
        }
        13 => {
            let word = choose(rng, &WORDS);
            mutant.insert(at, format!(" {word} "));
        }
        14 | 15 => call(rng, mutant),
        16 => mutant.insert(at, choose(rng, &STRANGE).to_owned()),
        17 => splice(rng, mutant, other),
        18 => {
            let end = (at + 1 + rng.usize(..8)).min(mutant.len());
            let levels = [1, 2, 10, 60][rng.usize(..4)];
            mutant.insert(end, ")".repeat(levels));
            mutant.insert(at, "(".repeat(levels));
        }
        _ => {
            // An extreme where a column or a function's argument was.
            let extreme = choose(rng, &EXTREMES);
            replace(rng, mutant, is_word, extreme);
        }
    }
}

fn choose<'a>(rng: &mut fastrand::Rng, all: &[&'a str]) -> &'a str {
    all[rng.usize(..all.len())]
}

/// Replaces one of the tokens that `fits`.
fn replace(rng: &mut fastrand::Rng, mutant: &mut [String], fits: fn(&str) -> bool, with: &str) {
    let fitting: Vec<usize> = (0..mutant.len()).filter(|place| fits(&mutant[*place])).collect();
    if !fitting.is_empty() {
        mutant[fitting[rng.usize(..fitting.len())]] = with.to_owned();
    }
}

/// Calls another function: where one is called, or of an expression.
fn call(rng: &mut fastrand::Rng, mutant: &mut [String]) {
    let function = choose(rng, &FUNCTIONS);
    let called = |place: usize| {
        is_word(&mutant[place]) && mutant.get(place + 1).is_some_and(|next| next == "(")
    };
    let places: Vec<usize> = (0..mutant.len()).filter(|place| called(*place)).collect();
    if !places.is_empty() && rng.bool() {
        mutant[places[rng.usize(..places.len())]] = function.to_owned();
        return;
    }
    let place = rng.usize(..mutant.len());
    if is_word(&mutant[place]) || is_literal(&mutant[place]) {
        let argument = match rng.u32(..3) {
            0 => String::new(),
            1 => format!(", {}", choose(rng, &EXTREMES)),
            _ => format!(", {}, {}", choose(rng, &EXTREMES), choose(rng, &EXTREMES)),
        };
        mutant[place] = format!("{function}({}{argument})", mutant[place]);
    }
}

/// Continues with the rest of another statement, or puts one inside.
fn splice(rng: &mut fastrand::Rng, mutant: &mut Vec<String>, other: &[&str]) {
    let at = rng.usize(..mutant.len());
    let from = rng.usize(..other.len());
    let rest = other[from..].iter().map(|token| (*token).to_owned());
    if rng.bool() {
        mutant.truncate(at);
        mutant.extend(rest);
    } else {
        let inner: String = other.concat();
        mutant.insert(at, format!("({inner})"));
    }
}
