"""Rows of results are taken once, in any way and in any mixture of ways."""

from typing import Any

import duckdb
import polars
import pyarrow
import pytest

import alluvium

COUNT = 5_000


@pytest.fixture
def result(db: alluvium.Database) -> alluvium.Result:
    """The numbers from 0 to 4,999, in order."""
    db.sql(f"CREATE TABLE n (a BIGINT PRIMARY KEY); INSERT INTO n SELECT * FROM range({COUNT})")
    return db.sql("SELECT a FROM n ORDER BY a")


TAKES: dict[str, Any] = {
    "fetchone": lambda result: [result.fetchone()],
    "fetchmany": lambda result: result.fetchmany(3),
    "fetchall": lambda result: result.fetchall(),
    "next": lambda result: [next(iter(result))],
    "some": lambda result: [row for _, row in zip(range(5), result)],
    "list": lambda result: list(result),
    "batch": lambda result: list(next(result.batches())),
    "batches": lambda result: [row for batch in result.batches() for row in batch],
    "table": lambda result: result.table().fetchall(),
    "arrow": lambda result: [tuple(row.values()) for row in result.arrow().to_pylist()],
    "reader": lambda result: [tuple(row.values()) for row in result.reader().read_all().to_pylist()],
    "pl": lambda result: result.pl().rows(),
    "df": lambda result: [tuple(row) for row in result.df().itertuples(index=False)],
    "polars": lambda result: polars.DataFrame(result).rows(),
    "duckdb": lambda result: duckdb.sql("SELECT * FROM result").fetchall(),
}


@pytest.mark.parametrize("second", TAKES)
@pytest.mark.parametrize("first", ["fetchone", "fetchmany", "next", "batch", "fetchall", "arrow"])
def test_ways_to_take_rows_follow_each_other(result: alluvium.Result, first: str, second: str) -> None:
    taken = TAKES[first](result)
    result.peek(10)
    rest = [] if len(taken) == COUNT and second in ("fetchone", "next", "batch") else TAKES[second](result)
    assert taken + rest == [(number,) for number in range(len(taken) + len(rest))]
    left = result.fetchall()
    assert taken + rest + left == [(number,) for number in range(COUNT)]


def test_a_loop_that_is_left_loses_nothing(result: alluvium.Result) -> None:
    for row in result:
        if row == (9,):
            break
    assert result.fetchone() == (10,)
    for row in result:
        assert row == (11,)
        break
    assert result.arrow()["a"].to_pylist() == list(range(12, COUNT))


def test_two_iterators_share_the_rows(result: alluvium.Result) -> None:
    one, other = iter(result), iter(result)
    assert [next(one), next(other), next(one)] == [(0,), (1,), (2,)]


@pytest.mark.parametrize("take", TAKES)
def test_after_the_last_row_there_is_nothing(result: alluvium.Result, take: str) -> None:
    result.fetchall()
    if take in ("next", "batch"):
        with pytest.raises(StopIteration):
            TAKES[take](result)
    else:
        assert TAKES[take](result) in ([], [None])


@pytest.mark.parametrize("take", [take for take in TAKES if take not in ("polars", "duckdb", "reader")])
def test_a_closed_result_gives_nothing(result: alluvium.Result, take: str) -> None:
    result.fetchone()
    result.close()
    result.close()
    with pytest.raises(alluvium.InterfaceError, match="closed"):
        TAKES[take](result)
    assert (result.columns, result.types, result.has_rows) == (["a"], ["BIGINT"], True)


def test_peek_leaves_the_rows(result: alluvium.Result) -> None:
    rows, count = result.peek(3)
    assert (rows.fetchall(), count) == ([(0,), (1,), (2,)], None)
    assert result.peek(1)[0].fetchall() == [(0,)]
    result.fetchmany(COUNT - 2)
    rows, count = result.peek(10)
    assert (rows.fetchall(), count) == ([(COUNT - 2,), (COUNT - 1,)], 2)
    assert len(result.fetchall()) == 2
    assert result.peek(10)[1] == 0


def test_fetchmany_takes_one_unless_told(result: alluvium.Result) -> None:
    assert result.fetchmany() == [(0,)]
    assert result.fetchmany(0) == []
    assert len(result.fetchmany(10**9)) == COUNT - 1


def test_a_result_is_of_the_version_that_it_began_with(db: alluvium.Database, result: alluvium.Result) -> None:
    assert result.fetchone() == (0,)
    db.sql("DELETE FROM n")
    assert len(result.fetchall()) == COUNT - 1
    assert db.sql("SELECT a FROM n").fetchall() == []


def test_a_result_outlives_its_table(db: alluvium.Database, result: alluvium.Result) -> None:
    assert result.fetchone() == (0,)
    db.sql("DROP TABLE n")
    assert len(result.fetchall()) == COUNT - 1


def test_results_beside_each_other(db: alluvium.Database, result: alluvium.Result) -> None:
    other = db.sql("SELECT a + 1 AS b FROM n ORDER BY a")
    for number in range(COUNT):
        assert (result.fetchone(), other.fetchone()) == ((number,), (number + 1,))


def test_zero_rows_have_columns(db: alluvium.Database) -> None:
    sql = "SELECT 1 AS a, 'x' AS b WHERE 1 = 0"
    assert db.sql(sql).fetchone() is None
    assert db.sql(sql).arrow().schema.names == ["a", "b"]
    assert db.sql(sql).pl().schema == {"a": polars.Int64, "b": polars.String}
    assert list(db.sql(sql).df().columns) == ["a", "b"]
    assert db.sql(sql).reader().schema.types == [pyarrow.int64(), pyarrow.string()]


@pytest.mark.engine("over a connection the first rows come with the statement")
def test_errors_come_with_the_rows_in_which_they_are(db: alluvium.Database, result: alluvium.Result) -> None:
    sql = "SELECT 1 / (a - 4000) AS b FROM n"
    with pytest.raises(alluvium.DataError, match="division by zero"):
        db.sql(sql).fetchall()
    with pytest.raises(alluvium.DataError, match="division by zero"):
        db.sql(sql).arrow()
    with pytest.raises(pyarrow.ArrowException, match="division by zero"):
        db.sql(sql).reader().read_all()
    with pytest.raises(polars.exceptions.ComputeError, match="division by zero"):
        polars.DataFrame(db.sql(sql))
    assert db.sql("SELECT count(*) AS n FROM n").fetchall() == [(COUNT,)]


def test_a_reader_computes_rows_as_they_are_read(db: alluvium.Database) -> None:
    reader = db.sql("SELECT a.range AS x, b.range AS y FROM range(1000000) a, range(1000000) b").reader()
    assert reader.read_next_batch().num_rows > 0


def test_a_table_is_a_sequence(result: alluvium.Result) -> None:
    table = result.table()
    assert (len(table), table[0], table[-1], table.columns, table.types) == (COUNT, (0,), (COUNT - 1,), ["a"], ["BIGINT"])
    assert table.column("a") == list(range(COUNT))
    assert list(table) == list(table) == table.fetchall()
    assert table.arrow().num_rows == table.pl().height == len(table.df()) == COUNT
    for row in (COUNT, -COUNT - 1):
        with pytest.raises(IndexError):
            table[row]
    with pytest.raises(KeyError):
        table.column("nothing")


def test_a_slow_consumer_of_one_result_does_not_hold_up_others(db: alluvium.Database, result: alluvium.Result) -> None:
    reader = result.reader()
    reader.read_next_batch()
    assert db.insert("n", [(COUNT,)]) == 1
    assert db.sql("SELECT count(*) AS n FROM n").fetchall() == [(COUNT + 1,)]
