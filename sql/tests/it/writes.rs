//! INSERT, UPDATE and DELETE as plans of rows.

use alluvium_sql::error::Error;
use alluvium_sql::planner::{PlannedWrite, RelationSource};
use alluvium_sql::statement::StatementKind;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::LogicalPlan;

use crate::fixture::{Definitions, shown, statement};

fn write(definitions: &Definitions, text: &str) -> Result<PlannedWrite, Error> {
    match statement(text)?.kind {
        StatementKind::Insert(insert) => definitions.planner.insert(&insert, definitions),
        StatementKind::Update(update) => definitions.planner.update(&update, definitions),
        StatementKind::Delete(delete) => definitions.planner.delete(&delete, definitions),
        other => panic!("not a write: {other:?}"),
    }
}

fn columns(plan: &LogicalPlan) -> String {
    let fields = plan.schema().iter().map(|(qualifier, field)| match qualifier {
        Some(qualifier) => format!("{qualifier}.{} {}", field.name(), field.data_type()),
        None => format!("{} {}", field.name(), field.data_type()),
    });
    fields.collect::<Vec<_>>().join(", ")
}

/// The flights, and a table with defaults.
fn definitions() -> Definitions {
    let mut definitions = Definitions::flights();
    definitions.define(
        "CREATE TABLE item (id BIGINT PRIMARY KEY, \"Name\" VARCHAR DEFAULT 'none', price DECIMAL(8, 2) DEFAULT 1.5, n INT);
         CREATE VIEW dear AS SELECT id, price FROM item WHERE price > 10;",
    );
    definitions
}

#[test]
fn an_insert_returns_exactly_the_columns_of_the_table() {
    let definitions = definitions();
    let all = "id Int64, Name Utf8, price Decimal128(8, 2), n Int32";
    for text in [
        "INSERT INTO item VALUES (1, 'a', 2, 3), (2, NULL, 3.25, 4)",
        "INSERT INTO item (n, id) VALUES (1, 2)",
        "INSERT INTO item (id) SELECT id FROM flights",
        "INSERT INTO Item SELECT id, carrier, distance, distance AS n FROM flights",
        "INSERT INTO item (\"Name\", id) SELECT 'x', id FROM dear",
    ] {
        let planned = write(&definitions, text).unwrap();
        assert_eq!(
            (planned.table.as_str(), columns(&planned.plan).as_str()),
            ("item", all),
            "{text}"
        );
    }
    let given = write(&definitions, "INSERT INTO item VALUES (1, DEFAULT, 2, DEFAULT)").unwrap();
    assert_eq!(columns(&given.plan), all);
    let given = given.plan.display_indent().to_string();
    assert!(given.contains("Utf8(\"none\")") && given.contains("Int32(NULL)"), "{given}");
    let filled = write(&definitions, "INSERT INTO item (id) VALUES (1)")
        .unwrap()
        .plan
        .display_indent()
        .to_string();
    assert!(
        filled.contains("Utf8(\"none\")") && filled.contains("CAST(NULL AS Int32)"),
        "{filled}"
    );
}

#[test]
fn an_update_returns_old_and_new_rows() {
    let definitions = definitions();
    let expected = "old.id Int64, old.Name Utf8, old.price Decimal128(8, 2), old.n Int32, \
                    new.id Int64, new.Name Utf8, new.price Decimal128(8, 2), new.n Int32";
    for text in [
        "UPDATE item SET price = price * 2 WHERE n > 1",
        "UPDATE item AS i SET N = i.n + 1, \"Name\" = upper(i.\"Name\")",
        "UPDATE item SET id = id + 1 WHERE id IN (SELECT id FROM dear)",
        "UPDATE item SET n = f.distance, price = DEFAULT FROM flights AS f WHERE f.id = item.id",
        "UPDATE item SET (n, \"Name\") = (n + 1, DEFAULT)",
        "UPDATE item SET (n, price) = (SELECT MAX(distance), MIN(distance) FROM flights WHERE flights.id = item.id)",
    ] {
        let planned = write(&definitions, text).unwrap();
        assert_eq!(columns(&planned.plan), expected, "{text}");
    }
}

#[test]
fn a_delete_returns_the_deleted_rows() {
    let definitions = definitions();
    for text in [
        "DELETE FROM item",
        "DELETE FROM item WHERE \"Name\" = 'a'",
        "DELETE FROM item AS i USING flights AS f, dear WHERE i.id = f.id AND dear.id = i.n",
    ] {
        let planned = write(&definitions, text).unwrap();
        assert_eq!(planned.plan.schema().fields().len(), 4, "{text}");
    }
}

#[test]
fn plans_of_statements_scan_only_relations_with_rows() {
    let definitions = definitions();
    let planned =
        write(&definitions, "DELETE FROM item WHERE id IN (SELECT id FROM dear)").unwrap();
    let mut scanned = Vec::new();
    let walked = planned.plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            scanned.push(scan.source.downcast_ref::<RelationSource>().unwrap().name().to_string());
        }
        node.apply_expressions(|expression| expression.apply(|_| Ok(TreeNodeRecursion::Continue)))
    });
    walked.unwrap();
    assert_eq!(scanned, ["item", "item"]);
}

#[test]
fn unsupported_writes_are_refused_with_a_position() {
    let mut definitions = definitions();
    definitions.define("CREATE MATERIALIZED VIEW kept AS SELECT id FROM item");
    for (text, expected) in [
        ("INSERT INTO itm VALUES (1)", "1:13: no table or view \"itm\"; did you mean \"item\"?"),
        (
            "INSERT INTO kept VALUES (1)",
            "1:13: \"kept\" is not a table: only tables can be changed",
        ),
        (
            "INSERT INTO item (idd) VALUES (1)",
            "1:19: no column \"idd\" in \"item\"; did you mean \"id\"?",
        ),
        ("INSERT INTO item (id, id) VALUES (1, 2)", "1:23: column \"id\" appears twice"),
        (
            "INSERT INTO item (id, n) VALUES (1)",
            "1:34: row 1 of VALUES has 1 value for 2 columns of \"item\"",
        ),
        (
            "INSERT INTO item (id) VALUES (1) RETURNING idd",
            "1:44: no column \"idd\" in \"item\"; did you mean \"id\"?",
        ),
        (
            "INSERT INTO item (id) VALUES (1) RETURNING count(*)",
            "1:44: an aggregate, a window function, UNNEST or a subquery in RETURNING is not supported yet",
        ),
        (
            "INSERT INTO item (id) VALUES (1) ON CONFLICT (n) DO NOTHING",
            "1:47: ON CONFLICT names other columns than a PRIMARY KEY or UNIQUE of \"item\", which has (id)",
        ),
        (
            "INSERT INTO item (id) VALUES (1) ON CONFLICT DO UPDATE SET n = 1",
            "1:13: ON CONFLICT DO UPDATE names the columns of a key: ON CONFLICT (key) DO UPDATE SET …",
        ),
        (
            "INSERT INTO item (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET n = (SELECT 1)",
            "1:70: a subquery in ON CONFLICT … DO UPDATE is not supported yet",
        ),
        (
            "INSERT INTO item (id) VALUES (1) ON DUPLICATE KEY UPDATE n = 1",
            "1:13: ON DUPLICATE KEY UPDATE (write ON CONFLICT (…) DO UPDATE SET …) is not supported yet",
        ),
        (
            "INSERT INTO numbers VALUES (1, 2, 3, 4, 5, 6, 'a') ON CONFLICT DO NOTHING",
            "1:13: \"numbers\" has no PRIMARY KEY and no UNIQUE, so none of its rows conflict",
        ),
        ("UPDATE item SET (n, price) = (1)", "1:31: SET (…) names 2 columns, and there is 1 value"),
        ("UPDATE item SET n = 1, (n, id) = (1, 2)", "1:25: column \"n\" is assigned twice"),
        (
            "UPDATE item FROM flights SET n = 1",
            "1:8: FROM in front of SET (write UPDATE … SET … FROM) is not supported yet",
        ),
        (
            "UPDATE item SET pric = 1",
            "1:17: no column \"pric\" in \"item\"; did you mean \"price\"?",
        ),
        ("UPDATE item SET n = 1, N = 2", "1:24: column \"n\" is assigned twice"),
        ("UPDATE item SET n = m", "1:21: no column \"m\" in \"item\"; did you mean \"n\"?"),
        (
            "UPDATE item SET n = id FROM flights",
            "1:21: column \"id\" is ambiguous; qualify it with its table's name",
        ),
        (
            "DELETE FROM item USING flight",
            "1:24: no table or view \"flight\"; did you mean \"flights\"?",
        ),
        (
            "DELETE FROM item WHERE prise > 1",
            "1:24: no column \"prise\" in \"item\"; did you mean \"price\"?",
        ),
        ("DELETE FROM dear", "1:13: \"dear\" is not a table: only tables can be changed"),
        (
            "INSERT INTO item (id) VALUES (9223372036854775807 + 1)",
            "1:31: 9223372036854775807 + 1 overflows its type",
        ),
    ] {
        match write(&definitions, text) {
            Ok(planned) => panic!("{text} is planned:\n{}", planned.plan.display_indent()),
            Err(error) => assert_eq!(shown(&error), expected, "{text}"),
        }
    }
}

#[test]
fn many_rows_of_literals_are_planned_as_columns() {
    let definitions = definitions();
    let plan = |row: &str| {
        let rows: Vec<String> = (0..100).map(|n| row.replace('#', &n.to_string())).collect();
        let text = format!("INSERT INTO item (id, \"Name\", price) VALUES {}", rows.join(", "));
        let planned = write(&definitions, &text).unwrap();
        (planned.plan.display_indent().to_string(), columns(&planned.plan))
    };
    let all = "id Int64, Name Utf8, price Decimal128(8, 2), n Int32";
    for row in [
        "(#, 'a', 2)",
        "(#, NULL, 2.5), (-#, 'b', -3), (7, '#', 10.25)",
        "('#', CAST('#' AS TEXT), NULL)",
        "(NULL, NULL, NULL)",
    ] {
        let (plan, columns) = plan(row);
        assert!(plan.contains("TableScan: values") && !plan.contains("Values:"), "{row}: {plan}");
        assert_eq!(columns, all, "{row}");
    }
    // Not literals, and literals whose digits would change.
    for row in ["(# + 1, 'a', 2)", "(#, 1.5, 2), (#, 1.25, 2)", "(#, 'a', 2), ('#', 'a', 2)"] {
        let (plan, columns) = plan(row);
        assert!(plan.contains("Values:"), "{row}: {plan}");
        assert_eq!(columns, all, "{row}");
    }
}
