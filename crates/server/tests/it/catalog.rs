//! What clients are told about the relations that there are: the rows, as Postgres 15 has them for the same tables, but for OIDs,
//! the names of the role and of the database, and types of text.

use alluvium::arrow::util::display::{ArrayFormatter, FormatOptions};
use alluvium::{Engine, Outcome};

use super::recorded::engine;

/// The rows of a query, with bars between their values.
fn rows(engine: &Engine, sql: &str) -> Vec<String> {
    let mut session = engine.session();
    let outcome = match session.execute_with(sql, &[]) {
        Ok(outcome) => outcome,
        Err(error) => panic!("{error}\n{sql}"),
    };
    let Outcome::Rows(rows) = outcome else { panic!("{sql} has no rows") };
    let mut lines = Vec::new();
    for batch in rows.into_batches().unwrap_or_else(|error| panic!("{error}\n{sql}")) {
        let options = FormatOptions::default();
        let columns = batch.columns().iter();
        let columns: Vec<_> = columns
            .map(|it| ArrayFormatter::try_new(it, &options).expect("a column that can be shown"))
            .collect();
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| column.value(row).to_string());
            lines.push(values.collect::<Vec<_>>().join("|"));
        }
    }
    lines
}

/// The OID of a relation.
fn oid(engine: &Engine, relation: &str) -> String {
    rows(engine, &format!("SELECT '{relation}'::regclass::oid")).swap_remove(0)
}

/// The statement of a file that contains a text, about another relation.
fn recorded(file: &str, part: &str, oids: (&str, &str)) -> String {
    let found = file.split("--- ").find(|sent| sent.contains(part)).expect("it was recorded");
    let (_, sql) = found.split_once('\n').expect("a line before it");
    sql.replace(oids.0, oids.1)
}

const PSQL_DT: &str = include_str!("recorded/psql-dt.sql");
const PSQL_L: &str = include_str!("recorded/psql-l.sql");
const PSQL_D: &str = include_str!("recorded/psql-d.sql");

#[test]
fn psql_describes_a_table() {
    let engine = engine();
    for (relation, columns, indexes) in [
        (
            "t",
            vec!["id|integer||true|||", "v|text|'x'|false|||"],
            vec![
                "t_pkey|true|true|false|true|CREATE UNIQUE INDEX t_pkey ON t USING btree (id)|PRIMARY KEY (id)|p|false|false|false|0",
            ],
        ),
        (
            "orders",
            vec![
                "id|integer|nextval('orders_id_seq')|true|||",
                "t_id|integer||true|||",
                "amount|numeric(10,2)||false|||",
                "at|timestamp with time zone||false|||",
                "tags|text[]||false|||",
                "doc|text||false|||",
            ],
            vec![
                "orders_pkey|true|true|false|true|CREATE UNIQUE INDEX orders_pkey ON orders USING btree (id)|PRIMARY KEY (id)|p|false|false|false|0",
                "orders_at|false|false|false|true|CREATE INDEX orders_at ON orders USING btree (at)|||||false|0",
                "orders_t_id_at_key|false|true|false|true|CREATE UNIQUE INDEX orders_t_id_at_key ON orders USING btree (t_id, at)|UNIQUE (t_id, at)|u|false|false|false|0",
            ],
        ),
    ] {
        let id = oid(&engine, relation);
        let named =
            recorded(PSQL_DT, "OPERATOR(pg_catalog.~) '^(t)$'", ("(t)", &format!("({relation})")));
        assert_eq!(rows(&engine, &named), [format!("{id}|public|{relation}")]);
        let of = |part: &str| rows(&engine, &recorded(PSQL_DT, part, ("16384", &id)));
        let checks = i32::from(relation == "orders");
        let kind = format!("{checks}|r|true|false|false|false|false|false|false||0||p|d|heap");
        assert_eq!(of("SELECT c.relchecks, c.relkind"), [kind]);
        assert_eq!(of("SELECT a.attname,"), columns);
        assert_eq!(of("SELECT c2.relname, i.indisprimary"), indexes);
    }
}

#[test]
fn psql_lists_relations() {
    let engine = engine();
    let listed = recorded(PSQL_L, "c.relkind IN ('r','p','')", ("", ""));
    let tables = ["big", "orders", "pd2", "t"].map(|name| format!("public|{name}|table|alluvium"));
    assert_eq!(rows(&engine, &listed), tables);
    let listed = recorded(PSQL_L, "c.relkind IN ('v','')", ("", ""));
    assert_eq!(rows(&engine, &listed), ["public|few|view|alluvium"]);
    let indexes = [
        ("big_pkey", "big"),
        ("orders_at", "orders"),
        ("orders_pkey", "orders"),
        ("orders_t_id_at_key", "orders"),
        ("t_pkey", "t"),
    ];
    let indexes = indexes.map(|(name, of)| format!("public|{name}|index|alluvium|{of}"));
    assert_eq!(rows(&engine, &recorded(PSQL_L, "c.relkind IN ('i','I','')", ("", ""))), indexes);
    let all = rows(&engine, &recorded(PSQL_D, "pg_class", ("", "")));
    let expected = [
        "big|table",
        "few|view",
        "numbers|sequence",
        "orders|table",
        "orders_id_seq|sequence",
        "pd2|table",
        "pd2_a_seq|sequence",
        "sums|materialized view",
        "t|table",
    ];
    assert_eq!(all, expected.map(|it| format!("public|{it}|alluvium")));
}

#[test]
fn psql_lists_schemas_roles_databases_and_functions() {
    let engine = engine();
    engine.execute("CREATE SCHEMA s").unwrap();
    let of = |part: &str| rows(&engine, &recorded(PSQL_L, part, ("", "")));
    assert_eq!(of("n.nspname AS \"Name\""), ["alluvium|alluvium", "public|alluvium", "s|alluvium"]);
    assert_eq!(of("r.rolname"), ["alluvium|true|true|true|true|true|-1||[]|true|true"]);
    assert_eq!(of("d.datname"), ["alluvium|alluvium|UTF8|C|C||libc|"]);
    assert_eq!(of("p.proname"), [""; 0]);
    assert_eq!(of("pg_catalog.format_type(t.oid, NULL)"), [""; 0]);
}

#[test]
fn jdbc_lists_tables_columns_and_keys() {
    let engine = engine();
    let file = include_str!("recorded/pgjdbc.sql");
    let with = |part: &str, values: &[&str]| {
        let mut sql = recorded(file, part, ("", ""));
        for (place, value) in values.iter().enumerate() {
            sql = sql.replace(&format!("${}", place + 1), &format!("'{value}'"));
        }
        rows(&engine, &sql)
    };
    let tables = with("AS \"TABLE_TYPE\"", &["public", "%"]);
    let tables: Vec<&str> =
        tables.iter().filter_map(|row| row.strip_prefix("alluvium|public|")).collect();
    assert_eq!(
        tables,
        [
            "sums|MATERIALIZED VIEW||||||",
            "big|TABLE||||||",
            "orders|TABLE||||||",
            "pd2|TABLE||||||",
            "t|TABLE|a table|||||",
            "few|VIEW||||||",
        ]
    );
    let columns = with("row_number() OVER (PARTITION BY a.attrelid", &["public", "t", "%"]);
    assert_eq!(
        columns,
        [
            "alluvium|public|t|id|23|true|-1|4|-1|1|||||0|b",
            "alluvium|public|t|v|25|false|-1|-1|-1|2|||'x'|a column|0|b",
        ]
    );
    let key = with("AS PK_NAME", &["public", "orders"]);
    assert_eq!(key, ["alluvium|public|orders|id|1|orders_pkey"]);
    let indexes = with("AS \"ASC_OR_DESC\"", &["public", "orders"]);
    assert_eq!(indexes.len(), 4, "{indexes:?}");
    assert_eq!(with("\"PKTABLE_CAT\"", &["public", "orders"]), [""; 0]);
}

#[test]
fn sqlalchemy_reflects_a_primary_key() {
    let engine = engine();
    let file = include_str!("recorded/sqlalchemy.sql");
    let id = oid(&engine, "orders");
    let key = recorded(
        file,
        "contype = 'p' AND pg_catalog.pg_constraint.conrelid IN (16397)",
        ("16397", &id),
    );
    assert_eq!(rows(&engine, &key), [format!("{id}|[id]|orders_pkey||1|false")]);
    let columns = recorded(file, "relname IN ('t')", ("", ""));
    assert_eq!(
        rows(&engine, &columns)[..2],
        ["id|integer||true|t||||", "v|text|'x'|false|t|a column|||"].map(str::to_owned)
    );
}

#[test]
fn names_become_oids_and_oids_names() {
    let engine = engine();
    engine.execute("CREATE SCHEMA s; CREATE TABLE s.\"T\" (a INT)").unwrap();
    let shown =
        "SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relnamespace <> 11 ORDER BY 1";
    assert_eq!(rows(&engine, shown), ["big", "orders", "pd2", "s.\"T\"", "t"]);
    assert_eq!(rows(&engine, "SELECT to_regclass('none'), to_regtype('none')"), ["|"]);
    assert_eq!(
        rows(&engine, "SELECT 23::regtype, 'int4'::regtype, 'integer[]'::regtype"),
        ["integer|23|1007"]
    );
    assert_eq!(rows(&engine, "SELECT 'pg_class'::regclass::oid"), ["1259"]);
    let missing = engine.query("SELECT 'none'::regclass").unwrap_err().to_string();
    assert!(missing.contains("there is no relation \"none\""), "{missing}");
    assert_eq!(
        rows(&engine, "SELECT format_type(1700, 655366), format_type(1009, NULL)"),
        ["numeric(10,2)|text[]"]
    );
}

#[test]
fn a_table_of_another_schema_is_visible_if_the_search_path_has_it() {
    let engine = engine();
    engine.execute("CREATE SCHEMA s; CREATE TABLE s.there (a INT)").unwrap();
    let visible = "SELECT relname FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid) AND relnamespace <> 11 ORDER BY 1";
    assert_eq!(rows(&engine, visible), ["big", "orders", "pd2", "t"]);
    let mut session = engine.session();
    session.execute("SET search_path TO s").unwrap();
    let Outcome::Rows(found) = session.execute_with(visible, &[]).unwrap() else { panic!("rows") };
    assert_eq!(found.into_batches().unwrap()[0].num_rows(), 1);
}

#[test]
fn the_catalog_cannot_be_changed_or_be_read_by_views() {
    let engine = engine();
    for wrong in [
        "DROP VIEW pg_catalog.pg_class",
        "INSERT INTO pg_catalog.pg_class SELECT * FROM pg_catalog.pg_class",
        "DELETE FROM pg_class",
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM pg_class",
        "CREATE VIEW v AS SELECT * FROM pg_am",
    ] {
        assert!(engine.execute(wrong).is_err(), "{wrong}");
    }
    assert_eq!(
        rows(&engine, "SELECT table_schema, count(*) FROM information_schema.tables GROUP BY 1"),
        ["public|6"]
    );
}

#[test]
fn names_of_functions_are_compared_with_zero() {
    let engine = engine();
    let all = "SELECT count(*) FROM pg_type WHERE typreceive <> 0 AND 0 = typmodin AND typreceive::TEXT <> 'array_recv' AND typtype <> 'c'";
    assert_eq!(rows(&engine, all), ["34"]);
}

#[test]
fn information_schema_has_constraints() {
    let engine = engine();
    let keys = "SELECT table_name, column_name, ordinal_position FROM information_schema.key_column_usage \
                WHERE table_name = 'orders' ORDER BY constraint_name, ordinal_position";
    assert_eq!(rows(&engine, keys), ["orders|id|1", "orders|t_id|1", "orders|at|2"]);
    let all = "SELECT constraint_name, constraint_type FROM information_schema.table_constraints \
               WHERE table_name = 'orders' ORDER BY 1";
    let expected =
        ["orders_amount_check|CHECK", "orders_pkey|PRIMARY KEY", "orders_t_id_at_key|UNIQUE"];
    assert_eq!(rows(&engine, all), expected);
}

#[test]
fn names_of_relations_are_read_as_identifiers() {
    let engine = engine();
    engine.execute("CREATE SCHEMA s; CREATE TABLE s.\"A b\" (k INT)").unwrap();
    let id = oid(&engine, "orders");
    for name in [" public . orders ", "ORDERS", "\"orders\"", "public.\"orders\""] {
        assert_eq!(oid(&engine, name), id, "{name}");
    }
    let other = oid(&engine, "S . \"A b\"");
    let name = rows(&engine, &format!("SELECT CAST({other} AS UINTEGER)::regclass"));
    assert_eq!(name, ["s.\"A b\""]);
    assert_eq!(rows(&engine, "SELECT to_regclass('\"ORDERS\"')"), [""]);
}

#[test]
fn settings_of_the_server_are_shown() {
    let engine = engine();
    let version = rows(&engine, "SHOW server_version").swap_remove(0);
    assert!(version.starts_with("15.0 (Alluvium "), "{version}");
    assert_eq!(rows(&engine, "SELECT current_setting('server_version')"), [&*version]);
    let of_view = "SELECT setting FROM pg_settings WHERE name = 'server_version'";
    assert_eq!(rows(&engine, of_view), [version]);
    assert_eq!(rows(&engine, "SHOW Server_Version_Num"), ["150000"]);
    assert!(engine.session().execute("SET server_version_num = '1'").is_err());
    assert!(engine.session().execute("SHOW nothing").is_err());
}

#[test]
fn functions_of_clients_are_there() {
    let engine = engine();
    for (sql, expected) in [
        ("SELECT * FROM regexp_split_to_table('a1b22c', '[0-9]+')", vec!["a", "b", "c"]),
        ("SELECT relname FROM pg_class WHERE oid::regclass = 't'::regclass", vec!["t"]),
        ("SELECT typname FROM pg_type WHERE 'int4'::regtype = oid::regtype", vec!["int4"]),
        ("SELECT count(*) FROM pg_proc WHERE prorettype::regtype = 'trigger'::regtype", vec!["0"]),
        ("SELECT quote_literal('it''s')", vec!["'it''s'"]),
        ("SELECT getdatabaseencoding()", vec!["UTF8"]),
        ("SELECT pg_tablespace_location(1663)", vec![""]),
        ("SELECT pg_table_size('t'::regclass) IS NULL", vec!["true"]),
        ("SELECT array(SELECT x FROM pg_catalog.unnest(tags) x) FROM orders", vec![]),
        (
            "SELECT array(SELECT x FROM pg_catalog.unnest([2, 1]) AS t(x) ORDER BY x)",
            vec!["[1, 2]"],
        ),
        ("SELECT (SELECT SUM(s) FROM generate_series(1, id) s) FROM t ORDER BY id", vec!["1", "3"]),
        (
            "SELECT proname, prokind FROM pg_proc WHERE proname IN ('sum', 'lower', 'quote_ident') ORDER BY 1",
            vec!["lower|f", "quote_ident|f", "sum|a"],
        ),
    ] {
        assert_eq!(rows(&engine, sql), expected, "{sql}");
    }
}

#[test]
fn schemas_of_the_catalog_are_reserved() {
    for schema in ["pg_catalog", "information_schema", "alluvium"] {
        let error = engine().execute(&format!("CREATE SCHEMA {schema}")).unwrap_err();
        assert_eq!(error.sqlstate().as_str(), "42939", "{schema}");
    }
}

/// The catalog's `generate_series` is a list of its own, which a view can take over columns.
#[test]
fn a_view_has_series_over_its_columns() {
    let engine = engine();
    engine
        .execute(
            "CREATE TABLE n (n BIGINT);
             CREATE MATERIALIZED VIEW v AS SELECT n, (SELECT COUNT(*) FROM generate_series(1, n.n)) AS m FROM n",
        )
        .unwrap();
    engine.execute("INSERT INTO n VALUES (0), (3), (3), (-1), (NULL)").unwrap();
    let of_view = "SELECT n, m FROM v ORDER BY n";
    assert_eq!(rows(&engine, of_view), ["-1|0", "0|0", "3|3", "3|3", "|0"]);
    engine.execute("DELETE FROM n WHERE n = 0; UPDATE n SET n = 5 WHERE n = -1").unwrap();
    assert_eq!(rows(&engine, of_view), ["3|3", "3|3", "5|5", "|0"]);
}
