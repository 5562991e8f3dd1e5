"""Statements, parameters, errors, sessions, and the results of queries."""

import decimal
import pathlib
from typing import Any

import pytest

import alluvium

D = decimal.Decimal


@pytest.fixture
def numbers(db: alluvium.Database) -> alluvium.Database:
    """A table of the numbers from 0 to 4,999."""
    db.sql("CREATE TABLE n (a BIGINT PRIMARY KEY); INSERT INTO n SELECT * FROM range(5000)")
    return db


@pytest.mark.parametrize(
    ("sql", "parameters", "rows"),
    [
        ("SELECT $1 AS a, $2 AS b, $3 AS c", (1, "x", None), [(1, "x", None)]),
        ("SELECT $2 AS a, $1 AS b, $1 AS c", (1, 2), [(2, 1, 1)]),
        ("SELECT CAST($2 AS BIGINT) AS a, CAST($1 AS BIGINT) AS b", (1, 2), [(2, 1)]),
        ("SELECT $1 + 1.0 AS a", (D("1.5"),), [(D("2.5"),)]),
        ("SELECT a FROM n WHERE a BETWEEN $1 AND $2 ORDER BY a", (3, 5), [(3,), (4,), (5,)]),
        ("SELECT count(*) AS c FROM n WHERE a > $1 OR $1 IS NULL", (None,), [(5000,)]),
        ("SELECT a FROM n ORDER BY a LIMIT $1", (2,), [(0,), (1,)]),
        ("SELECT upper($1) AS u", ("é",), [("É",)]),
        ("SELECT array_length($1) AS l", ([1, 2, 3],), [(3,)]),
        ("SELECT $1['a'] AS f", ({"a": 5},), [(5,)]),
        ("SELECT $1 AS a;", (1,), [(1,)]),
        ("SELECT '$1' AS a", (), [("$1",)]),
        ("SELECT 'a;b' AS a; SELECT ';' AS b", (), [(";",)]),
        ("SELECT 1 AS a -- ; no statement", (), [(1,)]),
        ("SELECT 1 AS a /* ; */; -- and nothing more", (), [(1,)]),
    ],
)
def test_statements_run_with_parameters(numbers: alluvium.Database, sql: str, parameters: tuple[Any, ...], rows: list[Any]) -> None:
    assert numbers.sql(sql, *parameters).fetchall() == rows
    assert numbers.execute(sql, *parameters).fetchall() == rows
    with numbers.session() as session:
        assert session.sql(sql, *parameters).fetchall() == rows


@pytest.mark.parametrize(
    ("sql", "parameters", "said"),
    [
        ("SELECT $1 + $2 AS a", (1,), r"no value for parameter \$2"),
        ("SELECT $1 AS a", (1, 2), r"value for \$2, which does not occur"),
        ("SELECT 1 AS a", (1,), r"value for \$1, which does not occur"),
        ("SELECT ? AS a", (1,), r"parameters are written \$1"),
    ],
)
def test_parameters_that_do_not_match_are_refused(db: alluvium.Database, sql: str, parameters: tuple[Any, ...], said: str) -> None:
    with pytest.raises(alluvium.ProgrammingError, match=said):
        db.sql(sql, *parameters)


@pytest.mark.parametrize("sql", ["", " ", ";", "-- nothing", "/* nothing */"])
def test_a_text_without_statements_does_nothing(db: alluvium.Database, sql: str) -> None:
    result = db.sql(sql)
    assert (result.has_rows, result.rows_changed, result.columns) == (False, None, [])


def test_of_several_statements_the_last_one_gives_the_result(db: alluvium.Database) -> None:
    assert db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2); SELECT a FROM t ORDER BY a").fetchall() == [(1,), (2,)]
    assert db.sql("SELECT 1; INSERT INTO t VALUES (3)").rows_changed == 1


def test_statements_before_one_that_fails_have_run(db: alluvium.Database) -> None:
    with pytest.raises(alluvium.ProgrammingError):
        db.sql("CREATE TABLE t (a INT); INSERT INTO nothing VALUES (1); CREATE TABLE u (a INT)")
    assert [relation.name for relation in db.relations()] == ["t"]


@pytest.mark.parametrize(
    ("sql", "kind", "state", "place"),
    [
        ("SELEC 1", alluvium.ProgrammingError, "42601", (1, 1)),
        ("SELECT 1 FROM nothing", alluvium.ProgrammingError, "42P01", (1, 15)),
        ("SELECT 1;\n\tSELECT b FROM t", alluvium.ProgrammingError, "42703", (2, 9)),
        ("SELECT 1 / 0", alluvium.DataError, "22012", (1, 1)),
        ("CREATE TABLE t (a INT)", alluvium.ProgrammingError, "42P07", None),
        ("CREATE TABLE u (a INTERVAL)", alluvium.NotSupportedError, "0A000", (1, 17)),
        ("INSERT INTO t VALUES (NULL)", alluvium.IntegrityError, "23502", None),
        ("INSERT INTO t VALUES (1), (1)", alluvium.IntegrityError, "23505", None),
        ("INSERT INTO t VALUES ('x')", alluvium.DataError, "22P02", None),
        pytest.param("COMMIT", alluvium.ProgrammingError, "25P01", (1, 1), marks=pytest.mark.engine("over a connection it warns")),
        ("SUBSCRIBE t", alluvium.NotSupportedError, None, None),
        ("SELECT * FROM '/nothing/there.csv'", alluvium.OperationalError, None, None),
    ],
)
def test_errors_have_a_class_a_state_and_a_place(
    db: alluvium.Database, sql: str, kind: type[alluvium.Error], state: str | None, place: tuple[int, int] | None
) -> None:
    db.sql("CREATE TABLE t (a INT PRIMARY KEY)")
    with pytest.raises(kind) as raised:
        db.sql(sql).fetchall()
    error = raised.value
    if state is not None:
        assert error.sqlstate == state
    if place is not None:
        assert (error.line, error.column) == place
        *_, line, caret = str(error).splitlines()
        assert line == sql.splitlines()[place[0] - 1]
        assert len(caret) == place[1] and caret.endswith("^") and caret.strip() == "^"
    assert error.message and error.message in str(error)
    assert isinstance(error, alluvium.DatabaseError)


def test_a_typo_is_guessed(numbers: alluvium.Database) -> None:
    with pytest.raises(alluvium.ProgrammingError, match="did you mean SELECT"):
        numbers.sql("SELCT 1")


def test_transactions_by_sql(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a INT)")
    assert not db.in_transaction
    db.sql("BEGIN; INSERT INTO t VALUES (1)")
    assert db.in_transaction
    with db.session() as other:
        assert not other.in_transaction
        assert other.sql("SELECT * FROM t").fetchall() == []
        assert db.sql("SELECT * FROM t").fetchall() == [(1,)]
        db.sql("ROLLBACK")
        assert not db.in_transaction
        db.sql("BEGIN; INSERT INTO t VALUES (2); COMMIT")
        assert other.sql("SELECT * FROM t").fetchall() == [(2,)]


@pytest.mark.engine("over a connection it aborts the transaction")
def test_a_statement_that_fails_leaves_the_transaction_open(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a INT); BEGIN; INSERT INTO t VALUES (1)")
    with pytest.raises(alluvium.Error):
        db.sql("INSERT INTO t VALUES (1 / 0)")
    assert db.in_transaction
    db.sql("COMMIT")
    assert db.sql("SELECT * FROM t").fetchall() == [(1,)]


def test_of_two_transactions_in_conflict_one_fails(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (k INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 0)")
    with db.session() as one, db.session() as other:
        one.sql("BEGIN")
        other.sql("BEGIN")
        assert one.sql("SELECT a FROM t WHERE k = 1").fetchall() == other.sql("SELECT a FROM t WHERE k = 1").fetchall()
        one.sql("INSERT INTO t VALUES (2, 0)")
        other.sql("UPDATE t SET a = 5 WHERE k = 1")
        other.sql("COMMIT")
        with pytest.raises(alluvium.ConflictError) as raised:
            one.sql("COMMIT")
        assert raised.value.sqlstate == "40001"
    assert db.sql("SELECT * FROM t").fetchall() == [(1, 5)]


def test_a_session_that_ends_takes_its_transaction_and_tables_along(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a INT)")
    with db.session() as session:
        session.sql("CREATE TEMPORARY TABLE own (a INT); INSERT INTO own VALUES (1); BEGIN; INSERT INTO t VALUES (1)")
        assert session.sql("SELECT * FROM own, t").fetchall() == [(1, 1)]
        with pytest.raises(alluvium.ProgrammingError):
            db.sql("SELECT * FROM own")
    assert db.sql("SELECT * FROM t").fetchall() == []
    with pytest.raises(alluvium.InterfaceError, match="closed"):
        session.sql("SELECT 1")
    session.close()


def test_settings_are_those_of_a_session(db: alluvium.Database) -> None:
    with db.session() as session:
        session.sql("SET statement_timeout = '50ms'")
        with pytest.raises(alluvium.TimedOutError):
            session.sql("SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range % 7 = b.range % 11").fetchall()
    assert db.sql("SELECT 1 AS a").fetchall() == [(1,)]


@pytest.mark.engine("a server has files of its own")
def test_sql_reads_and_writes_files(db: alluvium.Database, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "out.csv"
    assert db.sql(f"COPY (SELECT 1 AS a, 'x' AS b) TO '{path}'").rows_changed == 1
    assert db.sql(f"SELECT * FROM '{path}'").fetchall() == [(1, "x")]
    with alluvium.memory(files=False) as closed, pytest.raises(alluvium.DeniedError):
        closed.sql(f"SELECT * FROM '{path}'")
    with alluvium.memory(files=[str(tmp_path)]) as below:
        assert below.sql(f"SELECT count(*) AS n FROM '{path}'").fetchall() == [(1,)]
        with pytest.raises(alluvium.DeniedError):
            below.sql("SELECT * FROM '/etc/passwd'")


def test_results_of_changes_say_what_has_changed(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a INT)")
    inserted = db.sql("INSERT INTO t VALUES (1), (2)")
    assert (inserted.rows_changed, inserted.epoch, inserted.has_rows) == (2, db.progress().committed, False)
    assert db.sql("UPDATE t SET a = 5 WHERE a = 1").rows_changed == 1
    assert db.sql("DELETE FROM t").rows_changed == 2
    assert db.sql("CREATE VIEW v AS SELECT a FROM t").rows_changed is None
    assert "scan t" in (db.sql("EXPLAIN VIEW v").text or "")
    for take in ("fetchone", "fetchall", "fetchmany", "arrow", "pl", "df", "table", "reader"):
        with pytest.raises(alluvium.InterfaceError, match="no rows"):
            getattr(inserted, take)()


def test_returning_gives_rows(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a INT)")
    assert db.sql("INSERT INTO t VALUES (1), (2) RETURNING a + 1 AS b").fetchall() == [(2,), (3,)]


def test_a_closed_database_refuses_everything_by_name() -> None:
    db = alluvium.memory()
    session, result = db.session(), db.sql("SELECT 1 AS a")
    db.sql("CREATE TABLE t (a INT)")
    begun, view, changes = db.transaction(), db.view("t"), db.subscribe("t")
    db.close()
    db.close()
    assert db.is_closed and repr(db).endswith("closed>")
    for act in (
        lambda: db.sql("SELECT 1"),
        lambda: db.insert("t", [(1,)]),
        lambda: db.in_transaction,
        lambda: db.progress(),
        lambda: db.relations(),
        lambda: session.sql("SELECT 1"),
        lambda: result.fetchall(),
        lambda: begun.insert("t", [(1,)]),
        lambda: begun.commit(),
        lambda: view.prefix(),
        lambda: changes.next(),
    ):
        with pytest.raises(alluvium.InterfaceError, match="the database is closed"):
            act()
    assert list(changes) == [] and changes.is_over
    session.close()
    changes.close()
    begun.rollback()
    result.close()
