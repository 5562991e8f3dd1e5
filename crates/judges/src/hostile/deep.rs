//! Statements that nest.

/// The texts of a level before and after its contents, and the innermost part.
type Nest = (&'static str, &'static str, &'static str);

/// How expressions nest. A chain nests, too: to the left or right.
const EXPRESSIONS: [Nest; 78] = [
    ("(", "1", ")"),
    ("((a + ", "1", "))"),
    ("CAST(", "a", " AS BIGINT)"),
    ("TRY_CAST(", "s", " AS TEXT)"),
    ("CASE WHEN a = 1 THEN 2 ELSE ", "3", " END"),
    ("CASE ", "a", " WHEN 1 THEN 2 END"),
    ("CASE WHEN ", "o", " THEN TRUE END"),
    ("ABS(", "a", ")"),
    ("COALESCE(a, ", "b", ")"),
    ("CONCAT(s, ", "s", ")"),
    ("NULLIF(", "a", ", 7)"),
    ("NOT ", "o", ""),
    ("- ", "a", ""),
    ("-(", "a", ")"),
    ("+ ", "a", ""),
    ("~ ", "a", ""),
    ("INTERVAL ", "'1 day'", ""),
    ("INTERVAL (", "'1 day'", ")"),
    ("(SELECT ", "1", ")"),
    ("(SELECT MAX(a) FROM t WHERE a = ", "1", ")"),
    ("EXISTS (SELECT 1 FROM u WHERE ", "TRUE", ")"),
    ("a IN (SELECT a FROM u WHERE ", "TRUE", ")"),
    ("a = ANY (SELECT a FROM u WHERE ", "TRUE", ")"),
    ("a IN (1, ", "2", ")"),
    ("ARRAY[", "1", "]"),
    ("[", "1", "]"),
    ("[1, [", "1", "]]"),
    ("{'a': ", "1", "}"),
    ("MAP {'a': ", "1", "}"),
    ("ROW(", "1", ")"),
    ("struct(", "a", ")"),
    ("named_struct('a', ", "a", ")"),
    ("array_append(", "l", ", 4)"),
    ("make_array(", "a", ")"),
    ("", "l", "[1]"),
    ("", "l", "[1:2]"),
    ("", "u", ".a"),
    ("", "a", "::BIGINT"),
    ("", "a", "::TEXT::INT"),
    ("", "a", " + a"),
    ("", "b", " * 1"),
    ("", "n", " - n"),
    ("a + ", "a", ""),
    ("", "s", " || s"),
    ("", "o", " OR o"),
    ("", "o", " AND NOT o"),
    ("a = 1 OR b = 2 AND ", "o", ""),
    ("", "a", " = 1 OR a = 2"),
    ("", "s", " LIKE s"),
    ("", "s", " LIKE 's' ESCAPE '!'"),
    ("s ILIKE ", "s", ""),
    ("", "a", " BETWEEN 1 AND 2"),
    ("a BETWEEN 1 AND ", "2", ""),
    ("", "o", " IS NULL"),
    ("", "o", " IS NOT TRUE"),
    ("", "o", " IS DISTINCT FROM o"),
    ("", "s", " COLLATE \"C\""),
    ("", "x", " AT TIME ZONE 'UTC'"),
    ("EXTRACT(YEAR FROM ", "x", ")"),
    ("SUBSTRING(", "s", " FROM 1 FOR 2)"),
    ("POSITION('a' IN ", "s", ")"),
    ("TRIM(BOTH ' ' FROM ", "s", ")"),
    ("OVERLAY(", "s", " PLACING 'x' FROM 1)"),
    ("CEIL(", "d", " TO DAY)"),
    ("date_trunc('day', ", "x", ")"),
    ("", "a", " = a"),
    ("", "a", " < a"),
    ("", "a", " -> 'a'"),
    ("", "a", " % 3"),
    ("", "a", " ^ 1"),
    ("", "a", " & 1"),
    ("", "o", " IN (TRUE)"),
    ("SUM(", "a", ")"),
    ("SUM(", "a", ") OVER ()"),
    ("COUNT(*) OVER (ORDER BY ", "a", ")"),
    ("SUM(a) FILTER (WHERE ", "o", ")"),
    ("string_agg(s, ',' ORDER BY ", "s", ")"),
    ("GROUPING(", "a", ")"),
];

/// How queries nest.
const QUERIES: [Nest; 30] = [
    ("(", "SELECT a FROM t", ")"),
    ("SELECT * FROM (", "SELECT a FROM t", ") AS r"),
    ("SELECT * FROM (", "t", ")"),
    ("WITH c AS (", "SELECT a FROM t", ") SELECT * FROM c"),
    ("WITH c AS (SELECT 1) ", "SELECT a FROM t", ""),
    ("SELECT a FROM t UNION ", "SELECT a FROM t", ""),
    ("SELECT a FROM t UNION ALL ", "SELECT a FROM t", ""),
    ("", "SELECT a FROM t", " INTERSECT SELECT a FROM u"),
    ("SELECT a FROM t EXCEPT (", "SELECT a FROM t", ")"),
    ("(", "SELECT a FROM t", ") UNION ALL SELECT a FROM t"),
    ("SELECT a FROM t WHERE a IN (", "SELECT a FROM t", ")"),
    ("SELECT a FROM t WHERE a NOT IN (", "SELECT a FROM u", ")"),
    ("SELECT a FROM t WHERE EXISTS (", "SELECT a FROM t", ")"),
    ("SELECT (", "SELECT MAX(a) FROM t", ") AS a"),
    ("SELECT t.a FROM t JOIN (", "SELECT a FROM t", ") AS r ON t.a = r.a"),
    ("SELECT t.a FROM t LEFT JOIN (", "SELECT a FROM u", ") AS r USING (a)"),
    ("SELECT * FROM t, LATERAL (", "SELECT a FROM t", ") AS r"),
    ("SELECT a FROM (", "SELECT a, b FROM t", ") AS r GROUP BY a"),
    ("SELECT DISTINCT a FROM (", "SELECT a FROM t", ") AS r"),
    ("SELECT a FROM (", "SELECT a FROM t", ") AS r ORDER BY a LIMIT 3"),
    ("SELECT ROW_NUMBER() OVER (ORDER BY a) AS a FROM (", "SELECT a FROM t", ") AS r"),
    ("SELECT * FROM t NATURAL JOIN (", "t", ")"),
    ("SELECT 1 FROM t JOIN (t AS t1 JOIN (", "u", ") ON TRUE) ON TRUE"),
    ("EXPLAIN ", "SELECT 1", ""),
    ("SELECT * FROM unnest(ARRAY[(", "SELECT 1", ")])"),
    ("VALUES ((", "SELECT 1", "))"),
    ("SELECT a FROM t GROUP BY GROUPING SETS (", "a", ")"),
    ("SELECT a FROM t GROUP BY GROUPING SETS (GROUPING SETS ((a), ", "()", "))"),
    ("SELECT COUNT(*) FROM t GROUP BY CUBE (ROLLUP (", "a, b", "))"),
    ("TABLE ", "t", ""),
];

/// How types nest.
const TYPES: [Nest; 8] = [
    ("", "INT", "[]"),
    ("ARRAY<", "INT", ">"),
    ("STRUCT<a ", "INT", ">"),
    ("STRUCT(a ", "INT", ")"),
    ("MAP<TEXT, ", "INT", ">"),
    ("ROW(a ", "INT", ")"),
    ("MAP<INT, ARRAY<", "STRUCT<a INT>", ">>"),
    ("", "INT", " ARRAY"),
];

/// Where an expression stands, at `#`.
const AROUND: [&str; 17] = [
    "SELECT # FROM t",
    "SELECT # AS c FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT # AS c FROM t",
    "CREATE VIEW w AS SELECT # AS c FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE #",
    "SELECT a FROM t WHERE #",
    "SELECT COUNT(*) FROM t JOIN u ON #",
    "SELECT a FROM t GROUP BY a HAVING #",
    "SELECT COUNT(*) FROM t GROUP BY #",
    "SELECT a FROM t ORDER BY #",
    "SELECT a FROM t LIMIT #",
    "INSERT INTO t (a) VALUES (#)",
    "UPDATE t SET a = # WHERE a = 1",
    "DELETE FROM t WHERE #",
    "CREATE TABLE w (a INT DEFAULT #)",
    "EXPLAIN SELECT # FROM t",
    "VALUES (#)",
];

/// Numbers of levels: about the limits, and far beyond them.
const LEVELS: [usize; 18] = [
    3, 10, 25, 40, 50, 64, 100, 128, 200, 300, 500, 999, 1_001, 3_000, 10_000, 30_000, 100_000,
    300_000,
];

/// A statement with many levels, and at most some `longest` bytes.
pub(crate) fn statement(rng: &mut fastrand::Rng, longest: usize) -> String {
    let levels = LEVELS[rng.usize(..LEVELS.len())];
    let mut statement = match rng.u32(..10) {
        0..5 => {
            let nested = nested(EXPRESSIONS[rng.usize(..EXPRESSIONS.len())], levels, longest);
            around(rng, &nested)
        }
        5 => {
            let mixed = mixed(rng, levels.min(400));
            around(rng, &mixed)
        }
        6..9 => {
            let query = nested(QUERIES[rng.usize(..QUERIES.len())], levels, longest);
            match rng.u32(..4) {
                0 => format!("CREATE MATERIALIZED VIEW v AS {query}"),
                1 => format!("INSERT INTO t (a) {query}"),
                _ => query,
            }
        }
        _ => {
            let data_type = nested(TYPES[rng.usize(..TYPES.len())], levels, longest);
            match rng.u32(..3) {
                0 => format!("CREATE TABLE w (a {data_type})"),
                1 => format!("SELECT CAST(NULL AS {data_type})"),
                _ => format!("CREATE MATERIALIZED VIEW v AS SELECT NULL::{data_type} AS c FROM t"),
            }
        }
    };
    if rng.u32(..10) == 0 {
        // All is ASCII.
        statement.truncate(rng.usize(..=statement.len()));
    }
    statement
}

fn nested((before, inner, after): Nest, levels: usize, longest: usize) -> String {
    let levels = levels.min(longest / (before.len() + after.len()));
    format!("{}{inner}{}", before.repeat(levels), after.repeat(levels))
}

/// Expressions of several kinds, one in another.
fn mixed(rng: &mut fastrand::Rng, levels: usize) -> String {
    let kinds: Vec<Nest> = (0..3).map(|_| EXPRESSIONS[rng.usize(..EXPRESSIONS.len())]).collect();
    let chosen: Vec<Nest> = (0..levels).map(|_| kinds[rng.usize(..kinds.len())]).collect();
    let mut text = String::new();
    for (before, ..) in &chosen {
        text += before;
    }
    text += kinds[0].1;
    for (.., after) in chosen.iter().rev() {
        text += after;
    }
    text
}

fn around(rng: &mut fastrand::Rng, expression: &str) -> String {
    AROUND[rng.usize(..AROUND.len())].replacen('#', expression, 1)
}
