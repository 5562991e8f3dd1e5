//! Where the engine answers otherwise than DuckDB on purpose, and the lines of the reference that say so.

use super::answer::{Answer, Value};
use super::form::Form;

/// The three answers to one expression; `None` for a database that was not asked.
pub(super) struct Answers<'a> {
    pub(super) own: &'a Answer,
    pub(super) duckdb: Option<&'a Answer>,
    pub(super) postgres: Option<&'a Answer>,
    pub(super) values: &'a [&'static str],
}

impl Answers<'_> {
    /// Whether Postgres says the same.
    fn as_postgres(&self) -> bool {
        self.postgres.is_some_and(|postgres| self.own.is_same(postgres))
    }

    fn fails(&self) -> bool {
        matches!(self.own, Answer::Failed(_))
    }

    fn duckdb_fails(&self) -> bool {
        matches!(self.duckdb, Some(Answer::Failed(_) | Answer::Value(Value::Null)))
    }

    fn has(&self, values: &[&str]) -> bool {
        self.values.iter().any(|value| values.contains(value))
    }
}

/// A reason to differ.
pub(super) struct Deviation {
    /// A part of a line of the reference, which says it.
    pub(super) line: &'static str,
    applies: fn(&Form, &Answers<'_>) -> bool,
}

const fn because(line: &'static str, applies: fn(&Form, &Answers<'_>) -> bool) -> Deviation {
    Deviation { line, applies }
}

fn is(form: &Form, names: &[&str]) -> bool {
    names.contains(&form.name.as_str())
}

/// A cast of a name like `CAST integer`, or the same with TRY.
fn is_cast(form: &Form, to: &[&str]) -> bool {
    let kind = form.name.strip_prefix("TRY_").unwrap_or(&form.name).strip_prefix("CAST ");
    kind.is_some_and(|kind| to.contains(&kind))
}

const NUMBERS: [&str; 8] =
    ["tinyint", "smallint", "integer", "bigint", "unsigned", "decimal", "wide", "real"];
const NUMBER_KINDS: [&str; 12] = [
    "tinyint",
    "smallint",
    "integer",
    "bigint",
    "utinyint",
    "usmallint",
    "uinteger",
    "ubigint",
    "decimal",
    "wide",
    "real",
    "double",
];
const DECIMALS: [&str; 2] = ["decimal", "wide"];

const DEVIATIONS: &[Deviation] = &[
    because(
        "| `n / 0` | an error, of its row in a view | Postgres (DuckDB: NULL) |",
        |form, answers| {
            is(form, &["/", "%", "//", "mod", "div", "divide", "/ (interval)", "fmod"])
                && answers.has(&["0", "-0"])
                && answers.fails()
        },
    ),
    because("| `1.0 / 3` | 0.3333333333333333", |form, _| {
        is(form, &["/", "divide"]) && form.has(&DECIMALS)
    }),
    because("| `n ^ -1` for a zero, `sqrt` of a negative number |", |form, answers| {
        is(form, &["^", "pow", "power", "sqrt"]) && answers.fails()
    }),
    because("| `substr(t, i, n)` of a negative length,", |form, answers| {
        is(form, &["substr", "substring", "split_part"]) && answers.fails() && answers.as_postgres()
    }),
    because("| `n << m` beyond the integer,", |form, _| is(form, &["<<"])),
    because("| `DECIMAL * n` | has the digits that it needs,", |form, answers| {
        is(form, &["*", "multiply"]) && form.has(&DECIMALS) && answers.duckdb_fails()
    }),
    because("| `~n` of an unsigned integer |", |form, _| is(form, &["~"])),
    because("| `UPPER('ß')` |", |form, answers| {
        is(form, &["upper", "ucase"]) && answers.has(&["straße ÄÖÜ"])
    }),
    because("| `reverse(t)` | the characters;", |form, answers| {
        is(form, &["reverse"]) && answers.as_postgres()
    }),
    because("| `t \\|\\| x`, `concat` | numbers and times as", |form, _| {
        is(form, &["||", "concat"])
            && form.kinds.iter().any(|kind| kind.name != "text")
            && !form.has(&["integers", "texts"])
    }),
    because("- **Times as texts** have a `T`", |form, _| {
        is_cast(form, &["text"]) && form.has(&["timestamp", "timestamptz"])
    }),
    because("| intervals as text |", |form, _| is_cast(form, &["text"]) && form.has(&["interval"])),
    because("| `CAST(x AS VARCHAR)` of numbers and times, in lists too |", |form, _| {
        is_cast(form, &["text"]) && form.has(&["real", "double", "boolean"])
    }),
    because("**Texts as bytes** are their UTF-8", |form, _| {
        is_cast(form, &["bytes", "text"]) && form.has(&["text", "bytes"]) || is(form, &["decode"])
    }),
    because("| `CAST('1.5' AS INTEGER)`, `CAST('0x1F' AS INTEGER)` |", |form, answers| {
        is_cast(form, &NUMBERS[..5])
            && form.has(&["number_text"])
            && answers.has(&["1.5", "0x1F", "1e3", ".5", "5.", "1_000"])
    }),
    because("| `CAST('1_000' AS INTEGER)` and other texts of numbers |", |form, answers| {
        is_cast(form, &["decimal", "wide", "real", "double"])
            && form.has(&["number_text"])
            && answers.has(&["1_000", "0x1F", ".5", "5."])
    }),
    because("| `CAST(text AS BOOLEAN)` |", |form, answers| {
        is_cast(form, &["boolean"]) && answers.has(&["on", "off", " true ", "YES", "no", "f", "t"])
    }),
    because("| `CAST` of `DATE`, `TIME` or `TIMESTAMP` to a number |", |form, _| {
        (is_cast(form, &NUMBERS) || is_cast(form, &["double"]))
            && form.has(&["date", "time", "timestamp", "timestamptz"])
    }),
    because("| `CAST` of a number to one of these, or to `BYTEA` |", |form, answers| {
        is_cast(form, &["date", "time", "timestamp", "timestamptz", "bytes"])
            && form.kinds.iter().any(|kind| NUMBER_KINDS.contains(&kind.name))
            && answers.duckdb_fails()
            && !answers.own.to_string().contains("ERROR")
    }),
    because("| an overflow of integers or of `DECIMAL` | an error,", |form, answers| {
        is(form, &["- (sign)"]) && answers.fails()
    }),
    because("| `epoch_ms` of microseconds |", |form, _| is(form, &["epoch_ms"])),
    because("| `strftime(t, format)` of the year 1 |", |form, answers| {
        is(form, &["strftime"]) && answers.duckdb_fails()
    }),
    because(
        "| `to_date` and `to_timestamp` of a text that the pattern does not match",
        |form, answers| is(form, &["to_date", "to_timestamp (text)"]) && answers.fails(),
    ),
    because("| `CAST('2024-01-01' AS TIME)` |", |form, answers| {
        is_cast(form, &["time"]) && form.has(&["time_text"]) && answers.fails()
    }),
    because("| `CAST(timestamptz AS TIME)` |", |form, answers| {
        is_cast(form, &["time"]) && form.has(&["timestamptz"]) && answers.as_postgres()
    }),
    because("| NULL beside lists:", |form, answers| {
        is(form, &["||", "list_intersect", "list_resize", "map_extract", "[ ] of a map"])
            && answers.has(&["NULL"])
    }),
    because("| `string_split(t, NULL)` |", |form, answers| {
        is(
            form,
            &[
                "string_split",
                "str_split",
                "string_to_array",
                "regexp_split_to_array",
                "array_to_string",
            ],
        ) && answers.has(&["NULL"])
    }),
    because("| `list_distinct` |", |form, _| is(form, &["list_distinct"])),
    because("| `list_string_agg` of an empty list |", |form, _| is(form, &["list_string_agg"])),
    because("| `to_json`, `json_array`, `json_object` of infinities", |form, answers| {
        is(form, &["to_json", "json_array", "json_object"])
            && answers.has(&["NaN", "Infinity", "-Infinity"])
    }),
    because("| `DATE ± n` beyond", |form, answers| {
        is(form, &["+ (days)", "- (days)"]) && answers.fails()
    }),
    because("| `century` and `millennium` of an interval |", |form, _| {
        form.has(&["interval"])
            && is(form, &["century", "millennium", "EXTRACT century", "EXTRACT millennium"])
    }),
    because("| `date_trunc` to decades, centuries", |form, answers| {
        is(form, &["date_trunc"])
            && answers.fails()
            && answers.has(&["decade", "century", "millennium"])
    }),
    because("| `date_trunc` of a `TIME`", |form, _| {
        is(form, &["date_trunc"]) && form.has(&["time"])
    }),
    because("| `least(-0.0, 0.0)` |", |form, answers| {
        is(form, &["least", "greatest"]) && form.has(&["real", "double"]) && answers.has(&["-0"])
    }),
    because("| `list_concat(NULL, NULL)` |", |form, answers| {
        is(form, &["list_concat"]) && answers.as_postgres()
    }),
    because("| `list_intersect` of lists that both have NULL |", |form, _| {
        is(form, &["list_intersect"])
    }),
    because("without `ESCAPE` a backslash escapes, as in Postgres", |form, answers| {
        is(form, &["LIKE", "NOT LIKE", "ILIKE"]) && answers.as_postgres()
    }),
    because("| `list_contains(l, NULL)` |", |form, answers| {
        is(form, &["list_contains", "array_contains"]) && answers.has(&["NULL"])
    }),
    because("| `CAST(' 2024-02-29 ' AS TIMESTAMP)` |", |form, answers| {
        is_cast(form, &["timestamp", "timestamptz"]) && answers.has(&[" 2024-02-29 "])
    }),
    because("| `CAST('1.5' AS INTEGER)`, `CAST('0x1F' AS INTEGER)` |", |form, answers| {
        is(form, &["TRY_CAST list"]) && answers.has(&["[1.5, x]"])
    }),
    because("| `lpad(t, n, '')` |", |form, answers| {
        is(form, &["lpad", "rpad"]) && answers.as_postgres()
    }),
    because("| `nextafter` of a `REAL`, `even(5e-324)` |", |form, _| {
        is(form, &["nextafter", "even"]) && form.has(&["real", "double"])
    }),
    because("| `format('{:.2f}', x)` and `printf` of large numbers |", |form, answers| {
        is(form, &["format", "printf"]) && answers.has(&["1.7976931348623157e308"])
    }),
    because("| `entropy` of nothing, `list_entropy([])` |", |form, answers| {
        is(form, &["list_entropy"]) && answers.has(&[""])
    }),
    because("least of the values that are equally frequent", |form, _| is(form, &["list_mode"])),
    because(
        "| `list_inner_product`, `list_distance` and the like of lists with NULL |",
        |form, _| {
            is(
                form,
                &[
                    "list_inner_product",
                    "list_negative_inner_product",
                    "list_distance",
                    "list_cosine_distance",
                    "list_cosine_similarity",
                    "array_cosine_similarity",
                    "array_distance",
                    "array_negative_inner_product",
                    "array_negative_dot_product",
                    "list_negative_dot_product",
                ],
            )
        },
    ),
    because("| `least`, `greatest` of intervals |", |form, answers| {
        is(form, &["least", "greatest"]) && form.has(&["interval"]) && answers.as_postgres()
    }),
    because("| `make_timestamp_ns` |", |form, _| is(form, &["make_timestamp_ns"])),
    because("| `make_timestamptz` of a month 0 or 13 |", |form, answers| {
        is(form, &["make_timestamptz"]) && answers.fails()
    }),
    because("| `INTERVAL * n` of hours beyond 292 years |", |form, answers| {
        is(form, &["* (interval)", "/ (interval)"]) && answers.fails()
    }),
    because("| `SIMILAR TO` | the patterns of the standard |", |form, _| is(form, &["SIMILAR TO"])),
    because(
        "| `to_timestamp(n)` | a `TIMESTAMP` in UTC, without a time zone |",
        |form, answers| {
            is(form, &["to_timestamp", "to_timestamp (text)"])
                && matches!(answers.own, Answer::Value(Value::Timestamp(_)))
        },
    ),
    because("| `DECIMAL` and `DOUBLE`, in arithmetic,", |form, _| {
        is(form, &["+", "-", "*", "%", "/"]) && form.has(&DECIMALS) && form.has(&["real", "double"])
    }),
];

/// The reason for which the engine answers otherwise; `None` if it has none.
pub(super) fn deviation(form: &Form, answers: &Answers<'_>) -> Option<&'static Deviation> {
    DEVIATIONS.iter().find(|deviation| (deviation.applies)(form, answers))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTIONS: &str = include_str!("../../../../docs/reference/functions.md");
    const SQL: &str = include_str!("../../../../docs/reference/sql.md");

    #[test]
    fn every_deviation_is_a_line_of_the_reference() {
        for deviation in DEVIATIONS {
            let is_said = FUNCTIONS.contains(deviation.line) || SQL.contains(deviation.line);
            assert!(is_said, "not in the reference: {}", deviation.line);
        }
    }
}
