"""``executemany`` does what it would do row by row, all of it or nothing."""

import datetime as dt
import decimal
import random
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any

import hypothesis
import hypothesis.strategies as some
import pytest

import alluvium
from alluvium import dbapi
from alluvium._placeholder import Statement

# Over a connection rows are run one by one, which tests of connections look at.
pytestmark = pytest.mark.engine("rows of values are inserted together")

D = decimal.Decimal
UTC = dt.timezone.utc


@pytest.fixture
def connection(db: alluvium.Database) -> Iterator[dbapi.Connection]:
    with dbapi.connect(db) as connection:
        yield connection


def rows(connection: dbapi.Connection, table: str = "t") -> list[Any]:
    return connection.cursor().execute(f"SELECT * FROM {table}").fetchall()


@pytest.mark.parametrize(
    ("sql", "insertion"),
    [
        ("INSERT INTO t VALUES (?, ?)", 'INSERT INTO t SELECT "1", "2" FROM values_of_executemany'),
        ("insert into t values (?, ?);", 'INSERT INTO t SELECT "1", "2" FROM values_of_executemany'),
        ("INSERT INTO t VALUES ($2, $1)", 'INSERT INTO t SELECT "2", "1" FROM values_of_executemany'),
        ('INSERT INTO s."T x" (a, "B") VALUES (?, 5)', 'INSERT INTO s."T x" (a, "B") SELECT "1", 5 FROM values_of_executemany'),
        ("INSERT INTO t /* c */ (a, b) -- d\n VALUES (-1, ?)", 'INSERT INTO t (a, b) SELECT -1, "1" FROM values_of_executemany'),
        ("INSERT INTO t (a, b, c) VALUES (?, default, null)", 'INSERT INTO t (a, c) SELECT "1", NULL FROM values_of_executemany'),
        ("INSERT INTO t VALUES ('?', ?, e'\\'', true)", "INSERT INTO t SELECT '?', \"1\", e'\\'', TRUE FROM values_of_executemany"),
        ("INSERT INTO t VALUES (DEFAULT, ?)", None),
        ("INSERT INTO t VALUES (? + 1)", None),
        ("INSERT INTO t VALUES (?), (?)", None),
        ("INSERT INTO t VALUES ($1, $1)", None),
        ("INSERT INTO t VALUES ($1, $3)", None),
        ("INSERT INTO t VALUES (DATE '2020-01-01', ?)", None),
        ("INSERT INTO t VALUES (f(?))", None),
        ("INSERT INTO t VALUES (1)", None),
        ("INSERT INTO t VALUES (?) ON CONFLICT DO NOTHING", None),
        ("INSERT INTO t VALUES (?) RETURNING a", None),
        ("insert or replace INTO t VALUES (?, 1)", 'INSERT OR REPLACE INTO t SELECT "1", 1 FROM values_of_executemany'),
        ("INSERT OR IGNORE INTO t VALUES (?)", None),
        ("INSERT OR INTO t VALUES (?)", None),
        ("INSERT INTO t (a) VALUES (?, ?)", None),
        ("INSERT INTO t AS u VALUES (?)", None),
        ("INSERT INTO t SELECT ?", None),
        ("INSERT INTO t VALUES (?", None),
        ("INSERT INTO t VALUES (?,)", None),
        ("INSERT INTO t VALUES (?); SELECT 1", None),
        ("UPDATE t SET a = ?", None),
        ("", None),
    ],
)
def test_statements_that_insert_values_are_known(sql: str, insertion: str | None) -> None:
    assert Statement(sql).insertion == insertion


@pytest.mark.parametrize("count", [1, 7, 8, 9, 100, 20_000])
@pytest.mark.parametrize("sql", ["INSERT INTO t VALUES (?, ?)", "INSERT INTO t (b, a) VALUES ($2, $1)", "INSERT INTO t VALUES (? + 0, ?)"])
def test_any_number_of_rows_is_inserted(connection: dbapi.Connection, count: int, sql: str) -> None:
    if "+" in sql and count > 1_000:
        pytest.skip("one by one")
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (a BIGINT, b VARCHAR)")
    expected = [(number, f"text {number}") for number in range(count)]
    assert cursor.executemany(sql, (row for row in expected)).rowcount == count
    connection.commit()
    assert sorted(rows(connection)) == expected


def test_no_rows_do_nothing(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    for sql in ("INSERT INTO nowhere VALUES (?)", "UPDATE nowhere SET a = ?", "nonsense"):
        assert cursor.executemany(sql, []).rowcount == 0
    assert not connection._session.in_transaction


def test_rows_are_updated_and_deleted(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT)")
    cursor.executemany("INSERT INTO t VALUES (?, 0)", [[number] for number in range(100)])
    cursor.executemany("UPDATE t SET b = b + ? WHERE a < ?", [[number, number] for number in range(10)])
    assert cursor.rowcount == sum(range(10))
    cursor.executemany("DELETE FROM t WHERE a = ? OR a = ?", [(number, number + 1) for number in range(50)])
    assert cursor.rowcount == 51
    cursor.executemany("INSERT OR REPLACE INTO t VALUES (?, ?)", [(60, 1), (60, 2), (200, 3)])
    assert cursor.rowcount == 3
    cursor.executemany("INSERT INTO t VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET b = t.b + excluded.b", [(60, 1), (60, 2), (201, 3)])
    assert cursor.rowcount == 3
    cursor.executemany("WITH w AS (SELECT CAST(? AS BIGINT) AS a) DELETE FROM t USING w WHERE t.a = w.a", [[61], [62], [1]])
    assert cursor.rowcount == 2
    connection.commit()
    assert rows(connection)[:3] == [(51, 0), (52, 0), (53, 0)]
    assert {row for row in rows(connection) if row[1]} == {(60, 5), (200, 3), (201, 3)}


def test_defaults_are_those_of_each_row(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    connection.autocommit = True
    cursor.execute("CREATE TABLE t (id SERIAL PRIMARY KEY, a BIGINT, b VARCHAR DEFAULT 'none', c BIGINT)")
    connection.autocommit = False
    cursor.executemany("INSERT INTO t (a) VALUES (?)", [[number] for number in range(50)])
    cursor.executemany("INSERT INTO t (id, a, b, c) VALUES (DEFAULT, ?, DEFAULT, 7)", [[number] for number in range(50)])
    assert sorted(row[0] for row in rows(connection)) == list(range(1, 101))
    assert {row[2:] for row in rows(connection)} == {("none", None), ("none", 7)}


def test_temporary_tables_and_schemas_are_found(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE SCHEMA s")
    cursor.execute("CREATE TABLE s.t (a BIGINT)")
    cursor.execute("CREATE TEMPORARY TABLE u (a BIGINT)")
    for table in ("s.t", '"s"."t"', "u"):
        cursor.executemany(f"INSERT INTO {table} VALUES (?)", [[number] for number in range(20)])
        assert cursor.rowcount == 20
    assert len(rows(connection, "s.t")) == 40
    assert len(rows(connection, "u")) == 20


TABLES = {
    "keyed": "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT)",
    "checked": "CREATE TABLE t (a BIGINT CHECK (a >= 0), b BIGINT NOT NULL)",
    "unique": "CREATE TABLE t (a BIGINT UNIQUE, b BIGINT)",
}
WRONG: dict[str, tuple[str, tuple[Any, Any], type[Exception]]] = {
    "a key that is taken": ("keyed", (3, 0), alluvium.IntegrityError),
    "a value that is taken": ("unique", (3, 0), alluvium.IntegrityError),
    "a condition": ("checked", (-1, 0), alluvium.IntegrityError),
    "a NULL": ("checked", (1, None), alluvium.IntegrityError),
    "a number beyond": ("checked", (1, 2**70), alluvium.DatabaseError),
    "a fraction": ("checked", (1, 1.5), alluvium.DatabaseError),
    "a text": ("checked", (1, "one"), alluvium.DatabaseError),
    "an object": ("checked", (1, object()), alluvium.DataError),
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("place", [4, 5, 11, 9_000])
@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("is_insert", [True, False])
def test_the_row_that_fails_is_named_and_none_is_there(db: alluvium.Database, kind: str, place: int, autocommit: bool, is_insert: bool) -> None:
    table, wrong, error = WRONG[kind]
    if place > 1_000 and not is_insert:
        pytest.skip("one by one")
    with dbapi.connect(db, autocommit=autocommit) as connection:
        cursor = connection.cursor()
        cursor.execute(TABLES[table])
        cursor.execute("INSERT INTO t VALUES (100000, 0)")
        given: list[Sequence[Any]] = [(number, number) for number in range(place + 20)]
        given[place] = wrong
        sql = "INSERT INTO t VALUES (?, ?)" if is_insert else "INSERT INTO t VALUES (? + 0, CAST(? AS BIGINT) + 0)"
        if not is_insert and kind in ("a fraction", "a text"):
            sql = "INSERT INTO t VALUES (? + 0, ?)"
        with pytest.raises(error, match=f"row {place}: ") as raised:
            cursor.executemany(sql, iter(given))
        assert type(raised.value) is type(by_itself(connection, given[: min(place, 5)], sql, wrong))
        assert cursor.rowcount == -1
        # The transaction is as it was before.
        assert rows(connection) == [(100_000, 0)]
        assert connection._session.in_transaction is not autocommit
        connection.commit()
        assert rows(connection) == [(100_000, 0)]


def by_itself(connection: dbapi.Connection, before: list[Sequence[Any]], sql: str, wrong: Sequence[Any]) -> Exception:
    """The error of a row that is inserted by itself, in a transaction that is taken back."""
    session = connection._session
    session.sql("SAVEPOINT alone" if session.in_transaction else "BEGIN")
    cursor = connection.cursor()
    try:
        for row in before:
            cursor.execute(sql, row)
        with pytest.raises(alluvium.Error) as raised:
            cursor.execute(sql, wrong)
        return raised.value
    finally:
        session.sql("ROLLBACK" if connection.autocommit else "ROLLBACK TO alone")


@pytest.mark.parametrize("sql", ["UPDATE t SET b = 10 / ?", "DELETE FROM t WHERE a = 1 AND 10 / ? > 0 OR a = 2 AND 10 / ? < 0"])
@pytest.mark.parametrize("autocommit", [False, True])
def test_changes_are_taken_back_together(db: alluvium.Database, sql: str, autocommit: bool) -> None:
    sql = sql.replace("?", "$1")
    db.sql("CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT); INSERT INTO t VALUES (1, 1), (2, 2)")
    with dbapi.connect(db, autocommit=autocommit) as connection:
        with pytest.raises(alluvium.DataError, match="row 2: ") as raised:
            connection.cursor().executemany(sql, [[1], [2], [0], [3]])
        assert raised.value.line == 1
        assert rows(connection) == [(1, 1), (2, 2)]


@pytest.mark.parametrize("bad", ["ab", {"a": 1}, 7, [1], [1, 2, 3], None])
def test_a_row_that_is_none_is_named(connection: dbapi.Connection, bad: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (a BIGINT, b BIGINT)")
    with pytest.raises(dbapi.ProgrammingError, match="row 1: (parameters are|the statement has 2)"):
        cursor.executemany("INSERT INTO t VALUES (?, ?)", [[1, 2], bad, [3, 4]])
    assert rows(connection) == []


def test_what_an_iterator_raises_comes_out_and_nothing_is_there(connection: dbapi.Connection) -> None:
    def failing() -> Iterator[list[int]]:
        for number in range(10_000):
            yield [number]
        raise ZeroDivisionError

    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (a BIGINT)")
    for sql in ("INSERT INTO t VALUES (?)", "DELETE FROM t WHERE a = ?"):
        with pytest.raises(ZeroDivisionError):
            cursor.executemany(sql, failing())
        assert rows(connection) == []


def test_the_first_row_that_is_wrong_counts(connection: dbapi.Connection) -> None:
    def failing() -> Iterator[list[Any]]:
        yield [1]
        yield ["x"]
        raise ZeroDivisionError

    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (a BIGINT)")
    with pytest.raises(alluvium.DatabaseError, match="row 1: "):
        cursor.executemany("INSERT INTO t VALUES (?)", failing())


def test_rows_come_from_another_cursor(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (a BIGINT, b VARCHAR)")
    cursor.execute("CREATE TABLE u (a BIGINT, b VARCHAR)")
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [(number, str(number)) for number in range(20_000)])
    query = connection.cursor().execute("SELECT a + 1, b FROM t")
    assert cursor.executemany("INSERT INTO u VALUES (?, ?)", query).rowcount == 20_000
    assert sorted(rows(connection, "u")) == [(number + 1, str(number)) for number in range(20_000)]


def test_an_iterator_may_use_the_connection(connection: dbapi.Connection) -> None:
    def each() -> Iterator[list[int]]:
        for number in range(3):
            connection.cursor().executemany("INSERT INTO t VALUES (?)", [[100 + number]])
            yield [number]

    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (a BIGINT)")
    cursor.executemany("INSERT INTO t VALUES (?)", each())
    assert sorted(rows(connection)) == [(0,), (1,), (2,), (100,), (101,), (102,)]


def test_changes_before_and_after_are_part_of_the_transaction(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a BIGINT PRIMARY KEY)")
    with dbapi.connect(db) as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO t VALUES (1)")
        cursor.execute("SAVEPOINT mine")
        cursor.executemany("INSERT INTO t VALUES (?)", [[2], [3]])
        with pytest.raises(dbapi.IntegrityError):
            cursor.executemany("INSERT INTO t VALUES (?)", [[4], [3]])
        cursor.execute("INSERT INTO t VALUES (5)")
        assert rows(connection) == [(1,), (2,), (3,), (5,)]
        cursor.execute("ROLLBACK TO mine")
        assert rows(connection) == [(1,)]
        connection.rollback()
    assert db.sql("SELECT * FROM t").fetchall() == []


def test_others_see_all_rows_or_none(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    changes = db.subscribe("v")
    next(changes)
    with dbapi.connect(db, autocommit=True) as connection:
        connection.cursor().executemany("INSERT INTO t VALUES (?)", ([number] for number in range(30_000)))
        connection.cursor().executemany("DELETE FROM t WHERE a = ?", [[1], [2]])
    assert [sorted(next(changes)) for _ in range(2)] == [[((0,), -1), ((30_000,), 1)], [((29_998,), 1), ((30_000,), -1)]]


@pytest.mark.parametrize("sql", ["SELECT ?", "INSERT INTO t VALUES (?) RETURNING a", "WITH w AS (SELECT ?) SELECT * FROM w", "UPDATE t SET a = ? RETURNING a"])
def test_statements_that_return_rows_are_refused(connection: dbapi.Connection, sql: str) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (a BIGINT)")
    cursor.execute("INSERT INTO t VALUES (5)")
    with pytest.raises(dbapi.ProgrammingError, match=r"call execute\(\) for each"):
        cursor.executemany(sql, [[1], [2]])
    assert rows(connection) == [(5,)]


def test_definitions_run_once_for_each_row(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.executemany("CREATE TABLE IF NOT EXISTS t (a BIGINT)", [[], []])
    assert rows(connection) == []


def test_variables_are_read_for_each_row(connection: dbapi.Connection) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": [1, 2, 3], "b": [10, 20, 30]})
    assert frame.height == 3
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT)")
    cursor.executemany("INSERT INTO t VALUES (?, 0)", [[1], [2], [3]])
    cursor.executemany("UPDATE t SET b = t.b + frame.b * ? FROM frame WHERE t.a = frame.a AND t.a >= ?", [[1, 1], [100, 3]])
    assert cursor.rowcount == 4
    assert rows(connection) == [(1, 10), (2, 20), (3, 3_030)]


def test_memory_is_bounded(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (a BIGINT, b VARCHAR)")
    tracemalloc.start()
    try:
        # A gigabyte of texts, if all of them were there at once.
        cursor.executemany("DELETE FROM t WHERE b = ?", (["x" * (1 << 20) + str(number)] for number in range(200)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20


def test_an_interrupt_leaves_nothing(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a BIGINT)")
    with dbapi.connect(db) as connection:

        def each() -> Iterator[list[int]]:
            for number in range(50_000):
                if number == 40_000:
                    raise KeyboardInterrupt
                yield [number]

        cursor = connection.cursor()
        cursor.execute("INSERT INTO t VALUES (-1)")
        with pytest.raises(KeyboardInterrupt):
            cursor.executemany("INSERT INTO t VALUES (?)", each())
        assert rows(connection) == [(-1,)]


# The columns, and values for each: those that fit as they are, and others.
COLUMNS: dict[str, some.SearchStrategy[Any]] = {
    "BIGINT": some.integers(-(2**65), 2**65) | some.integers(-5, 5),
    "SMALLINT": some.integers(-40_000, 40_000),
    "BIGINT UNSIGNED": some.integers(-1, 2**64),
    "DOUBLE": some.floats() | some.integers(-(2**60), 2**60),
    "REAL": some.floats() | some.floats(width=32),
    "DECIMAL(10,2)": some.decimals(-(10**8), 10**8, places=3) | some.decimals(allow_nan=True),
    "DECIMAL(38,5)": some.decimals(-(10**30), 10**30, places=5),
    "VARCHAR": some.text(max_size=5),
    "BLOB": some.binary(max_size=5),
    "BOOLEAN": some.booleans(),
    "DATE": some.dates() | some.datetimes(),
    "TIME": some.times(),
    "TIMESTAMP": some.datetimes() | some.dates() | some.datetimes(timezones=some.just(UTC)),
    "TIMESTAMPTZ": some.datetimes(timezones=some.just(UTC)) | some.datetimes(),
    "INTERVAL": some.timedeltas(),
    "BIGINT[]": some.lists(some.none() | some.integers(-5, 5), max_size=3),
    "STRUCT(a BIGINT, b VARCHAR)": some.fixed_dictionaries({"a": some.integers(-5, 5), "b": some.text(max_size=2)}),
}
TEXTS = some.sampled_from(["5", " 5 ", "-1.5", "1e3", "true", "t", "2024-01-31", "2024-1-1 12:30", "12:30", "1 day", "", "x", "nan", "[1]", "{'a': 1}"])
ANYTHING = some.none() | some.booleans() | some.integers(-300, 300) | some.floats(width=16) | some.decimals(-300, 300, places=2) | TEXTS
OF_COLUMNS = [*[kind for kind in COLUMNS if kind != "INTERVAL"]]


def outcome(connection: dbapi.Connection, run: Any) -> Any:
    """What the rows are afterwards, or the kind of the error, which leaves none."""
    try:
        count = run(connection.cursor())
    except alluvium.Error as error:
        connection.rollback()
        return type(error), error.sqlstate
    found = count, sorted(map(repr, rows(connection)))
    connection.rollback()
    return found


@hypothesis.given(some.data())
@hypothesis.settings(max_examples=150)
def test_many_rows_are_as_row_by_row(data: some.DataObject) -> None:
    kinds = data.draw(some.lists(some.sampled_from(OF_COLUMNS), min_size=1, max_size=3))
    values = [some.none() | COLUMNS[kind] if data.draw(some.integers(0, 4)) else some.none() | COLUMNS[kind] | ANYTHING for kind in kinds]
    given = data.draw(some.lists(some.tuples(*values), min_size=1, max_size=12))
    # So many that the rows are inserted together.
    given = given * data.draw(some.sampled_from([1, 1, 3]))
    sql = f"INSERT INTO t VALUES ({', '.join('?' for _ in kinds)})"
    with dbapi.connect() as connection:
        columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(kinds))
        connection.cursor().execute(f"CREATE TABLE t ({columns})")
        connection.commit()

        def one_by_one(cursor: dbapi.Cursor) -> int:
            return sum(cursor.execute(sql, row).rowcount for row in given)

        expected = outcome(connection, one_by_one)
        assert outcome(connection, lambda cursor: cursor.executemany(sql, given).rowcount) == expected


@hypothesis.given(some.lists(some.tuples(some.integers(0, 12), some.none() | some.integers(-3, 3)), min_size=1, max_size=20), some.randoms())
@hypothesis.settings(max_examples=60)
def test_changes_by_key_are_as_row_by_row(given: list[tuple[int, int | None]], chance: random.Random) -> None:
    statements = [
        "INSERT INTO t VALUES (?, ?)",
        "INSERT OR REPLACE INTO t VALUES (?, ?)",
        "INSERT INTO t VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v",
        "INSERT INTO t VALUES (?, ?) ON CONFLICT DO NOTHING",
        "INSERT INTO r VALUES (?, ?)",
        "UPDATE t SET v = v + $2 WHERE k = $1",
        "DELETE FROM t WHERE k = $1 OR v = $2",
    ]
    sql = chance.choice(statements)
    with dbapi.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
        connection.commit()
        connection.autocommit = True
        cursor.execute("CREATE TABLE r (k BIGINT PRIMARY KEY, v BIGINT) WITH ('on_conflict' = 'replace')")
        cursor.executemany("INSERT INTO t VALUES (?, ?)", [(number, number) for number in range(5)])
        connection.autocommit = False

        def contents(run: Any) -> Any:
            try:
                count = run()
            except alluvium.Error as error:
                connection.rollback()
                return type(error), error.sqlstate
            found = count, rows(connection), rows(connection, "r")
            connection.rollback()
            return found

        expected = contents(lambda: sum(cursor.execute(sql, row).rowcount for row in given))
        assert contents(lambda: cursor.executemany(sql, given).rowcount) == expected
