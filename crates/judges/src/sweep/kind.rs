//! Kinds of arguments: a type in each dialect, with the values at its edges.

/// The databases that answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Own,
    DuckDb,
    Postgres,
}

/// A type, or a role that texts play, and its values.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// The type in the engine, in DuckDB, and in Postgres; empty where there is none.
    types: [&'static str; 3],
    /// As texts that are cast to the type; `NULL` is NULL.
    pub(super) values: &'static [&'static str],
}

impl Kind {
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    pub(super) fn sql(&self, dialect: Dialect) -> Option<&'static str> {
        Some(self.types[dialect as usize]).filter(|sql| !sql.is_empty())
    }

    /// A constant of this kind; `None` if the dialect has no such type.
    pub(super) fn literal(&self, dialect: Dialect, value: &str) -> Option<String> {
        let sql = self.sql(dialect)?;
        if value == "NULL" {
            return Some(format!("CAST(NULL AS {sql})"));
        }
        Some(match (self.name, dialect) {
            ("bytes", Dialect::Own) => format!("X'{value}'"),
            ("bytes", Dialect::DuckDb) => format!("unhex('{value}')"),
            ("bytes", Dialect::Postgres) => format!("CAST('\\x{value}' AS {sql})"),
            ("integers" | "texts" | "doubles", Dialect::Postgres) => {
                format!("CAST(ARRAY[{value}] AS {sql})")
            }
            ("integers" | "texts" | "doubles", _) => format!("CAST([{value}] AS {sql})"),
            ("struct" | "map", _) => format!("CAST({value} AS {sql})"),
            ("interval", _) => format!("INTERVAL '{value}'"),
            _ => format!("CAST('{}' AS {sql})", value.replace('\'', "''")),
        })
    }

    /// The type of a column, and how an expression reads it: intervals are columns of texts.
    pub(super) fn column(&self, name: &str) -> (&'static str, String) {
        match self.name {
            "interval" => ("VARCHAR", format!("CAST({name} AS INTERVAL)")),
            _ => (self.types[0], name.to_owned()),
        }
    }

    /// A value of such a column.
    pub(super) fn stored(&self, value: &str) -> Option<String> {
        match self.name {
            "interval" if value == "NULL" => Some("CAST(NULL AS VARCHAR)".to_owned()),
            "interval" => Some(format!("'{value}'")),
            _ => self.literal(Dialect::Own, value),
        }
    }
}

/// The kinds of a group by its name, or the one kind of that name; empty if there is neither.
pub(super) fn kinds(name: &str) -> Vec<&'static Kind> {
    match GROUPS.iter().find(|(group, _)| *group == name) {
        Some((_, names)) => names.iter().flat_map(|name| kinds(name)).collect(),
        None => Kind::of(name).into_iter().collect(),
    }
}

const GROUPS: &[(&str, &[&str])] = &[
    ("signed", &["tinyint", "smallint", "integer", "bigint"]),
    ("unsigned", &["utinyint", "usmallint", "uinteger", "ubigint"]),
    ("whole", &["signed", "unsigned"]),
    ("exact", &["whole", "decimal", "wide"]),
    ("float", &["real", "double"]),
    ("number", &["exact", "float"]),
    ("day", &["date", "timestamp", "timestamptz"]),
    ("moment", &["date", "time", "timestamp", "timestamptz", "interval"]),
    ("scalar", &["boolean", "number", "text", "moment"]),
    ("nested", &["integers", "texts", "struct", "map"]),
    ("any", &["scalar", "bytes", "nested"]),
    ("main", &["boolean", "integer", "bigint", "decimal", "double", "text", "moment"]),
];

const TEXT: [&str; 3] = ["VARCHAR", "VARCHAR", "VARCHAR"];
const DATES: &[&str] = &[
    "0001-01-01",
    "9999-12-31",
    "2024-02-29",
    "2023-02-28",
    "1900-02-28",
    "2000-12-31",
    "1970-01-01",
    "1969-12-31",
    "2024-03-31",
    "2024-10-27",
    "2021-01-03",
    "NULL",
];
/// Also around the hours at which clocks of Europe, America and Australia change.
const TIMESTAMPS: &[&str] = &[
    "0001-01-01 00:00:00",
    "9999-12-31 23:59:59.999999",
    "2024-02-29 12:34:56.789012",
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "2024-03-31 01:00:00",
    "2024-03-31 02:30:00",
    "2024-10-27 00:59:59",
    "2024-10-27 01:30:00",
    "2024-10-27 02:30:00",
    "2024-03-10 02:30:00",
    "2024-11-03 01:30:00",
    "2024-04-07 02:30:00",
    "2000-12-31 23:00:00.5",
    "NULL",
];

#[rustfmt::skip]
const KINDS: &[Kind] = &[
    Kind { name: "boolean", types: ["BOOLEAN"; 3], values: &["true", "false", "NULL"] },
    Kind { name: "tinyint", types: ["TINYINT", "TINYINT", "SMALLINT"], values: &["-128", "127", "0", "1", "-1", "7", "NULL"] },
    Kind { name: "smallint", types: ["SMALLINT"; 3], values: &["-32768", "32767", "0", "1", "-1", "12", "NULL"] },
    Kind { name: "integer", types: ["INTEGER"; 3], values: &["-2147483648", "2147483647", "0", "1", "-1", "3", "100", "NULL"] },
    Kind { name: "bigint", types: ["BIGINT"; 3], values: &["-9223372036854775808", "9223372036854775807", "0", "1", "-1", "2", "10", "9007199254740993", "NULL"] },
    Kind { name: "utinyint", types: ["TINYINT UNSIGNED", "UTINYINT", ""], values: &["0", "255", "1", "3", "NULL"] },
    Kind { name: "usmallint", types: ["SMALLINT UNSIGNED", "USMALLINT", ""], values: &["0", "65535", "1", "NULL"] },
    Kind { name: "uinteger", types: ["INTEGER UNSIGNED", "UINTEGER", ""], values: &["0", "4294967295", "1", "5", "NULL"] },
    Kind { name: "ubigint", types: ["BIGINT UNSIGNED", "UBIGINT", ""], values: &["0", "18446744073709551615", "1", "9", "NULL"] },
    Kind { name: "decimal", types: ["DECIMAL(18,4)"; 3], values: &["0", "99999999999999.9999", "-99999999999999.9999", "0.0001", "-2.5", "2.5", "1.1", "3.4999", "NULL"] },
    Kind { name: "wide", types: ["DECIMAL(38,10)"; 3], values: &["0", "9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999", "0.0000000001", "-1.5", "12.3456789012", "NULL"] },
    Kind { name: "real", types: ["REAL"; 3], values: &["0", "-0", "1.5", "-2.5", "NaN", "Infinity", "-Infinity", "3.4028235e38", "1.1754944e-38", "0.1", "NULL"] },
    Kind { name: "double", types: ["DOUBLE", "DOUBLE", "DOUBLE PRECISION"], values: &["0", "-0", "1", "0.5", "-2.5", "2.5", "NaN", "Infinity", "-Infinity", "1.7976931348623157e308", "2.2250738585072014e-308", "5e-324", "1e17", "0.1", "NULL"] },
    Kind { name: "text", types: TEXT, values: &["", "a", "Hello, World", "straße ÄÖÜ", "日本語", "😀e\u{301}𝕏", "  blank ", "a_b%c\\d", "it's", "A\nB\tC", "123", "NULL"] },
    Kind { name: "bytes", types: ["BYTEA", "BLOB", "BYTEA"], values: &["", "00", "00FF80", "616263", "F09F9880", "NULL"] },
    Kind { name: "date", types: ["DATE"; 3], values: DATES },
    Kind { name: "time", types: ["TIME"; 3], values: &["00:00:00", "23:59:59.999999", "12:34:56.789", "01:30:00", "02:00:00", "NULL"] },
    Kind { name: "timestamp", types: ["TIMESTAMP"; 3], values: TIMESTAMPS },
    Kind { name: "timestamptz", types: ["TIMESTAMPTZ"; 3], values: TIMESTAMPS },
    Kind { name: "interval", types: ["INTERVAL"; 3], values: &["0 seconds", "1 month", "-1 month", "13 months 17 days", "1 day", "25 hours", "-1 day 2 hours", "1 microsecond", "100 years", "2 days 3 hours 4 minutes 5.678901 seconds", "NULL"] },
    Kind { name: "integers", types: ["INTEGER[]"; 3], values: &["", "1", "3, 1, 2", "NULL", "1, NULL, 2, 2", "2147483647, -2147483648"] },
    Kind { name: "doubles", types: ["DOUBLE[]", "DOUBLE[]", "DOUBLE PRECISION[]"], values: &["", "1.5", "3, 1, 2.25", "NULL", "1, NULL, 2, 2", "CAST('NaN' AS REAL), 1, CAST('Infinity' AS REAL)"] },
    Kind { name: "texts", types: ["VARCHAR[]"; 3], values: &["", "'a'", "'b', 'a', 'b'", "NULL", "'x', NULL, ''", "'日本', '😀'"] },
    Kind { name: "struct", types: ["STRUCT(a INTEGER, b VARCHAR)", "STRUCT(a INTEGER, b VARCHAR)", ""], values: &["{'a': 1, 'b': 'x'}", "{'a': -1, 'b': ''}", "NULL"] },
    Kind { name: "map", types: ["MAP<VARCHAR, INTEGER>", "MAP(VARCHAR, INTEGER)", ""], values: &["MAP {'k': 1}", "MAP {'k': 1, 'l': 2}", "NULL"] },
    // Roles.
    Kind { name: "small", types: ["INTEGER"; 3], values: &["0", "1", "-1", "2", "3", "-3", "100", "NULL"] },
    Kind { name: "count", types: ["INTEGER"; 3], values: &["0", "1", "2", "5", "NULL"] },
    Kind { name: "digits", types: ["INTEGER"; 3], values: &["0", "1", "2", "4", "-1", "-2"] },
    Kind { name: "month_number", types: ["INTEGER"; 3], values: &["1", "2", "12", "0", "13", "NULL"] },
    Kind { name: "year_number", types: ["INTEGER"; 3], values: &["1", "9999", "2024", "2023", "NULL"] },
    Kind { name: "epoch_number", types: ["BIGINT"; 3], values: &["0", "1", "-1", "1709210096", "1709210096789", "253402300799", "NULL"] },
    Kind { name: "unit", types: TEXT, values: &["year", "month", "day", "hour", "minute", "second", "week", "quarter", "decade", "century", "millennium", "millisecond", "microsecond", "nonsense", "NULL"] },
    Kind { name: "zone", types: TEXT, values: ZONES },
    Kind { name: "json", types: TEXT, values: &["{\"a\": 1, \"b\": [1, 2.5, null, \"x\"], \"c\": {\"d\": true}}", "[1, 2, 3]", "null", "\"text\"", "12345678901234567890", "{}", "NULL"] },
    Kind { name: "json_path", types: TEXT, values: &["$.a", "$.b[0]", "$.b[3]", "$.c.d", "a", "/b/1", "$.none", "NULL"] },
    Kind { name: "regex", types: TEXT, values: &["a", "^[A-Z]", "l+", "(\\w+), (\\w+)", "\\d", "^$", "[äö]", "NULL"] },
    Kind { name: "like", types: TEXT, values: &["", "%", "_", "%l%", "a\\_b%", "H_llo%", "__", "%😀%", "NULL"] },
    Kind { name: "part", types: TEXT, values: &["", "a", "l", ", ", "ß", "本", "😀", "NULL"] },
    Kind { name: "number_text", types: TEXT, values: &["0", "-1", "1.5", " 42 ", "1e3", "NaN", "Infinity", "-inf", "99999999999999999999", "12abc", "", "0x1F", "1_000", "+7", ".5", "5.", "NULL"] },
    Kind { name: "time_text", types: TEXT, values: &["2024-02-29", "2023-02-29", "2024-2-3", "2024-02-29 12:30", "2024-02-29T12:30:05.123456", "2024-02-29 12:30:05+02", "2024-02-29 12:30:05Z", "0001-01-01", "9999-12-31 23:59:59.999999", "12:30", "12:30:05.1", "24:00:00", "noon", "", " 2024-02-29 ", "NULL"] },
    Kind { name: "boolean_text", types: TEXT, values: &["true", "f", "YES", "0", "1", "on", "off", "no", "t", "2", "", " true ", "NULL"] },
    Kind { name: "interval_text", types: TEXT, values: &["1 day", "1 month 2 days", "-3 hours", "1 year 2 months 3 days", "1.5 hours", "2 weeks", "nonsense", "NULL"] },
    Kind { name: "path", types: TEXT, values: &["", "file", "a/b.c", "/a/b/c.tar.gz", "a/b/", "a//b", "/", "a\\b/c.d", ".hidden", "日本/😀.txt", "NULL"] },
    Kind { name: "list_text", types: TEXT, values: &["[]", "[1, 2]", " [ 1 ,2 ] ", "[NULL, 3]", "[1, , 2]", "[a, 'b, c', \"d\"]", "[[1], [2, 3]]", "[it's]", "{1,2}", "[1, 2", "", "1", "['日本', 😀]", "[1.5, x]", "NULL"] },
    Kind { name: "struct_text", types: TEXT, values: &["{'a': 1, 'b': 'x'}", "{b: y z, a: -1}", "{\"a\": 1}", "{}", "(1, x)", "(1)", "{a: 1, c: 2}", "{a: x}", "{a: 1, a: 2}", "{'a': NULL, 'b': 'NULL'}", "[1]", "", "NULL"] },
    Kind { name: "map_text", types: TEXT, values: &["{}", "{k=1}", "{k=1, 'l, m'=2}", "{k: 1}", "{k=1, k=2}", "{k=NULL}", "{k=x}", "", "NULL"] },
    Kind { name: "hex_text", types: TEXT, values: &["", "00ff", "FF", "616263", "zz", "NULL"] },
    Kind { name: "base64_text", types: TEXT, values: &["", "YQ==", "YWJj", "8J+YgA==", "NULL"] },
];

const ZONES: &[&str] = &[
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Asia/Tehran",
    "Australia/Sydney",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "Africa/Casablanca",
    "Africa/Cairo",
    "America/Santiago",
    "Nowhere/Land",
    "NULL",
];
