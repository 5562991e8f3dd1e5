//! Statements of other systems, refused with what to write instead.

use crate::error::{Error, Position, SqlState, keyword_meant};

/// First words of statements that Alluvium does not support, and what to write instead.
#[rustfmt::skip]
const REFUSED: &[(&str, &str)] = &[
    ("ALTER", ""),
    ("ANALYZE", ""),
    ("ATTACH", ""),
    ("CACHE", ""),
    ("CALL", ""),
    ("CLOSE", "CLOSE takes the name of a cursor, or ALL"),
    ("COMMENT", "write COMMENT ON TABLE t IS 'text'"),
    ("CREATE DATABASE", "there is one, called alluvium: write CREATE SCHEMA"),
    ("CREATE OR REPLACE FUNCTION", "DROP FUNCTION first, and what calls it"),
    ("CREATE RECURSIVE", "write CREATE VIEW … AS WITH RECURSIVE, or DECLARE RECURSIVE VIEW"),
    ("CREATE TEMP VIEW", "write CREATE LOCAL VIEW"),
    ("CREATE TEMPORARY VIEW", "write CREATE LOCAL VIEW"),
    ("CREATE UNIQUE INDEX", "write ALTER TABLE … ADD UNIQUE"),
    ("DEALLOCATE", "DEALLOCATE takes the name of a prepared statement, or ALL"),
    ("DECLARE RECURSIVE", "write DECLARE RECURSIVE VIEW r (columns)"),
    ("DECLARE", "write DECLARE c CURSOR FOR SELECT …"),
    ("DESC", ""),
    ("DESCRIBE", "DESCRIBE takes the name of a table or a view"),
    ("DETACH", ""),
    ("DISCARD", "write DISCARD ALL"),
    ("EXECUTE", "EXECUTE takes the name of a prepared statement"),
    ("EXPLAIN ANALYZE INSERT", "it would change rows: EXPLAIN ANALYZE runs queries only"),
    ("EXPLAIN ANALYZE UPDATE", "it would change rows: EXPLAIN ANALYZE runs queries only"),
    ("EXPLAIN ANALYZE DELETE", "it would change rows: EXPLAIN ANALYZE runs queries only"),
    ("EXPLAIN ANALYZE", "EXPLAIN ANALYZE takes a query, or the name of a materialized view"),
    ("EXPLAIN", "there are EXPLAIN SELECT …, EXPLAIN VIEW v, EXPLAIN STATE v and EXPLAIN ANALYZE v"),
    ("FETCH", "FETCH takes the name of a cursor"),
    ("FLUSH", ""),
    ("FROM", "write SELECT * FROM …"),
    ("GRANT", "write GRANT SELECT ON t TO role"),
    ("INSTALL", ""),
    ("KILL", ""),
    ("LISTEN", "LISTEN takes the name of a relation"),
    ("LOAD", "write COPY t FROM 'path'"),
    ("LOCK", ""),
    ("MERGE", "write INSERT … ON CONFLICT"),
    ("MOVE", "MOVE takes the name of a cursor"),
    ("NOTIFY", "a commit that changes a relation tells those who LISTEN to it"),
    ("OPEN", ""),
    ("OPTIMIZE", ""),
    ("PIVOT", "write SELECT * FROM t PIVOT (sum(x) FOR k IN ('a', 'b'))"),
    ("PRAGMA", ""),
    ("PREPARE", "write PREPARE p AS SELECT …"),
    ("REFRESH", "write REFRESH MATERIALIZED VIEW v, which does nothing: views are always up to date"),
    ("RELEASE", "RELEASE takes the name of a savepoint"),
    ("RENAME", ""),
    ("REPLACE", "write INSERT OR REPLACE"),
    ("RESET", "RESET takes the name of a setting, or ALL"),
    ("REVOKE", "write REVOKE SELECT ON t FROM role"),
    ("SAVEPOINT", "SAVEPOINT takes a name"),
    ("SET", "SET takes the name of a setting and a value"),
    ("SHOW VIEWS", "write SHOW TABLES, which lists views, too"),
    ("SHOW", "there are SHOW TABLES, DESCRIBE t, and SHOW with the name of a setting"),
    ("TABLE", "write SELECT * FROM …"),
    ("TRUNCATE", "TRUNCATE takes the name of a table"),
    ("UNCACHE", ""),
    ("UNPIVOT", "write SELECT * FROM t UNPIVOT (x FOR k IN (a, b))"),
    ("UNLISTEN", "UNLISTEN takes the name of a relation, or *"),
    ("UNLOAD", "write COPY t TO 'path'"),
    ("USE", ""),
];

/// First words of statements.
const FIRST: &[&str] = &[
    "ABORT",
    "BEGIN",
    "CHECKPOINT",
    "CLOSE",
    "COMMENT",
    "COMMIT",
    "COPY",
    "CREATE",
    "DEALLOCATE",
    "DECLARE",
    "DELETE",
    "DESCRIBE",
    "DROP",
    "END",
    "EXECUTE",
    "EXPLAIN",
    "FETCH",
    "GRANT",
    "INSERT",
    "LATENESS",
    "LISTEN",
    "MOVE",
    "PREPARE",
    "REFRESH",
    "RELEASE",
    "RESET",
    "REVOKE",
    "ROLLBACK",
    "SAVEPOINT",
    "SELECT",
    "SET",
    "SHOW",
    "START",
    "SUBSCRIBE",
    "TRUNCATE",
    "UNLISTEN",
    "UPDATE",
    "VALUES",
    "WITH",
];

/// The error for a statement of these words that is not supported, with what to write instead if that is known.
pub(super) fn refusal(words: &[&str], position: Option<Position>) -> Error {
    let name = words.join(" ");
    let known = REFUSED.iter().find(|(begin, advice)| {
        let rest = name.strip_prefix(begin);
        !advice.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    });
    match known {
        Some((_, advice)) => Error::new(format!("{name} is not supported yet: {advice}"), position)
            .with_sqlstate(SqlState::NOT_SUPPORTED),
        None => Error::not_supported(name, position),
    }
}

/// Whether statements of other systems begin with this word.
pub(super) fn is_refused(first: &str) -> bool {
    REFUSED.iter().any(|(begin, _)| *begin == first)
}

/// `; did you mean …?`, where a word is near one that statements begin with.
pub(super) fn first_meant(word: &str) -> String {
    keyword_meant(word, FIRST)
}
