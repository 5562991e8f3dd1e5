//! Statements of many parts, and of long ones.

/// A list: the text before it, an item in which `#` is its number, the separator, and the text after it.
type List = (&'static str, &'static str, &'static str, &'static str);

const LISTS: [List; 52] = [
    ("SELECT ", "a AS c#", ", ", " FROM t"),
    ("SELECT ", "#", ", ", ""),
    ("SELECT ", "a", ", ", " FROM t"),
    ("SELECT ", "*", ", ", " FROM t"),
    ("SELECT ", "SUM(a + #) AS c#", ", ", " FROM t"),
    ("SELECT ", "SUM(a) OVER (ORDER BY b + #) AS c#", ", ", " FROM t"),
    ("SELECT ", "(SELECT MAX(a) FROM u) AS c#", ", ", ""),
    ("CREATE MATERIALIZED VIEW v AS SELECT ", "a + # AS c#", ", ", " FROM t"),
    ("CREATE MATERIALIZED VIEW v AS SELECT ", "SUM(a + #) AS c#", ", ", " FROM t GROUP BY b"),
    ("CREATE MATERIALIZED VIEW v AS SELECT ", "LAG(a, #) OVER (ORDER BY b) AS c#", ", ", " FROM t"),
    ("CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE a IN (", "#", ", ", ")"),
    ("CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE ", "b = #", " OR ", ""),
    ("CREATE MATERIALIZED VIEW v AS ", "SELECT a + # AS a FROM t", " UNION ALL ", ""),
    ("CREATE MATERIALIZED VIEW v AS ", "SELECT a FROM t", " UNION ", ""),
    ("CREATE VIEW v AS WITH ", "c# AS (SELECT a FROM t)", ", ", " SELECT 1"),
    ("SELECT a FROM t WHERE a IN (", "#", ", ", ")"),
    ("SELECT a FROM t WHERE s IN (", "'#'", ", ", ")"),
    ("SELECT a FROM t WHERE a NOT IN (", "a + #", ", ", ")"),
    ("SELECT a FROM t WHERE ", "a = #", " OR ", ""),
    ("SELECT a FROM t WHERE ", "a <> #", " AND ", ""),
    ("SELECT a FROM t WHERE ", "(a = # AND b = #)", " OR ", ""),
    ("SELECT ", "#", " + ", ""),
    ("SELECT ", "'#'", " || ", ""),
    ("SELECT COALESCE(", "#", ", ", ")"),
    ("SELECT CONCAT(", "s", ", ", ") FROM t"),
    ("SELECT GREATEST(", "a + #", ", ", ") FROM t"),
    ("SELECT ARRAY[", "#", ", ", "]"),
    ("SELECT {", "'k#': #", ", ", "}"),
    ("SELECT MAP {", "'k#': #", ", ", "}"),
    ("SELECT CASE a ", "WHEN # THEN #", " ", " END FROM t"),
    ("SELECT CASE ", "WHEN a = # THEN b", " ", " END FROM t"),
    ("SELECT a FROM t GROUP BY a, ", "b + #", ", ", ""),
    ("SELECT COUNT(*) FROM t GROUP BY CUBE (", "a + #", ", ", ")"),
    ("SELECT COUNT(*) FROM t GROUP BY ROLLUP (", "a + #", ", ", ")"),
    ("SELECT COUNT(*) FROM t GROUP BY GROUPING SETS (", "(a)", ", ", ")"),
    (
        "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS c FROM t GROUP BY ",
        "CUBE (a, b)",
        ", ",
        "",
    ),
    ("SELECT a FROM t ORDER BY ", "a + #", ", ", ""),
    ("SELECT COUNT(*) FROM ", "t AS t#", ", ", " WHERE FALSE"),
    ("SELECT COUNT(*) FROM t ", "JOIN u AS u# ON t.a = u#.a", " ", ""),
    ("SELECT COUNT(*) FROM t ", "LEFT JOIN u AS u# USING (a)", " ", ""),
    ("CREATE MATERIALIZED VIEW v AS SELECT t.a FROM t ", "JOIN u AS u# ON t.a = u#.a", " ", ""),
    ("WITH ", "c# AS (SELECT a FROM t)", ", ", " SELECT 1"),
    ("VALUES ", "(#)", ", ", ""),
    ("VALUES (", "#", ", ", ")"),
    ("INSERT INTO t (a) VALUES ", "(#)", ", ", ""),
    ("INSERT INTO t (", "a", ", ", ") VALUES (1)"),
    ("UPDATE t SET ", "a = #", ", ", ""),
    ("CREATE TABLE w (", "c# INT", ", ", ")"),
    ("CREATE TABLE w (a INT, PRIMARY KEY (", "a", ", ", "))"),
    ("CREATE TABLE w (a STRUCT<", "f# INT", ", ", ">)"),
    ("", "SELECT #", "; ", ""),
    ("CREATE TABLE w (a INT) WITH (", "'o#' = '#'", ", ", ")"),
];

/// A long token: the text before it, the repeated part, and the text after it.
const LONG: [(&str, &str, &str); 26] = [
    ("SELECT '", "x", "'"),
    ("SELECT '", "''", "'"),
    ("SELECT '", "é", "' FROM t"),
    ("SELECT \"", "x", "\" FROM t"),
    ("SELECT ", "x", " FROM t"),
    ("SELECT ", "9", ""),
    ("SELECT 0.", "9", ""),
    ("SELECT 1e", "9", ""),
    ("SELECT X'", "ff", "'"),
    ("SELECT CAST('", "9", "' AS DECIMAL(38, 2))"),
    ("SELECT '", "9", "'::INT"),
    ("SELECT DATE '", "2026-01-01", "'"),
    ("SELECT INTERVAL '", "1 day ", "'"),
    ("SELECT s LIKE '", "%a", "' FROM t"),
    ("SELECT s SIMILAR TO '", "(a|b)*", "' FROM t"),
    ("SELECT regexp_like(s, '", "(a*)*", "') FROM t"),
    ("SELECT regexp_like(s, '", "(", "') FROM t"),
    ("SELECT to_char(x, '", "%Y", "') FROM t"),
    ("CREATE TABLE w (a INT) WITH ('connectors' = '", "[", "')"),
    ("CREATE TABLE w (a INT) WITH ('connectors' = '", "[{\"a\":", "')"),
    ("", ";", ""),
    ("", "\n", ""),
    ("/*", "/*", ""),
    ("--", "-", "\nSELECT 1"),
    ("SELECT a FROM t -- ", "é", "\n WHERE b = c"),
    ("INSERT INTO t (s) VALUES ('", "x", "')"),
];

/// Numbers of items.
const ITEMS: [usize; 14] =
    [5, 13, 30, 64, 101, 300, 1_000, 3_000, 4_097, 10_000, 30_000, 100_000, 200_000, 400_000];

/// A statement with many parts, or a long one, of at most some `longest` bytes; or many statements.
pub(crate) fn statements(rng: &mut fastrand::Rng, longest: usize) -> Vec<String> {
    if rng.u32(..16) == 0 {
        return views(rng);
    }
    vec![statement(rng, longest)]
}

fn statement(rng: &mut fastrand::Rng, longest: usize) -> String {
    let many = ITEMS[rng.usize(..ITEMS.len())];
    if rng.u32(..4) == 0 {
        let (before, repeated, after) = LONG[rng.usize(..LONG.len())];
        let times = (10 * many).min(longest / repeated.len());
        return format!("{before}{}{after}", repeated.repeat(times));
    }
    let (before, item, separator, after) = LISTS[rng.usize(..LISTS.len())];
    let mut text = before.to_owned();
    for number in 0..many {
        if number > 0 {
            text += separator;
        }
        text += &item.replace('#', &number.to_string());
        if text.len() > longest {
            break;
        }
    }
    text + after
}

/// Views on each other.
fn views(rng: &mut fastrand::Rng) -> Vec<String> {
    let kind = ["VIEW", "LOCAL VIEW"][rng.usize(..2)];
    let many = [10, 100, 300][rng.usize(..3)];
    let view = |number: usize| match number {
        0 => format!("CREATE {kind} v0 AS SELECT a, b FROM t"),
        _ => format!("CREATE {kind} v{number} AS SELECT a, b + 1 AS b FROM v{}", number - 1),
    };
    let views = (0..many).map(view);
    views.chain([format!("SELECT * FROM v{}", many - 1)]).collect()
}
