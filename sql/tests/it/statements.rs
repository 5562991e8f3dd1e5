//! Reading statements.

use std::collections::BTreeMap;

use alluvium_sql::error::Position;
use alluvium_sql::statement::{Setting, StatementKind, ViewKind, parse};

use crate::fixture::{shown, statement, view};

fn kind(text: &str) -> String {
    let name = match statement(text) {
        Ok(statement) => format!("{:?}", statement.kind),
        Err(error) => return shown(&error),
    };
    name.split(['(', ' ']).next().unwrap().to_string()
}

#[test]
fn every_statement_is_classified() {
    for (text, expected) in [
        ("CREATE TABLE t (a INT)", "CreateTable"),
        ("create view v as select 1 as x", "CreateView"),
        ("CREATE LOCAL VIEW v AS SELECT 1 AS x", "CreateView"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1 AS x", "CreateView"),
        ("DROP TABLE t", "DropTable"),
        ("DROP VIEW v", "DropView"),
        ("DROP MATERIALIZED VIEW v", "DropView"),
        ("INSERT INTO t VALUES (1), (2)", "Insert"),
        ("INSERT INTO t (a) SELECT a FROM u", "Insert"),
        ("UPDATE t SET a = 1 WHERE b = 2", "Update"),
        ("DELETE FROM t WHERE a = 1", "Delete"),
        ("BEGIN", "Begin"),
        ("BEGIN TRANSACTION", "Begin"),
        ("START TRANSACTION", "Begin"),
        ("COMMIT", "Commit"),
        ("END TRANSACTION AND NO CHAIN", "Commit"),
        ("ROLLBACK", "Rollback"),
        ("abort work and chain", "Rollback"),
        ("SAVEPOINT a", "Savepoint"),
        ("ROLLBACK WORK TO SAVEPOINT \"A b\"", "RollbackTo"),
        ("ROLLBACK TO savepoint", "RollbackTo"),
        ("RELEASE a", "Release"),
        ("PREPARE p AS SELECT 1", "Prepare"),
        ("prepare p (int, decimal(10, 2), map<text, int>) as insert into t values ($1)", "Prepare"),
        ("EXECUTE p", "Execute"),
        ("EXECUTE p (1, 'x', now())", "Execute"),
        ("DEALLOCATE PREPARE p", "Deallocate"),
        ("DEALLOCATE prepare", "Deallocate"),
        ("DECLARE c CURSOR FOR SELECT 1", "DeclareCursor"),
        ("DECLARE \"c d\" BINARY NO SCROLL CURSOR WITH HOLD FOR (SELECT 1)", "DeclareCursor"),
        ("FETCH next", "Fetch"),
        ("FETCH FORWARD ALL IN c", "Fetch"),
        ("MOVE -1 c", "Move"),
        ("CLOSE ALL", "Close"),
        ("TRUNCATE TABLE ONLY t RESTART IDENTITY CASCADE", "Delete"),
        ("truncate table", "1:15: expected a name, found the end of the statement"),
        ("TRUNCATE a, s.b *, \"C\" CONTINUE IDENTITY RESTRICT", "Truncate"),
        ("DROP TABLE IF EXISTS a, b CASCADE", "DropSeveral"),
        ("DROP VIEW a, b", "DropSeveral"),
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY s.v WITH DATA", "Refresh"),
        (
            "CREATE TABLE t (a CHAR(22), b CHARACTER(3), c BPCHAR) WITH (fillfactor = 100)",
            "CreateTable",
        ),
        ("RELEASE SAVEPOINT a", "Release"),
        ("COPY t FROM 'a.csv' (HEADERS true, NULL_VALUE 'NA')", "Copy"),
        ("COPY t FROM 'a.csv' (HEADERS, NULL_VALUE 'NA')", "Copy"),
        ("SELECT 1", "Query"),
        ("(SELECT 1) UNION ALL SELECT 2", "Query"),
        ("WITH x AS (SELECT 1) SELECT * FROM x", "Query"),
        ("VALUES (1), (2)", "Query"),
        ("EXPLAIN VIEW v", "ExplainView"),
        ("EXPLAIN STATE v", "ExplainState"),
        ("EXPLAIN ANALYZE v", "ExplainAnalyze"),
        ("EXPLAIN ANALYZE VIEW s.v FOR INTERVAL '10' SECOND", "ExplainAnalyze"),
        ("EXPLAIN SELECT 1", "ExplainSelect"),
        ("EXPLAIN (SELECT 1) UNION ALL SELECT 2", "ExplainSelect"),
        ("EXPLAIN ((SELECT 1))", "ExplainSelect"),
        ("EXPLAIN ANALYZE SELECT 1", "ExplainSelect"),
        ("EXPLAIN ANALYZE (VALUES (1))", "ExplainSelect"),
        ("EXPLAIN (FORMAT json) SELECT 1", "ExplainSelect"),
        ("EXPLAIN (ANALYZE, FORMAT 'svg') WITH x AS (SELECT 1) SELECT * FROM x", "ExplainSelect"),
        ("EXPLAIN (FORMAT dot) VIEW v", "ExplainView"),
        ("explain (format SVG, analyze off) state s.v", "ExplainState"),
        ("EXPLAIN (ANALYZE, FORMAT json) v", "ExplainAnalyze"),
        ("EXPLAIN (FORMAT text) ANALYZE VIEW v FOR INTERVAL '1' SECOND", "ExplainAnalyze"),
    ] {
        assert_eq!(kind(text), expected, "{text}");
    }
}

#[test]
fn statements_know_their_text_and_position() {
    let text =
        "-- a comment; with a semicolon\n;;\n  SELECT 'ä;ö' AS x ; /* and\n another */ COMMIT;";
    let statements: Vec<_> = parse(text).map(Result::unwrap).collect();
    assert_eq!(statements.len(), 2);
    assert_eq!(statements[0].text, "SELECT 'ä;ö' AS x");
    assert_eq!(statements[0].position, Position { line: 3, column: 3 });
    assert_eq!(statements[1].text, "COMMIT");
    assert_eq!(statements[1].position, Position { line: 4, column: 13 });
}

#[test]
fn a_syntax_error_is_reported_when_it_is_reached_and_ends_the_iteration() {
    let mut statements = parse("BEGIN; COMMIT;\nSELECT FROM WHERE; BEGIN");
    assert!(matches!(statements.next().unwrap().unwrap().kind, StatementKind::Begin(_)));
    assert!(matches!(statements.next().unwrap().unwrap().kind, StatementKind::Commit { .. }));
    let error = statements.next().unwrap().unwrap_err();
    assert_eq!(error.position.unwrap().line, 2);
    assert!(statements.next().is_none());
}

#[test]
fn an_unterminated_string_affects_only_its_own_statement() {
    let mut statements = parse("BEGIN;\nSELECT 'abc; COMMIT");
    assert!(statements.next().unwrap().is_ok());
    let unterminated =
        "2:8: this text has no end: ' is missing, and a quotation mark in a text is written ''";
    assert_eq!(shown(&statements.next().unwrap().unwrap_err()), unterminated);
    assert!(statements.next().is_none());
}

#[test]
fn syntax_errors_report_what_was_expected_and_where() {
    for (text, expected) in [
        ("SELEC 1", "1:1: expected a statement, found SELEC; did you mean SELECT?"),
        ("COMMIT now", "1:8: expected the end of the statement, found now"),
        ("SAVEPOINT", "1:1: SAVEPOINT is not supported yet: SAVEPOINT takes a name"),
        ("SAVEPOINT a b", "1:13: expected the end of the statement, found b"),
        ("ROLLBACK TO", "1:12: expected a name, found the end of the statement"),
        ("COMMIT AND", "1:11: expected CHAIN, found the end of the statement"),
        ("START NOW", "1:7: expected TRANSACTION, found NOW"),
        (
            "BEGIN READ ONLY,",
            "1:17: expected ISOLATION LEVEL, READ ONLY or READ WRITE, found the end of the statement",
        ),
        (
            "BEGIN ISOLATION LEVEL SNAPSHOT",
            "1:23: expected SERIALIZABLE, REPEATABLE READ or READ COMMITTED, found SNAPSHOT",
        ),
        ("CREATE TABLE t (a INT", "1:16: this ( is not closed: ) is missing"),
        ("CREATE TABLE t (a INT b)", "1:23: expected ',' or ')' after column definition, found b"),
        ("SELECT 1 +", "1:11: expected an expression, found the end of the statement"),
        ("COPY t FROM 'x' (HEADERS -)", "1:26: expected the value of an option, found -"),
        ("CREATE TABLE t (a INT FOREIGN KEY b)", "1:35: expected REFERENCES, found b"),
    ] {
        assert_eq!(kind(text), expected, "{text}");
    }
}

#[test]
fn unsupported_statements_are_refused_by_name() {
    for (text, expected) in [
        (
            "ALTER TABLE t ALTER COLUMN b TYPE INT",
            "1:1: ALTER TABLE … ALTER COLUMN is not supported yet",
        ),
        ("ALTER TABLE t ADD a INT FIRST", "1:1: ALTER TABLE … ADD is not supported yet"),
        ("ALTER TABLE ONLY t ADD a INT", "1:1: this ALTER TABLE is not supported yet"),
        (
            "ALTER TABLE t ADD a INT LATENESS 3",
            "1:25: LATENESS or WATERMARK of a column that is added (create a table with it) is not supported yet",
        ),
        (
            "ALTER TABLE s.t RENAME TO s.u",
            "1:27: RENAME TO takes a name without a schema: a relation stays in its schema",
        ),
        ("ALTER ROLE r RENAME TO s", "1:14: ALTER ROLE … RENAME is not supported yet"),
        (
            "CREATE INDEX i ON t (a DESC)",
            "1:22: DESC in an index (leave it out: an index is read in ascending order) is not supported yet",
        ),
        ("CREATE OR ALTER VIEW v AS SELECT 1", "1:1: CREATE OR ALTER is not supported yet"),
        (
            "CREATE TEMPORARY VIEW v AS SELECT 1",
            "1:1: CREATE TEMPORARY VIEW is not supported yet: write CREATE LOCAL VIEW",
        ),
        (
            "CREATE TEMPORARY TABLE s.t (a INT)",
            "1:24: a temporary table is in no schema but its own: leave the schema out",
        ),
        (
            "CREATE OR REPLACE TABLE IF NOT EXISTS t (a INT)",
            "1:39: OR REPLACE and IF NOT EXISTS contradict each other",
        ),
        ("DROP SEQUENCE a, b", "1:1: DROP SEQUENCE of several is not supported yet"),
        (
            "DECLARE VIEW r (a INT)",
            "1:1: DECLARE VIEW is not supported yet: write DECLARE c CURSOR FOR SELECT …",
        ),
        (
            "EXPLAIN ANALYZE",
            "1:1: EXPLAIN ANALYZE is not supported yet: EXPLAIN ANALYZE takes a query, or the name of a materialized view",
        ),
        (
            "EXPLAIN (ANALYZE) INSERT INTO t VALUES (1)",
            "1:1: EXPLAIN ANALYZE INSERT is not supported yet: it would change rows: EXPLAIN ANALYZE runs queries only",
        ),
        (
            "EXPLAIN (FORMAT yaml) SELECT 1",
            "1:17: EXPLAIN has no format YAML, only TEXT, JSON, DOT and SVG",
        ),
        (
            "EXPLAIN (FORMAT json, BUFFERS) SELECT 1",
            "1:23: EXPLAIN has no option BUFFERS, only ANALYZE and FORMAT",
        ),
        ("EXPLAIN (ANALYZE maybe) v", "1:18: ANALYZE is TRUE or FALSE, not MAYBE"),
        (
            "MERGE INTO t USING u ON a = b WHEN MATCHED THEN DELETE",
            "1:1: MERGE is not supported yet: write INSERT … ON CONFLICT",
        ),
        (
            "CREATE TABLE a.s.t (a INT)",
            "1:14: there is no database \"a\": the only one is \"alluvium\", and a name is schema.relation",
        ),
        ("DROP TABLE a.b.s.t", "1:12: \"a.b.s.t\" is not the name of a relation"),
        (
            "CREATE TABLE t (a INT, UNIQUE NULLS NOT DISTINCT (a))",
            "1:51: UNIQUE NULLS NOT DISTINCT is not supported yet",
        ),
        (
            "CREATE TABLE t (a INT, b INT, UNIQUE (a, a))",
            "1:42: column \"a\" is in the UNIQUE twice",
        ),
        (
            "CREATE TABLE t (a INT CHECK (a > 0) NOT ENFORCED)",
            "1:30: CHECK … NOT ENFORCED is not supported yet",
        ),
        ("CREATE TABLE t (a INT[3])", "1:17: a column of type INT[3] is not supported yet"),
        ("CREATE TABLE t (a INTERVAL)", "1:17: a column of type INTERVAL is not supported yet"),
        ("CREATE TABLE t (a INT, A INT)", "1:24: column \"a\" appears twice"),
        (
            "CREATE TABLE t (a INT PRIMARY KEY, b INT, PRIMARY KEY (b))",
            "1:56: the table has a PRIMARY KEY already",
        ),
        ("CREATE TABLE t (a INT, PRIMARY KEY (bb))", "1:37: no column \"bb\""),
        (
            "CREATE TABLE t (a INT DEFAULT random())",
            "1:31: random() gives another value at each call and cannot be used in DEFAULT",
        ),
        (
            "CREATE TABLE t (a INT, b INT DEFAULT a)",
            "1:38: DEFAULT cannot refer to a column: \"a\"",
        ),
        (
            "CREATE TABLE t (a INT) WITH ('colour' = 'red')",
            "1:41: there is no option 'colour'; there are 'materialized', 'append_only', 'late_rows', 'idle_after', 'on_conflict', 'connectors', and with 'connector' = 'file' those of a file",
        ),
        (
            "CREATE VIEW v WITH ('emit' = 'd') AS SELECT 1 AS x",
            "1:30: there is no option 'emit'; there are 'emit_final', 'recursion_limit', 'wait', 'connectors', and with 'connector' = 'file' those of a file",
        ),
    ] {
        assert_eq!(kind(text), expected, "{text}");
    }
}

#[test]
fn a_table_is_read_with_its_key_defaults_and_options() {
    let text = "CREATE TABLE Orders (
        id BIGINT, \"Line\" INT, customer BIGINT FOREIGN KEY REFERENCES customer(id) NOT NULL,
        amount DECIMAL(10, 2) DEFAULT 0, note VARCHAR(20) DEFAULT 'none' NULL,
        PRIMARY KEY (\"Line\", id), FOREIGN KEY (customer) REFERENCES customer (id)
    ) WITH ('materialized' = 'true', 'append_only' = 'false')";
    let StatementKind::CreateTable(table) = statement(text).unwrap().kind else {
        panic!("a table")
    };
    assert_eq!(table.name, "orders");
    assert_eq!(table.position, Position { line: 1, column: 14 });
    assert_eq!(table.primary_key, [1, 0]);
    assert_eq!(table.text, text);
    let fields = table.schema.fields().iter();
    let nullable: Vec<(&str, bool)> =
        fields.map(|field| (field.name().as_str(), field.is_nullable())).collect();
    assert_eq!(
        nullable,
        [("id", false), ("Line", false), ("customer", false), ("amount", true), ("note", true)]
    );
    let defaults: Vec<bool> = table.defaults.iter().map(Option::is_some).collect();
    assert_eq!(defaults, [false, false, false, true, true]);
    assert_eq!(table.options[0], ("materialized".to_string(), "true".to_string()));
}

#[test]
fn views_know_their_kind_and_their_columns() {
    for (text, kind, columns) in [
        ("CREATE VIEW v AS SELECT 1 AS x", ViewKind::Plain, 0),
        ("CREATE LOCAL VIEW v (a, B) AS SELECT 1, 2", ViewKind::Local, 2),
        ("create materialized view v as select 1 as x", ViewKind::Materialized, 0),
    ] {
        let view = view(text).unwrap();
        assert_eq!(
            (view.name.as_str(), view.kind, view.columns.len()),
            ("v", kind, columns),
            "{text}"
        );
    }
}

#[test]
fn copy_has_options_of_any_name() {
    let text = "COPY Flights FROM 'data/flights.csv.gz' (headers true, NULL_VALUE 'NA', delimiter ';', limit 10)";
    let StatementKind::Copy { table, path, options, position, .. } = statement(text).unwrap().kind
    else {
        panic!("COPY")
    };
    assert_eq!(
        (table.as_str(), path.as_deref(), position.column),
        ("flights", Some("data/flights.csv.gz"), 6)
    );
    let options: Vec<(&str, &str)> =
        options.iter().map(|option| (option.name.as_str(), option.value.as_str())).collect();
    assert_eq!(
        options,
        [("headers", "true"), ("NULL_VALUE", "NA"), ("delimiter", ";"), ("limit", "10")]
    );
}

#[test]
fn copy_reads_and_writes_and_can_name_columns() {
    let text = "COPY \"T\" (b, A) FROM 'x.csv'";
    let StatementKind::Copy { table, columns, .. } = statement(text).unwrap().kind else {
        panic!("COPY")
    };
    let columns: Vec<_> =
        columns.iter().map(|(name, position)| (name.as_str(), position.column)).collect();
    assert_eq!((table.as_str(), columns), ("T", vec![("b", 11), ("a", 14)]));
    for (text, query, column) in [
        ("COPY T TO 'x.csv'", "SELECT * FROM T", 6),
        ("COPY t (b, A) TO 'x.csv' (FORMAT json)", "SELECT b, A FROM t", 6),
        ("COPY (SELECT 1 AS x) TO 'x.csv'", "SELECT 1 AS x", 6),
    ] {
        let StatementKind::CopyTo { query: found, position, path, .. } =
            statement(text).unwrap().kind
        else {
            panic!("COPY … TO: {text}")
        };
        assert_eq!((found.to_string().as_str(), position.column), (query, column), "{text}");
        assert_eq!(path.as_deref(), Some("x.csv"));
    }
}

#[test]
fn copy_from_and_to_clients_has_the_options_of_postgres() {
    for (text, expected) in [
        ("COPY t FROM STDIN", vec![]),
        (
            "COPY t FROM STDIN WITH (FORMAT csv, HEADER, NULL '')",
            vec![("FORMAT", "csv"), ("HEADER", "true"), ("NULL", "")],
        ),
        ("COPY t FROM STDIN (FORMAT \"binary\")", vec![("FORMAT", "binary")]),
        ("copy t from stdin with (freeze on)", vec![("freeze", "on")]),
        ("COPY t FROM STDIN WITH BINARY", vec![("FORMAT", "binary")]),
        (
            "COPY t FROM STDIN WITH DELIMITER AS E'\\t' NULL '\\N'",
            vec![("DELIMITER", "\t"), ("NULL", "\\N")],
        ),
        (
            "COPY t FROM STDIN CSV HEADER QUOTE '\"'",
            vec![("FORMAT", "csv"), ("HEADER", "true"), ("QUOTE", "\"")],
        ),
    ] {
        let read = statement(text).unwrap().kind;
        let StatementKind::Copy { path: None, options, .. } = read else { panic!("{text}") };
        let options: Vec<(&str, &str)> =
            options.iter().map(|option| (option.name.as_str(), option.value.as_str())).collect();
        assert_eq!(options, expected, "{text}");
    }
    let read = statement("COPY (SELECT 1 AS x) TO STDOUT (FORMAT csv)").unwrap().kind;
    assert!(matches!(read, StatementKind::CopyTo { path: None, .. }));
}

#[test]
fn a_table_can_be_created_from_a_file() {
    let text = "CREATE TABLE Flights FROM 'f.parquet' (COMPRESSION none)";
    let StatementKind::CreateTableFrom { name, path, options, position } =
        statement(text).unwrap().kind
    else {
        panic!("CREATE TABLE … FROM")
    };
    assert_eq!((name.as_str(), path.as_str(), position.column), ("flights", "f.parquet", 14));
    assert_eq!(options[0].name, "COMPRESSION");
    assert!(matches!(statement("START").unwrap().kind, StatementKind::Start));
    assert!(matches!(statement("START TRANSACTION").unwrap().kind, StatementKind::Begin(_)));
}

#[test]
fn connectors_are_read_from_json_or_from_flat_options() {
    let json = "CREATE TABLE t (a INT) WITH ('connectors' = '[{\"name\": \"c\",
        \"transport\": {\"name\": \"file_input\", \"config\": {\"path\": \"it''s.csv\"}},
        \"format\": {\"name\": \"csv\", \"config\": {\"headers\": true}}}]')";
    let flat = "CREATE TABLE t (a INT)
        WITH (connector = 'file_input', path = 'it''s.csv', format = 'csv', headers = true)";
    for (text, name) in [(json, Some("c")), (flat, None)] {
        let StatementKind::CreateTable(table) = statement(text).unwrap().kind else {
            panic!("a table")
        };
        let [connector] = &table.connectors[..] else { panic!("one connector: {text}") };
        assert_eq!(connector.name.as_deref(), name);
        assert_eq!(connector.transport.value, "file_input");
        let config: Vec<_> = connector.config.iter().map(|set| (&*set.name, &*set.value)).collect();
        assert_eq!(config, [("path", "it's.csv")]);
        assert_eq!(connector.format.as_ref().unwrap().value, "csv");
        let options: Vec<_> =
            connector.options.iter().map(|set| (&*set.name, &*set.value)).collect();
        assert_eq!(options, [("headers", "true")]);
        assert!(!table.is_kept());
    }
}

/// Of another transport than files, all options are its own, but those that say that they are of the format.
#[test]
fn options_of_other_transports_are_objects_too_and_stand_flat() {
    let flat = "connector = 'kafka', topic = 'bid', start_from = '{\"offsets\":[12,0]}', format = 'json', \
                'format.update_format' = 'debezium'";
    let json = r#"'connectors' = '[{"transport": {"name": "kafka", "config": {"topic": "bid", "start_from": {"offsets": [12, 0]}}},
        "format": {"name": "json", "config": {"update_format": "debezium"}}}]'"#;
    for options in [flat, json] {
        let text = format!("CREATE TABLE t (a INT) WITH ({options})");
        let StatementKind::CreateTable(table) = statement(&text).unwrap().kind else {
            panic!("a table")
        };
        let [connector] = &table.connectors[..] else { panic!("one connector: {text}") };
        assert_eq!(connector.transport.value, "kafka");
        let config: Vec<_> = connector.config.iter().map(|set| (&*set.name, &*set.value)).collect();
        assert_eq!(config, [("topic", "bid"), ("start_from", "{\"offsets\":[12,0]}")]);
        assert_eq!(connector.format.as_ref().unwrap().value, "json");
        let options: Vec<_> =
            connector.options.iter().map(|set| (&*set.name, &*set.value)).collect();
        assert_eq!(options, [("update_format", "debezium")]);
    }
}

#[test]
fn a_clause_is_the_connector_that_flat_options_are() {
    let flat = "CREATE TABLE t (a INT PRIMARY KEY, s TEXT) WITH (connector = 'kafka', topic = 'bid', start = 'earliest',
        password = '${secret:p}', format = 'json', 'format.metadata' = '{\"s\":\"key\"}', 'format.key_columns' = '[\"a\"]')";
    let clause = "CREATE TABLE t (a INT PRIMARY KEY, s TEXT) FROM KAFKA (TOPIC = 'bid', start 'earliest', password = SECRET p)
        KEY (A) ENVELOPE UPSERT FORMAT JSON (metadata = {'s': 'key'})";
    let read = |text: &str| {
        let StatementKind::CreateTable(table) = statement(text).unwrap().kind else {
            panic!("a table: {text}")
        };
        let [connector] = &table.connectors[..] else { panic!("one connector: {text}") };
        let named = |settings: &[Setting]| {
            let settings = settings.iter().map(|it| (it.name.clone(), it.value.clone()));
            settings.collect::<BTreeMap<_, _>>()
        };
        let format = connector.format.as_ref().map(|format| format.value.clone());
        let transport = connector.transport.value.clone();
        (transport, named(&connector.config), format, named(&connector.options))
    };
    assert_eq!(read(clause), read(flat));
    // A query, a column and a table may have the words of clauses.
    for text in [
        "CREATE TABLE t AS SELECT a FROM kafka",
        "CREATE TABLE t AS (SELECT extract(year FROM ts) AS a FROM secret)",
        "CREATE TABLE sink (format INT, envelope INT, source INT)",
        "GRANT SELECT ON secret TO public",
        "GRANT SELECT ON connection, secret TO public",
    ] {
        statement(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[test]
fn malformed_connectors_are_refused_at_the_position_of_the_error() {
    for (connectors, message, place) in [
        ("{}", "'connectors' is an array of objects", (1, 46)),
        ("[\n1]", "a connector must be an object", (2, 1)),
        ("[{}]", "the connector has no \"transport\"", (1, 47)),
        ("[{\"transport\": {}}]", "the transport has no \"name\"", (1, 48)),
        ("[{\"transport\": {\"name\": []}}]", "\"name\" is a text, a number or a boolean", (1, 70)),
        ("[{\"paused\": true}]", "'paused' of a connector is not supported yet", (1, 48)),
        ("[", "expected a JSON value, found the end of the text", (1, 47)),
    ] {
        let text = format!("CREATE TABLE t (a INT) WITH ('connectors' = '{connectors}')");
        let error = statement(&text).unwrap_err();
        let position = error.position.map(|position| (position.line, position.column));
        assert_eq!((error.message.as_str(), position), (message, Some(place)), "{text}");
    }
    let error = statement("CREATE VIEW v WITH (colour = 'red') AS SELECT 1 AS x").unwrap_err();
    assert_eq!(
        error.message,
        "there is no option 'colour'; there are 'emit_final', 'recursion_limit', 'wait', 'connectors', and with 'connector' = 'file' those of a file"
    );
}
