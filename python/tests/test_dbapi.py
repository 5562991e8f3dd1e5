"""The interface of PEP 249."""

import datetime
import decimal
import pathlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import alluvium
from alluvium import dbapi
from alluvium._placeholder import Statement


@pytest.fixture
def connection() -> Iterator[dbapi.Connection]:
    with dbapi.connect() as connection:
        yield connection


@pytest.fixture
def cursor(connection: dbapi.Connection) -> dbapi.Cursor:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (a BIGINT, b VARCHAR)")
    connection.commit()
    return cursor


def count(connection: dbapi.Connection) -> int:
    row = connection.cursor().execute("SELECT count(*) FROM t").fetchone()
    assert row is not None
    return row[0]  # type: ignore[no-any-return]


def test_the_module_says_what_it_is() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")


@pytest.mark.parametrize(
    ("error", "above"),
    [
        ("Warning", Exception),
        ("Error", Exception),
        ("InterfaceError", dbapi.Error),
        ("DatabaseError", dbapi.Error),
        ("DataError", dbapi.DatabaseError),
        ("OperationalError", dbapi.DatabaseError),
        ("IntegrityError", dbapi.DatabaseError),
        ("InternalError", dbapi.DatabaseError),
        ("ProgrammingError", dbapi.DatabaseError),
        ("NotSupportedError", dbapi.DatabaseError),
    ],
)
def test_errors_are_those_of_the_package_and_of_connections(error: str, above: type[Exception]) -> None:
    kind = getattr(dbapi, error)
    assert kind is getattr(alluvium, error) is getattr(dbapi.Connection, error)
    assert issubclass(kind, above)
    assert issubclass(kind, alluvium.Error) == (error != "Warning")


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELEC 1", dbapi.ProgrammingError),
        ("SELECT * FROM nowhere", dbapi.ProgrammingError),
        ("SELECT 1 / a FROM t", dbapi.DataError),
        ("INSERT INTO k VALUES (1), (1)", dbapi.IntegrityError),
        ("INSERT INTO k VALUES (NULL)", dbapi.IntegrityError),
    ],
)
def test_errors_have_their_kinds(cursor: dbapi.Cursor, sql: str, error: type[Exception]) -> None:
    cursor.execute("CREATE TABLE k (k BIGINT PRIMARY KEY)")
    cursor.execute("INSERT INTO t VALUES (0, 'a')")
    with pytest.raises(error):
        cursor.execute(sql)
        cursor.fetchall()


def test_rows_are_fetched_one_after_the_other(cursor: dbapi.Cursor) -> None:
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [(number, str(number)) for number in range(10)])
    cursor.execute("SELECT a, b FROM t ORDER BY a")
    assert cursor.fetchone() == (0, "0")
    assert cursor.fetchmany() == [(1, "1")]
    assert cursor.fetchmany(2) == [(2, "2"), (3, "3")]
    cursor.arraysize = 3
    assert cursor.fetchmany() == [(4, "4"), (5, "5"), (6, "6")]
    assert next(cursor) == (7, "7")
    assert cursor.fetchall() == [(8, "8"), (9, "9")]
    assert cursor.fetchone() is None
    assert cursor.fetchmany(5) == []
    assert cursor.fetchall() == []


def test_a_cursor_iterates_over_rows(cursor: dbapi.Cursor) -> None:
    cursor.executemany("INSERT INTO t VALUES (?, NULL)", [[1], [2]])
    assert list(cursor.execute("SELECT a FROM t ORDER BY a")) == [(1,), (2,)]


def test_description_has_names_and_types(cursor: dbapi.Cursor) -> None:
    cursor.execute(
        """SELECT 1 AS i, 'a' AS s, CAST('a' AS BYTEA) AS b, 1.5 AS d, true AS t, DATE '2024-01-01' AS day,
           TIMESTAMP '2024-01-01 00:00:00' AS at, CAST(1 AS DOUBLE) AS f, [1] AS l"""
    )
    assert cursor.description is not None
    assert all(len(column) == 7 for column in cursor.description)
    assert [column[0] for column in cursor.description] == ["i", "s", "b", "d", "t", "day", "at", "f", "l"]
    kinds = [dbapi.NUMBER, dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.NUMBER, dbapi.DATETIME, dbapi.DATETIME, dbapi.NUMBER]
    types = [column[1] for column in cursor.description]
    assert types[:8] == kinds
    every = (dbapi.NUMBER, dbapi.STRING, dbapi.BINARY, dbapi.DATETIME, dbapi.ROWID)
    assert [sum(type_ == kind for kind in every) for type_ in types] == [1] * 8 + [0]
    assert cursor.description[3][4:6] == (2, 1)
    assert cursor.description[0][4:6] == (None, None)


def test_only_rows_have_a_description(cursor: dbapi.Cursor) -> None:
    assert dbapi.connect().cursor().description is None
    cursor.execute("INSERT INTO t VALUES (1, 'a')")
    assert cursor.description is None
    cursor.execute("SELECT a FROM t")
    assert cursor.description is not None
    cursor.execute("CREATE TABLE u (a BIGINT)")
    assert cursor.description is None


def test_rowcount_is_the_number_of_changed_rows(cursor: dbapi.Cursor) -> None:
    assert cursor.rowcount == -1
    assert cursor.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')").rowcount == 3
    assert cursor.execute("UPDATE t SET b = 'd' WHERE a > 1").rowcount == 2
    assert cursor.execute("SELECT * FROM t").rowcount == -1
    assert cursor.execute("DELETE FROM t").rowcount == 3
    assert cursor.execute("CREATE TABLE u (a BIGINT)").rowcount == -1
    assert cursor.executemany("INSERT INTO u VALUES (?)", [[1], [2]]).rowcount == 2
    assert cursor.executemany("INSERT INTO u VALUES (?)", []).rowcount == 0


@pytest.mark.parametrize("fetch", ["fetchone", "fetchmany", "fetchall", "__next__"])
def test_without_a_query_there_is_nothing_to_fetch(cursor: dbapi.Cursor, fetch: str) -> None:
    with pytest.raises(dbapi.ProgrammingError, match="no rows to fetch"):
        getattr(cursor, fetch)()
    cursor.execute("INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(dbapi.ProgrammingError, match="no rows to fetch"):
        getattr(cursor, fetch)()


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(2**63),
        1.5,
        "it's ? $1",
        "",
        b"\x00\xff",
        decimal.Decimal("1.25"),
        dbapi.Date(2024, 2, 29),
        dbapi.Time(12, 30, 1),
        dbapi.Timestamp(2024, 2, 29, 12, 30, 1),
        dbapi.Binary(b"ab"),
    ],
)
def test_values_go_in_and_out(connection: dbapi.Connection, value: Any) -> None:
    types = {
        bool: "BOOLEAN",
        int: "BIGINT",
        float: "DOUBLE",
        str: "VARCHAR",
        bytes: "BYTEA",
        decimal.Decimal: "DECIMAL(10, 2)",
        datetime.date: "DATE",
        datetime.time: "TIME",
        datetime.datetime: "TIMESTAMP",
    }
    cursor = connection.cursor()
    cursor.execute(f"CREATE TABLE v (v {types.get(type(value), 'BIGINT')})")
    cursor.execute("INSERT INTO v VALUES (?)", (value,))
    found = cursor.execute("SELECT v FROM v").fetchone()
    assert found == (value,)
    assert found is not None and type(found[0]) is type(value)


@pytest.mark.parametrize("ticks", [0, 1_700_000_000.5])
def test_ticks_are_times_here(ticks: float) -> None:
    here = time.localtime(ticks)
    assert dbapi.DateFromTicks(ticks) == datetime.date(*here[:3])
    assert dbapi.TimeFromTicks(ticks) == datetime.time(*here[3:6])
    assert dbapi.TimestampFromTicks(ticks) == datetime.datetime(*here[:6])


@pytest.mark.parametrize(
    ("sql", "text", "marks"),
    [
        ("SELECT 1", "SELECT 1", 0),
        ("SELECT ?", "SELECT $1", 1),
        ("SELECT ?, ? + ?", "SELECT $1, $2 + $3", 3),
        ("SELECT '?', ?", "SELECT '?', $1", 1),
        ("SELECT 'it''s ?', ?", "SELECT 'it''s ?', $1", 1),
        ("SELECT '\\', ?", "SELECT '\\', $1", 1),
        (r"SELECT e'\'?', ?", r"SELECT e'\'?', $1", 1),
        (r"SELECT E'?\\', ?", r"SELECT E'?\\', $1", 1),
        ("SELECT typee'?', ?", "SELECT typee'?', $1", 1),
        ('SELECT "?""?", ?', 'SELECT "?""?", $1', 1),
        ("SELECT ? -- ? '\n, ?", "SELECT $1 -- ? '\n, $2", 2),
        ("SELECT ? /* ? /* ? */ ' ? */, ?", "SELECT $1 /* ? /* ? */ ' ? */, $2", 2),
        ("SELECT ? / 2, ? * 3, ? - 1", "SELECT $1 / 2, $2 * 3, $3 - 1", 3),
        ("SELECT $$ ? ' $$, ?", "SELECT $$ ? ' $$, $1", 1),
        ("SELECT $a$ ? $$ $b$ $a$, ?", "SELECT $a$ ? $$ $b$ $a$, $1", 1),
        ("SELECT a$b$c, ?, d$b$e", "SELECT a$b$c, $1, d$b$e", 1),
        ("SELECT $1, $2", "SELECT $1, $2", 0),
        ("SELECT '? never ends", "SELECT '? never ends", 0),
        ("SELECT /* ? never ends", "SELECT /* ? never ends", 0),
        ("SELECT $$ ? never ends", "SELECT $$ ? never ends", 0),
        ("?1", "$1 1", 1),
        ("", "", 0),
    ],
)
def test_question_marks_become_numbers(sql: str, text: str, marks: int) -> None:
    statement = Statement(sql)
    assert (statement.text, statement.marks) == (text, marks)


@pytest.mark.parametrize(
    ("sql", "keyword"),
    [
        ("select 1", "SELECT"),
        ("  -- first\n /* second /* third */ */ BeGiN", "BEGIN"),
        ("(SELECT 1)", "SELECT"),
        ("", ""),
        ("-- nothing", ""),
    ],
)
def test_the_first_word_is_known(sql: str, keyword: str) -> None:
    assert Statement(sql).keyword == keyword


@given(st.text(alphabet="?$ab1'\"-/*\\\n e", max_size=30))
def test_a_statement_without_marks_stays(sql: str) -> None:
    statement = Statement(sql)
    assert (statement.text == sql) == (statement.marks == 0)
    # What it has become has no more marks.
    assert Statement(statement.text).marks == 0


@pytest.mark.parametrize(
    ("sql", "values", "row"),
    [
        ("SELECT CAST(? AS BIGINT) - CAST(? AS BIGINT)", [7, 2], (5,)),
        ("SELECT CAST($2 AS BIGINT) - CAST($1 AS BIGINT)", [7, 2], (-5,)),
        ("SELECT CAST($1 AS BIGINT) * CAST($1 AS BIGINT)", (7,), (49,)),
        ("SELECT '?' AS q, e'\\'?' AS e, CAST(? AS BIGINT) AS n -- ?", [7], ("?", "'?", 7)),
        ("SELECT $a$ ? $a$ AS q, /* ? */ CAST(? AS BIGINT) AS n", [7], (" ? ", 7)),
    ],
)
def test_values_come_to_their_places(connection: dbapi.Connection, sql: str, values: Any, row: Any) -> None:
    assert connection.cursor().execute(sql, values).fetchone() == row


@pytest.mark.parametrize(
    ("sql", "values", "message"),
    [
        ("SELECT ?", [], "the statement has 1 [?], and there are 0 values"),
        ("SELECT ?, ?", [1], "the statement has 2 [?], and there are 1 value"),
        ("SELECT 1", [1], "the statement has 0 [?]"),
        ("SELECT ?, $1", [1], "has both [?] and [$]1"),
        ("SELECT ?", {"a": 1}, "parameters are a dict: give a sequence"),
        ("SELECT ?", "a", "parameters are a str"),
        ("SELECT ?", 7, "parameters are a int"),
    ],
)
def test_values_without_places_are_refused(connection: dbapi.Connection, sql: str, values: Any, message: str) -> None:
    with pytest.raises(dbapi.ProgrammingError, match=message):
        connection.cursor().execute(sql, values)


def test_executemany_runs_no_queries(cursor: dbapi.Cursor) -> None:
    with pytest.raises(dbapi.ProgrammingError, match="call execute"):
        cursor.executemany("SELECT ?", [[1]])


def test_changes_are_seen_by_others_once_they_are_committed(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a BIGINT)")
    with dbapi.connect(db) as one, dbapi.connect(db) as two:
        one.cursor().execute("INSERT INTO t VALUES (1)")
        assert (count(one), count(two)) == (1, 0)
        two.rollback()
        one.commit()
        assert (count(one), count(two)) == (1, 1)


def test_a_rollback_takes_all_back(connection: dbapi.Connection, cursor: dbapi.Cursor) -> None:
    cursor.execute("INSERT INTO t VALUES (1, 'a')")
    cursor.execute("CREATE TABLE u (a BIGINT)")
    connection.rollback()
    assert count(connection) == 0
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("SELECT * FROM u")


def test_a_view_is_defined_with_its_transaction(connection: dbapi.Connection, cursor: dbapi.Cursor) -> None:
    cursor.execute("CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t")
    cursor.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    connection.commit()
    assert cursor.execute("SELECT s FROM v").fetchall() == [(3,)]
    connection.rollback()
    cursor.execute("DROP MATERIALIZED VIEW v")
    connection.rollback()
    assert cursor.execute("SELECT s FROM v").fetchall() == [(3,)]


def test_without_a_transaction_commit_and_rollback_do_nothing(connection: dbapi.Connection) -> None:
    connection.commit()
    connection.rollback()
    connection.commit()


def test_a_failed_statement_leaves_the_transaction_open(connection: dbapi.Connection, cursor: dbapi.Cursor) -> None:
    cursor.execute("INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("INSERT INTO nowhere VALUES (1)")
    cursor.execute("INSERT INTO t VALUES (2, 'b')")
    connection.commit()
    assert count(connection) == 2


def test_a_transaction_may_be_begun_and_ended_in_sql(connection: dbapi.Connection, cursor: dbapi.Cursor) -> None:
    for begin in ("BEGIN", "  begin transaction", "START TRANSACTION", "/* ? */ BEGIN"):
        cursor.execute(begin)
        cursor.execute("INSERT INTO t VALUES (1, 'a')")
        cursor.execute("ROLLBACK")
        assert count(connection) == 0
        connection.rollback()
    cursor.execute("INSERT INTO t VALUES (1, 'a')")
    cursor.execute("COMMIT")
    connection.rollback()
    assert count(connection) == 1


def test_savepoints_are_part_of_a_transaction(connection: dbapi.Connection, cursor: dbapi.Cursor) -> None:
    cursor.execute("INSERT INTO t VALUES (1, 'a')")
    cursor.execute("SAVEPOINT s")
    cursor.execute("INSERT INTO t VALUES (2, 'b')")
    cursor.execute("ROLLBACK TO s")
    connection.commit()
    assert count(connection) == 1


def test_with_autocommit_each_statement_is_a_transaction(db: alluvium.Database) -> None:
    with dbapi.connect(db, autocommit=True) as one, dbapi.connect(db, autocommit=True) as two:
        assert one.autocommit
        one.cursor().execute("CREATE TABLE t (a BIGINT)")
        one.cursor().execute("INSERT INTO t VALUES (1)")
        one.rollback()
        assert count(two) == 1
        one.cursor().execute("BEGIN")
        one.cursor().execute("INSERT INTO t VALUES (2)")
        assert count(two) == 1
        one.commit()
        assert count(two) == 2


def test_autocommit_can_change_between_transactions(connection: dbapi.Connection, cursor: dbapi.Cursor) -> None:
    cursor.execute("INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(dbapi.ProgrammingError, match="a transaction is open"):
        connection.autocommit = True
    connection.commit()
    connection.autocommit = True
    cursor.execute("INSERT INTO t VALUES (2, 'b')")
    connection.rollback()
    assert count(connection) == 2


def test_a_sequence_needs_autocommit(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.Error) as refused:
        cursor.execute("CREATE SEQUENCE s")
    assert refused.value.sqlstate == "25001"
    connection.rollback()
    connection.autocommit = True
    cursor.execute("CREATE SEQUENCE s")
    assert cursor.execute("SELECT nextval('s')").fetchone() == (1,)


def test_a_conflict_can_be_run_again(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 10)")
    with dbapi.connect(db) as one, dbapi.connect(db) as two:
        for connection in (one, two):
            connection.cursor().execute("SELECT v FROM t WHERE k = 1").fetchall()
        one.cursor().execute("UPDATE t SET v = 11 WHERE k = 1")
        one.commit()
        with pytest.raises(dbapi.ConflictError):
            two.cursor().execute("UPDATE t SET v = 12 WHERE k = 1")
            two.commit()
        two.rollback()
        two.cursor().execute("UPDATE t SET v = v + 1 WHERE k = 1")
        two.commit()
        assert two.cursor().execute("SELECT v FROM t").fetchone() == (12,)


def test_unfetched_rows_are_of_their_time(connection: dbapi.Connection, cursor: dbapi.Cursor) -> None:
    cursor.executemany("INSERT INTO t VALUES (?, NULL)", [[number] for number in range(5_000)])
    connection.commit()
    query = connection.cursor().execute("SELECT a FROM t")
    assert query.fetchone() is not None
    cursor.execute("DELETE FROM t")
    connection.commit()
    assert len(query.fetchall()) == 4_999
    assert count(connection) == 0


def test_a_block_commits(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a BIGINT)")
    with dbapi.connect(db) as connection:
        connection.cursor().execute("INSERT INTO t VALUES (1)")
    assert db.sql("SELECT * FROM t").fetchall() == [(1,)]
    with pytest.raises(dbapi.InterfaceError, match="the connection is closed"):
        connection.cursor()


def test_a_block_that_raises_rolls_back(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a BIGINT)")
    with pytest.raises(KeyError), dbapi.connect(db) as connection:
        connection.cursor().execute("INSERT INTO t VALUES (1)")
        raise KeyError
    assert db.sql("SELECT * FROM t").fetchall() == []


def test_closing_rolls_back(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a BIGINT PRIMARY KEY)")
    connection = dbapi.connect(db)
    connection.cursor().execute("INSERT INTO t VALUES (1)")
    connection.close()
    connection.close()
    # The row is not locked any more.
    db.sql("INSERT INTO t VALUES (1)")
    assert not db.is_closed


def test_a_connection_closes_what_it_has_opened(tmp_path: pathlib.Path) -> None:
    for number in range(2):
        with dbapi.connect(tmp_path / "state", durability="never") as connection:
            connection.cursor().execute("CREATE TABLE IF NOT EXISTS t (a BIGINT)")
            connection.cursor().execute("INSERT INTO t VALUES (?)", [number])
            assert count(connection) == number + 1
        assert connection.database.is_closed


def test_options_belong_to_the_call_that_opens(db: alluvium.Database) -> None:
    with pytest.raises(dbapi.InterfaceError, match="give workers to the call that opens it"):
        dbapi.connect(db, workers=2)


@pytest.mark.parametrize("method", ["commit", "rollback", "cursor", "__enter__"])
def test_a_closed_connection_does_nothing_more(method: str) -> None:
    connection = dbapi.connect()
    connection.close()
    with pytest.raises(dbapi.InterfaceError, match="the connection is closed"):
        getattr(connection, method)()


def test_a_cursor_of_a_closed_connection_does_nothing_more() -> None:
    connection = dbapi.connect()
    cursor = connection.cursor().execute("SELECT 1")
    connection.close()
    for call in (cursor.fetchone, lambda: cursor.execute("SELECT 1")):
        with pytest.raises(dbapi.InterfaceError, match="the connection is closed"):
            call()
    cursor.close()


def test_a_closed_cursor_does_nothing_more(cursor: dbapi.Cursor) -> None:
    with cursor:
        cursor.execute("SELECT 1")
    cursor.close()
    for call in (cursor.fetchone, lambda: cursor.execute("SELECT 1"), lambda: cursor.executemany("SELECT 1", [])):
        with pytest.raises(dbapi.InterfaceError, match="the cursor is closed"):
            call()


def test_cursors_have_results_of_their_own(connection: dbapi.Connection) -> None:
    one, two = connection.cursor(), connection.cursor()
    one.execute("SELECT 1")
    two.execute("SELECT 2")
    assert (one.fetchone(), two.fetchone()) == ((1,), (2,))
    assert one.connection is connection


def test_sizes_are_taken_and_do_nothing(cursor: dbapi.Cursor) -> None:
    cursor.setinputsizes([dbapi.STRING, 10])
    cursor.setoutputsize(100)
    cursor.setoutputsize(100, 1)
    assert cursor.execute("SELECT 1").fetchone() == (1,)


def test_threads_share_a_connection(connection: dbapi.Connection, cursor: dbapi.Cursor) -> None:
    def insert(start: int) -> None:
        connection.cursor().executemany("INSERT INTO t VALUES (?, NULL)", [[start + number] for number in range(50)])

    threads = [threading.Thread(target=insert, args=(100 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    connection.commit()
    assert count(connection) == 200


@pytest.mark.parametrize("kind", [dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.DATETIME, dbapi.ROWID])
def test_a_kind_equals_itself_alone(kind: dbapi.TypeObject) -> None:
    every = [dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.DATETIME, dbapi.ROWID]
    assert [other for other in every if other == kind] == [kind]
    assert len({kind, kind}) == 1
    assert kind != 7 and kind != "NONSENSE"
    assert repr(kind) in dbapi.__all__


def test_all_names_are_there() -> None:
    assert all(hasattr(dbapi, name) for name in dbapi.__all__)
    assert all(hasattr(alluvium, name) for name in alluvium.__all__)
