//! PREPARE and EXECUTE.

use alluvium::arrow::datatypes::DataType;
use alluvium::{Outcome, SqlState};

use super::{error, fails, rows, run, sessions};

#[test]
fn a_statement_is_prepared_and_executed_by_its_name() {
    let (_engine, mut strict, mut lenient) = sessions();
    for session in [&mut strict, &mut lenient] {
        run(session, "DELETE FROM part; PREPARE ins AS INSERT INTO part VALUES ($1, $2)");
        run(session, "PREPARE \"Named\" (bigint) AS SELECT name FROM part WHERE id = $1");
        run(session, "PREPARE all_of_them AS SELECT * FROM part");
        let changed = run(session, "EXECUTE ins(1, 'bolt'); EXECUTE ins(1 + 1, upper('nut'))");
        assert!(matches!(
            changed[..],
            [Outcome::Changed { rows: 1, .. }, Outcome::Changed { rows: 1, .. }]
        ));
        assert_eq!(rows(session, "EXECUTE \"Named\"(2)"), ["NUT"]);
        assert_eq!(rows(session, "EXECUTE \"Named\"('1')"), ["bolt"]);
        assert_eq!(rows(session, "EXECUTE all_of_them"), ["1 bolt", "2 NUT"]);
        assert_eq!(rows(session, "EXECUTE all_of_them()"), ["1 bolt", "2 NUT"]);
        // They outlive transactions, also those that are rolled back.
        run(
            session,
            "BEGIN; PREPARE del(int) AS DELETE FROM part WHERE id = $1; EXECUTE del(1); ROLLBACK",
        );
        run(session, "EXECUTE del(2)");
        assert_eq!(rows(session, "EXECUTE all_of_them"), ["1 bolt"]);
        run(session, "DEALLOCATE del; DEALLOCATE PREPARE ins; RESET ALL");
        fails(session, "EXECUTE ins(3, 'x')", SqlState::NO_STATEMENT);
        assert_eq!(rows(session, "EXECUTE all_of_them"), ["1 bolt"]);
        run(session, "DEALLOCATE ALL");
        fails(session, "EXECUTE all_of_them", SqlState::NO_STATEMENT);
        run(session, "PREPARE all_of_them AS SELECT 1; DISCARD ALL");
        fails(session, "EXECUTE all_of_them", SqlState::NO_STATEMENT);
    }
}

#[test]
fn parameters_have_the_types_that_are_given() {
    let (_engine, _, mut session) = sessions();
    run(
        &mut session,
        "PREPARE p (decimal(10, 2), text, unknown, date) AS SELECT $1 AS a, $2 AS b, $3 + 1 AS c, $4 AS d, '$1' AS e",
    );
    let description = session.describe("EXECUTE p (1, 2, 3, '2020-01-02')").unwrap();
    let types: Vec<_> = description
        .columns
        .unwrap()
        .fields()
        .iter()
        .map(|field| field.data_type().clone())
        .collect();
    assert_eq!(types[0], DataType::Decimal128(10, 2));
    assert_eq!(types[3], DataType::Date32);
    assert_eq!(rows(&mut session, "EXECUTE p (1, 2, 3, '2020-01-02')"), ["1.00 2 4 2020-01-02 $1"]);
    assert_eq!(
        rows(&mut session, "EXECUTE p (NULL, NULL, NULL, NULL)"),
        ["NULL NULL NULL NULL $1"]
    );
    fails(&mut session, "EXECUTE p (1, 2, 3, 'x')", SqlState::INVALID_TEXT);
    let (_, message) = error(&mut session, "EXECUTE p (1, 2)");
    assert_eq!(message, "the statement has 4 parameters, and 2 values were given");
    let (_, message) = error(&mut session, "EXECUTE p");
    assert_eq!(message, "the statement has 4 parameters, and 0 values were given");
    // The values have parameters themselves.
    run(&mut session, "PREPARE q (int) AS SELECT $1 * 2");
    match session.execute_with("EXECUTE q($1)", &[4_i64.into()]).unwrap() {
        Outcome::Rows(rows) => {
            assert_eq!(crate::support::lines(&rows.into_batches().unwrap()), ["8"])
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn errors_of_prepared_statements_are_at_their_places() {
    let (_engine, _, mut session) = sessions();
    run(&mut session, "PREPARE p AS SELECT 1");
    for (sql, code, place) in [
        ("PREPARE p AS SELECT 1", SqlState::DUPLICATE_STATEMENT, (1, 9)),
        ("PREPARE q AS SELECT absent FROM part", SqlState::NO_COLUMN, (1, 21)),
        ("PREPARE q (int) AS\nSELECT $1 + absent FROM part", SqlState::NO_COLUMN, (2, 13)),
        ("PREPARE q AS CREATE TABLE t (a INT)", SqlState::SYNTAX, (1, 14)),
        ("PREPARE q AS", SqlState::SYNTAX, (1, 13)),
        ("PREPARE q SELECT 1", SqlState::SYNTAX, (1, 11)),
        ("PREPARE q (nonsense(1)) AS SELECT $1", SqlState::NOT_SUPPORTED, (1, 35)),
        ("EXECUTE absent(1)", SqlState::NO_STATEMENT, (1, 9)),
        ("EXECUTE p 1", SqlState::SYNTAX, (1, 11)),
        ("EXECUTE p(1", SqlState::SYNTAX, (1, 10)),
        ("EXECUTE p(1 FROM part)", SqlState::SYNTAX, (1, 13)),
        ("DEALLOCATE absent", SqlState::NO_STATEMENT, (1, 12)),
        ("DEALLOCATE p q", SqlState::SYNTAX, (1, 14)),
    ] {
        let error = session.execute(sql).expect_err(sql);
        let found = (error.sqlstate(), error.position().unwrap());
        assert_eq!(found, (code, place), "{sql}: {error}");
    }
    // A READ ONLY transaction cannot execute a prepared statement that writes.
    run(&mut session, "PREPARE del AS DELETE FROM part; BEGIN READ ONLY; EXECUTE p");
    fails(&mut session, "EXECUTE del", SqlState::READ_ONLY);
}

#[test]
fn a_prepared_statement_keeps_the_search_path_it_was_prepared_with() {
    let (_engine, _, mut session) = sessions();
    run(&mut session, "CREATE SCHEMA shop; CREATE TABLE shop.part (id INT, shop TEXT)");
    run(
        &mut session,
        "INSERT INTO shop.part VALUES (7, 'here'); INSERT INTO part VALUES (1, 'there')",
    );
    run(
        &mut session,
        "SET search_path = shop; PREPARE p(int) AS SELECT * FROM part WHERE id >= $1",
    );
    run(&mut session, "RESET search_path; BEGIN; DECLARE c CURSOR FOR SELECT * FROM part");
    assert_eq!(rows(&mut session, "EXECUTE p(0)"), ["7 here"]);
    assert_eq!(rows(&mut session, "FETCH c"), ["1 there"]);
}
