"""Rows are inserted, upserted and deleted, in transactions or alone."""

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pandas
import polars
import pyarrow
import pytest

import alluvium


@pytest.fixture
def db(db: alluvium.Database) -> alluvium.Database:
    db.sql("CREATE TABLE t (a BIGINT, s VARCHAR DEFAULT 'none')")
    db.sql("CREATE TABLE k (k BIGINT PRIMARY KEY, v VARCHAR DEFAULT 'none', n INT NOT NULL DEFAULT 7, CHECK (k < 100))")
    return db


def held(db: alluvium.Database, table: str = "t") -> list[Any]:
    rows = db.sql(f"SELECT * FROM {table}").fetchall()
    return sorted(rows, key=lambda row: [(value is None, value) for value in row])


Row = namedtuple("Row", "a s")
ROWS: dict[str, Callable[[], Any]] = {
    "tuples": lambda: [(1, "x"), (2, None)],
    "lists": lambda: [[1, "x"], [2, None]],
    "named tuples": lambda: [Row(1, "x"), Row(2, None)],
    "dicts": lambda: [{"a": 1, "s": "x"}, {"s": None, "a": 2}],
    "ordered dicts": lambda: [OrderedDict(a=1, s="x"), OrderedDict(a=2, s=None)],
    "other case": lambda: [{"A": 1, "S": "x"}, {"A": 2, "S": None}],
    "a tuple of tuples": lambda: ((1, "x"), (2, None)),
    "a set": lambda: {(1, "x"), (2, None)},
    "a generator": lambda: (row for row in [(1, "x"), (2, None)]),
    "zip": lambda: zip([1, 2], ["x", None]),
    "values of a dict": lambda: {0: (1, "x"), 1: (2, None)}.values(),
    "columns": lambda: {"s": ["x", None], "a": (1, 2)},
    "columns of arrays": lambda: {"a": numpy.array([1, 2]), "s": polars.Series(["x", None])},
    "columns of ranges": lambda: {"a": range(1, 3), "s": iter(["x", None])},
    "polars": lambda: polars.DataFrame({"a": [1, 2], "s": ["x", None]}),
    "pandas": lambda: pandas.DataFrame({"a": [1, 2], "s": ["x", None]}),
    "pyarrow": lambda: pyarrow.table({"a": [1, 2], "s": ["x", None]}),
    "a batch": lambda: pyarrow.record_batch({"a": [1, 2], "s": ["x", None]}),
    "a reader": lambda: pyarrow.table({"a": [1, 2], "s": ["x", None]}).to_reader(),
    "frames": lambda: [polars.DataFrame({"a": [1], "s": ["x"]}), pyarrow.table({"a": [2], "s": pyarrow.nulls(1)})],
    "a generator of frames": lambda: (polars.DataFrame({"a": [a], "s": [s]}) for a, s in [(1, "x"), (2, None)]),
    "columns and rows": lambda: iter([{"a": [1], "s": ["x"]}, (2, None)]),
    "lists of rows": lambda: iter([[(1, "x")], [], [{"a": 2, "s": None}]]),
}


@pytest.mark.parametrize("kind", ROWS)
def test_rows_of_all_kinds_are_inserted(db: alluvium.Database, kind: str) -> None:
    assert db.insert("t", ROWS[kind]()) == 2
    assert held(db) == [(1, "x"), (2, None)]


@pytest.mark.parametrize("kind", [[], (), {}, iter([]), {"a": []}, polars.DataFrame(), polars.DataFrame({"a": []}), pyarrow.table({})], ids=repr)
def test_no_rows_are_inserted(db: alluvium.Database, kind: Any) -> None:
    assert db.insert("t", kind) == 0
    assert held(db) == []


@pytest.mark.parametrize(
    "kind",
    [None, 5, "text", b"bytes", [1, 2], ["text"], range(3), [(1, "x"), {"a": 2}], [{"a": 1}, (2, "x")], numpy.array([1, 2]), object(), {"a": 5}, {"a": "xy"}]
    + [polars.Series("a", [1]), pyarrow.array([1])],
    ids=lambda kind: f"{type(kind).__name__} {str(kind)[:12]!r}",
)
def test_what_is_no_rows_is_refused(db: alluvium.Database, kind: Any) -> None:
    with pytest.raises(alluvium.InterfaceError):
        db.insert("t", kind)
    assert held(db) == []


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"a": 1, "b": 2}], 'no column "b"; its columns are a, s'),
        ({"b": [1]}, 'no column "b"'),
        (polars.DataFrame({"b": [1]}), 'no column "b"'),
        ({"a": [1], "A": [2]}, "given twice"),
        ([(1,)], "row 0 has 1 value"),
        ([(1, "x"), (1, "x", 3)], "row 1 has 3 values"),
        ({"a": [1], "s": ["x", "y"]}, '"s" has 2'),
        (pyarrow.table({"a": [{"x": 1}]}), "takes BIGINT, and is given STRUCT"),
        (pyarrow.table({"a": ["x"]}), 'column "a"'),
    ],
)
def test_rows_that_do_not_match_the_table_are_refused(db: alluvium.Database, rows: Any, said: str) -> None:
    with pytest.raises(alluvium.DataError, match=said):
        db.insert("t", rows)
    assert held(db) == []


@pytest.mark.parametrize("name", ["nothing", "v", "information_schema.tables"])
@pytest.mark.parametrize("write", ["insert", "upsert", "delete"])
def test_only_tables_are_written(db: alluvium.Database, name: str, write: str) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    with pytest.raises(alluvium.ProgrammingError):
        getattr(db, write)(name, [(1,)])


def test_columns_that_are_missing_get_their_default(db: alluvium.Database) -> None:
    db.insert("k", [{"k": 1}])
    db.insert("k", {"k": [2]})
    db.insert("k", polars.DataFrame({"k": [3]}))
    db.insert("k", [{"k": 4, "v": None}])
    assert held(db, "k") == [(1, "none", 7), (2, "none", 7), (3, "none", 7), (4, None, 7)]


@pytest.mark.parametrize("write", ["insert", "upsert"])
def test_each_dict_may_miss_columns(db: alluvium.Database, write: str) -> None:
    getattr(db, write)("k", [{"k": 1}, {"k": 2, "v": "x"}, {"n": 1, "k": 3}, {"k": 4}])
    assert held(db, "k") == [(1, "none", 7), (2, "x", 7), (3, "none", 1), (4, "none", 7)]


def test_dicts_with_other_columns_keep_their_order_and_numbers(db: alluvium.Database) -> None:
    db.upsert("k", [{"k": 1, "v": "a"}, {"k": 1}, {"k": 2}, {"k": 2, "v": "b"}])
    assert held(db, "k") == [(1, "none", 7), (2, "b", 7)]
    with pytest.raises(alluvium.DataError, match='column "n", row 3: .x. is no INTEGER'):
        db.insert("k", [{"k": 3}, {"k": 4, "n": 1}, {"k": 5}, {"k": 6, "n": "x"}])
    assert db.delete("k", [{"k": 1}, {"k": 2, "v": "any"}]) == 2
    assert held(db, "k") == []


def test_a_row_of_defaults_alone(db: alluvium.Database) -> None:
    assert db.insert("t", [{}]) == 1
    assert held(db) == [(None, "none")]


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        ([{"k": 2, "n": None}], "23502"),
        ([{"v": "x"}], "23502"),
        ([{"k": 1}], "23505"),
        ([{"k": 2}, {"k": 2}], "23505"),
        ([{"k": 100}], "23514"),
        (polars.DataFrame({"k": [5, 6, 1]}), "23505"),
    ],
)
def test_rules_of_the_table_hold(db: alluvium.Database, rows: Any, state: str) -> None:
    db.insert("k", [{"k": 1}])
    with pytest.raises(alluvium.IntegrityError) as raised:
        db.insert("k", rows)
    assert raised.value.sqlstate == state
    assert held(db, "k") == [(1, "none", 7)]


def test_upserts_take_the_place_of_rows(db: alluvium.Database) -> None:
    db.insert("k", [(1, "a", 1), (2, "b", 2)])
    assert db.upsert("k", [(1, "c", 3), (3, "d", 4)]) == 2
    assert db.upsert("k", polars.DataFrame({"k": [2]})) == 1
    assert db.upsert("k", [(3, "e", 5), (3, "f", 6)]) == 2
    assert held(db, "k") == [(1, "c", 3), (2, "none", 7), (3, "f", 6)]


@pytest.mark.parametrize("rows", [[{"k": 1}], {"k": [1]}, polars.DataFrame({"k": [1]}), [(1, "other", 9)], [{"k": 1, "n": 5}]], ids=str)
def test_rows_are_deleted_by_key(db: alluvium.Database, rows: Any) -> None:
    db.insert("k", [(1, "a", 1), (2, "b", 2)])
    assert db.delete("k", rows) == 1
    assert held(db, "k") == [(2, "b", 2)]


def test_deleting_needs_the_key(db: alluvium.Database) -> None:
    with pytest.raises(alluvium.DataError, match='need its column "k"'):
        db.delete("k", [{"v": "x"}])
    with pytest.raises(alluvium.DataError, match='need its column "s"'):
        db.delete("t", [{"a": 1}])


@pytest.mark.engine("over a connection rows are deleted by key")
def test_whole_rows_are_deleted_one_copy_each(db: alluvium.Database) -> None:
    db.insert("t", [(1, "x"), (1, "x"), (1, None), (2, "x")])
    assert db.delete("t", [(1, "x"), (1, None), (5, "x")]) == 3
    assert held(db) == [(1, "x"), (2, "x")]


def endless_error(rows: Any, count: int) -> Iterator[Any]:
    for _ in range(count):
        yield rows
    raise ValueError("half way")


@pytest.mark.parametrize("count", [0, 1, 70_000])
def test_a_generator_that_raises_leaves_nothing(db: alluvium.Database, count: int) -> None:
    with pytest.raises(ValueError, match="half way"):
        db.insert("t", endless_error((1, "x"), count))
    assert held(db) == []
    assert db.insert("t", [(1, "x")]) == 1


def test_a_generator_of_frames_that_raises_leaves_nothing(db: alluvium.Database) -> None:
    with pytest.raises(ValueError, match="half way"):
        db.insert("t", endless_error(polars.DataFrame({"a": range(50_000)}), 3))
    assert held(db) == []


def test_more_rows_than_are_converted_at_once(db: alluvium.Database) -> None:
    assert db.insert("t", ((number, None) for number in range(70_000))) == 70_000
    assert db.insert("t", {"a": range(70_000)}) == 70_000
    assert db.sql("SELECT count(*) AS c, count(DISTINCT a) AS d, sum(a) AS s FROM t").fetchall() == [(140_000, 70_000, 70_000 * 69_999)]


def test_a_generator_may_use_the_database(db: alluvium.Database) -> None:
    db.insert("t", [(1, "x")])
    rows = ((row[0] + 1, db.sql("SELECT count(*) AS n FROM k").fetchall()[0][0] or "y") for row in db.sql("SELECT a FROM t"))
    with pytest.raises(alluvium.DataError):
        db.insert("t", ((a, s if isinstance(s, int) else 0) for a, s in rows))
    assert held(db) == [(1, "x")]
    assert db.insert("t", db.sql("SELECT a + 1 AS a, s FROM t")) == 1
    assert held(db) == [(1, "x"), (2, "x")]


def test_frames_may_be_changed_after_they_are_inserted(db: alluvium.Database) -> None:
    values = numpy.arange(1_000)
    frame = pandas.DataFrame({"a": values})
    with db.transaction() as transaction:
        transaction.insert("t", frame)
        frame.loc[:, "a"] = -1
        values[:] = -1
    assert [row[0] for row in held(db)] == list(range(1_000))


def test_a_buffer_may_be_changed_after_it_is_inserted(db: alluvium.Database) -> None:
    buffer = bytearray(numpy.arange(1_000, dtype="int64").tobytes())
    array = pyarrow.Array.from_buffers(pyarrow.int64(), 1_000, [None, pyarrow.py_buffer(buffer)])
    with db.transaction() as transaction:
        transaction.insert("t", pyarrow.table({"a": array}))
        buffer[:] = bytes(len(buffer))
    assert [row[0] for row in held(db)] == list(range(1_000))


def test_transactions_are_committed_as_one(db: alluvium.Database) -> None:
    with db.transaction() as transaction:
        assert transaction.insert("t", [(1, "x")]) == 1
        assert transaction.insert("k", [{"k": 1}]) == 1
        assert transaction.upsert("k", [{"k": 1, "v": "y"}]) == 1
        assert held(db) == held(db, "k") == []
    assert held(db) == [(1, "x")]
    assert held(db, "k") == [(1, "y", 7)]
    assert db.progress().committed == db.sql("INSERT INTO t VALUES (2, 'y')").epoch - 1  # type: ignore[operator]


def test_a_block_that_raises_is_rolled_back(db: alluvium.Database) -> None:
    with pytest.raises(KeyError), db.transaction() as transaction:
        transaction.insert("t", [(1, "x")])
        raise KeyError
    assert held(db) == []
    with db.transaction() as transaction:
        transaction.insert("t", [(1, "x")])
        transaction.rollback()
    assert held(db) == []


def test_a_transaction_ends_once(db: alluvium.Database) -> None:
    transaction = db.transaction()
    transaction.insert("t", [(1, "x")])
    epoch = transaction.commit()
    assert epoch == db.progress().committed
    for act in (transaction.commit, lambda: transaction.insert("t", [(2, "x")])):
        with pytest.raises(alluvium.InterfaceError, match="closed"):
            act()
    transaction.rollback()
    assert held(db) == [(1, "x")]


def test_a_transaction_that_is_dropped_is_rolled_back(db: alluvium.Database) -> None:
    db.transaction().insert("t", [(1, "x")])
    assert held(db) == []


def test_a_write_that_fails_leaves_nothing_in_its_transaction(db: alluvium.Database) -> None:
    with db.transaction() as transaction:
        transaction.insert("t", [(1, "x")])
        with pytest.raises(alluvium.DataError):
            transaction.insert("t", [(2, "x"), ("no number", "x")])
    assert held(db) == [(1, "x")]


@pytest.mark.engine("transactions over a connection have no keys")
def test_a_key_lets_a_transaction_be_committed_once(db: alluvium.Database) -> None:
    epochs = []
    for number in range(2):
        transaction = db.transaction("import 7")
        transaction.insert("t", [(number, "x")])
        epochs.append(transaction.commit())
    assert epochs[0] == epochs[1] == db.committed("import 7")
    assert db.committed("import 8") is None
    assert held(db) == [(0, "x")]


@pytest.mark.engine("a server reads no variables of this process")
def test_batches_are_refused_while_a_transaction_of_sql_is_open(db: alluvium.Database) -> None:
    db.sql("BEGIN; INSERT INTO t VALUES (1, 'x')")
    for write in (db.insert, db.upsert, db.delete):
        with pytest.raises(alluvium.InterfaceError, match="a transaction of SQL is open"):
            write("t", [(2, "x")])
    frame = polars.DataFrame({"a": [3], "s": ["y"]})
    db.sql("INSERT INTO t SELECT * FROM frame; COMMIT")
    assert held(db) == [(1, "x"), *frame.rows()]
    assert db.insert("t", [(2, "x")]) == 1


def test_names_of_tables_are_exact(db: alluvium.Database) -> None:
    db.sql('CREATE TABLE "Mixed Case" ("A b" BIGINT); CREATE SCHEMA s; CREATE TABLE s.t (a BIGINT)')
    db.insert("Mixed Case", [{"A b": 1}])
    db.insert("s.t", [(5,)])
    assert held(db, '"Mixed Case"') == [(1,)] and held(db, "s.t") == [(5,)] and held(db) == []


def test_a_write_that_fails_halfway_takes_its_transaction_along(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE long (a BIGINT)")

    def failing(count: int) -> Iterator[tuple[int]]:
        for a in range(count):
            yield (a,)
        raise ValueError("no more")

    # Nothing of a few rows has been taken: the transaction stays as it was.
    with db.transaction() as transaction:
        transaction.insert("long", [(1,)])
        with pytest.raises(ValueError, match="no more"):
            transaction.insert("long", failing(10))
    assert db.sql("SELECT a FROM long").fetchall() == [(1,)]

    transaction = db.transaction()
    transaction.insert("long", [(2,)])
    with pytest.raises(ValueError, match="no more"):
        transaction.insert("long", failing(100_000))
    with pytest.raises(alluvium.InterfaceError, match="rolled back, because a write failed"):
        transaction.commit()
    with pytest.raises(alluvium.InterfaceError, match="rolled back"), db.transaction() as transaction:
        with pytest.raises(ValueError, match="no more"):
            transaction.insert("long", failing(100_000))
    assert db.sql("SELECT a FROM long").fetchall() == [(1,)]
