"""Rows are read by key, without SQL."""

import datetime as dt
import decimal
import threading
from typing import Any

import pytest

import alluvium


@pytest.fixture
def db(db: alluvium.Database) -> alluvium.Database:
    db.sql("""
        CREATE TABLE t (a BIGINT, b VARCHAR, x BIGINT, PRIMARY KEY (a, b));
        CREATE TABLE n (x BIGINT);
        CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS c, sum(x) AS s FROM t GROUP BY a;
        CREATE VIEW p AS SELECT a FROM t
    """)
    db.insert("t", [(number // 3, "abc"[number % 3], number) for number in range(30)])
    return db


def test_a_view_says_what_it_is(db: alluvium.Database) -> None:
    view = db.view("t")
    assert (view.name, view.columns, view.types, view.key) == ("t", ["a", "b", "x"], ["BIGINT", "VARCHAR", "BIGINT"], ["a", "b"])
    assert db.view("v").key == ["a"]
    assert db.view("n").key == []
    assert "t (a, b, x)" in repr(view)


def test_get_finds_the_row_of_a_key(db: alluvium.Database) -> None:
    assert db.view("t").get(3, "b") == (3, "b", 10)
    assert db.view("t").get(3, "z") is None
    assert db.view("v").get(3) == (3, 3, 30)
    assert db.view("v").get(99) is None
    assert db.view("v").get(None) is None


@pytest.mark.parametrize("key", [(), (3,)])
def test_get_needs_the_whole_key(db: alluvium.Database, key: tuple[Any, ...]) -> None:
    with pytest.raises(alluvium.InterfaceError, match=r"a, b.*prefix\(\)"):
        db.view("t").get(*key)


@pytest.mark.parametrize("key", [("x", "y"), (3, 5), (3, "b", 5), ({"a": 1}, "b"), (object(), "b"), (2**70, "b")])
def test_a_key_of_another_type_is_refused_or_not_there(db: alluvium.Database, key: tuple[Any, ...]) -> None:
    try:
        assert db.view("t").get(*key) is None
    except alluvium.Error as error:
        assert str(error)


def test_prefix_finds_the_rows_whose_keys_begin_so(db: alluvium.Database) -> None:
    view = db.view("t")
    assert sorted(view.prefix(3)) == [(3, "a", 9), (3, "b", 10), (3, "c", 11)]
    assert view.prefix(3, "b").fetchall() == [(3, "b", 10)]
    assert len(view.prefix()) == 30
    assert len(view.prefix(99)) == 0 and view.prefix(99).columns == ["a", "b", "x"]


@pytest.mark.parametrize(
    ("low", "high", "xs"),
    [
        (None, None, range(30)),
        ((3,), (4,), range(9, 15)),
        ((3, "b"), (4, "a"), range(10, 13)),
        (None, (0, "b"), range(2)),
        ((9, "b"), None, range(28, 30)),
        ([9], None, range(27, 30)),
        ((5,), (4,), []),
        ((99,), None, []),
    ],
)
def test_range_finds_the_rows_between_keys_in_order(db: alluvium.Database, low: Any, high: Any, xs: Any) -> None:
    rows = db.view("t").range(low, high).fetchall()
    assert [row[2] for row in rows] == list(xs)
    assert rows == sorted(rows)


def test_a_range_is_a_result(db: alluvium.Database) -> None:
    result = db.view("t").range((3,), high=(3,))
    assert result.columns == ["a", "b", "x"]
    assert result.fetchone() == (3, "a", 9)
    assert result.arrow().num_rows == 2
    assert db.view("v").range().pl().height == 10


def test_reads_see_every_commit(db: alluvium.Database) -> None:
    table, view = db.view("t"), db.view("v")
    for number in range(30):
        db.upsert("t", [(100, "a", number)])
        assert table.get(100, "a") == (100, "a", number)
        assert view.get(100) == (100, 1, number)
    db.delete("t", [(100, "a", None)])
    assert (table.get(100, "a"), view.get(100)) == (None, None)


def test_stale_reads_come_to_see_every_commit(db: alluvium.Database) -> None:
    stale = db.view("v").stale()
    epoch = db.progress().committed
    db.insert("t", [(100, "a", 5)])
    db.wait(epoch + 1)
    assert stale.get(100) == (100, 1, 5)
    assert (stale.name, stale.key) == ("v", ["a"])


def test_what_has_no_key_is_read_as_a_whole(db: alluvium.Database) -> None:
    db.insert("n", [(1,), (1,), (2,)])
    view = db.view("n")
    assert sorted(view.range()) == [(1,), (1,), (2,)]
    for act in (lambda: view.get(1), lambda: view.prefix(1), lambda: view.range((1,)).fetchall()):
        with pytest.raises(alluvium.DataError, match="query them"):
            act()


@pytest.mark.parametrize("name", ["nothing", "p"])
def test_only_what_keeps_rows_is_a_view(db: alluvium.Database, name: str) -> None:
    with pytest.raises(alluvium.ProgrammingError):
        db.view(name)


def test_a_view_that_is_dropped_cannot_be_read(db: alluvium.Database) -> None:
    view = db.view("v")
    db.sql("DROP MATERIALIZED VIEW v")
    for act in (lambda: view.get(1), lambda: view.prefix(), lambda: view.range().fetchall()):
        with pytest.raises(alluvium.Error, match='"v"'):
            act()


@pytest.mark.parametrize(
    ("kind", "key", "other"),
    [
        ("BIGINT", -(2**63), 5),
        ("DOUBLE", 0.5, 7),
        ("VARCHAR", "", "x"),
        ("DATE", dt.date(2020, 1, 1), dt.date(1, 1, 1)),
        ("TIMESTAMP", dt.datetime(2020, 1, 1), dt.datetime(1, 1, 1)),
        ("TIMESTAMPTZ", dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc), dt.datetime(2021, 1, 1, tzinfo=dt.timezone.utc)),
        ("DECIMAL(10,2)", decimal.Decimal("1.50"), decimal.Decimal(2)),
        ("BYTEA", b"\0", b""),
        ("BOOLEAN", True, False),
        ("BIGINT[]", [1, 2], []),
    ],
)
def test_keys_are_of_any_type(db: alluvium.Database, kind: str, key: Any, other: Any) -> None:
    db.sql(f"CREATE TABLE k (k {kind} PRIMARY KEY, v INT)")
    db.insert("k", [(key, 1), (other, 2)])
    assert db.view("k").get(key) == (key, 1)
    assert len(db.view("k").range((key,), (key,)).fetchall()) == 1


def test_threads_read_beside_a_writer(db: alluvium.Database) -> None:
    view, wrong, done = db.view("v"), [], threading.Event()

    def read() -> None:
        while not done.is_set():
            row = view.get(500)
            if row is not None and row[1] * 2 != row[2]:
                wrong.append(row)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(50):
        db.insert("t", [(500, str(number), 2)])
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == [] and view.get(500) == (500, 50, 100)
