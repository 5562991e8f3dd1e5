"""Rows go in and out through Arrow, and are what DuckDB and polars make of them."""

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pytest

import alluvium

pytestmark = pytest.mark.engine("its frames are variables, and have structs")

D = decimal.Decimal
COUNT = 3_000


def table() -> pyarrow.Table:
    """Columns of all types that SQL has, each with NULLs."""
    numbers = [None if number % 7 == 3 else number for number in range(COUNT)]

    def each(make: Callable[[int], Any]) -> list[Any]:
        return [None if number is None else make(number) for number in numbers]

    return pyarrow.table(
        {
            "id": pyarrow.array(range(COUNT), pyarrow.int64()),
            "bool": pyarrow.array(each(lambda n: n % 2 == 0)),
            "tiny": pyarrow.array(each(lambda n: n % 256 - 128), pyarrow.int8()),
            "small": pyarrow.array(each(lambda n: n - 1_500), pyarrow.int16()),
            "int": pyarrow.array(each(lambda n: n * 1_000), pyarrow.int32()),
            "unsigned": pyarrow.array(each(lambda n: 2**64 - 1 - n), pyarrow.uint64()),
            "real": pyarrow.array(each(lambda n: n / 4), pyarrow.float32()),
            "double": pyarrow.array(each(lambda n: n / 3), pyarrow.float64()),
            "decimal": pyarrow.array(each(lambda n: D(n) / 100), pyarrow.decimal128(38, 2)),
            "text": pyarrow.array(each(lambda n: "é" * (n % 20))),
            "bytes": pyarrow.array(each(lambda n: bytes([n % 256]) * (n % 5))),
            "date": pyarrow.array(each(lambda n: dt.date(1960, 1, 1) + dt.timedelta(days=n)), pyarrow.date32()),
            "time": pyarrow.array(each(lambda n: dt.time(n % 24, n % 60, 0, n)), pyarrow.time64("us")),
            "timestamp": pyarrow.array(each(lambda n: dt.datetime(1969, 12, 31, 23, 59, n % 60, n)), pyarrow.timestamp("us")),
            "instant": pyarrow.array(each(lambda n: n * 10**9), pyarrow.timestamp("us", "UTC")),
            "items": pyarrow.array(each(lambda n: [n, None] * (n % 3)), pyarrow.list_(pyarrow.int64())),
            "nested": pyarrow.array(each(lambda n: {"a": n, "b": [str(n)]})),
        }
    )


TABLE = table()
DDL = """
    CREATE TABLE t (id BIGINT PRIMARY KEY, bool BOOLEAN, tiny TINYINT, small SMALLINT, "int" INT, unsigned BIGINT UNSIGNED, real REAL, double DOUBLE,
        "decimal" DECIMAL(38, 2), text VARCHAR, bytes BYTEA, date DATE, time TIME, timestamp TIMESTAMP, instant TIMESTAMPTZ,
        items BIGINT[], nested STRUCT(a BIGINT, b VARCHAR[]))
"""
WAYS_IN: dict[str, Callable[[pyarrow.Table], Any]] = {
    "table": lambda table: table,
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "reader": lambda table: table.to_reader(max_chunksize=100),
    "chunked": lambda table: pyarrow.concat_tables([table.slice(start, 321) for start in range(0, table.num_rows, 321)]),
    "sliced": lambda table: pyarrow.concat_tables([table.slice(0, 5), table, table.slice(0, 9)]).slice(5, table.num_rows),
    "polars": lambda table: polars.DataFrame(table),
    "polars in chunks": lambda table: polars.concat([polars.DataFrame(table.slice(0, 1_001)), polars.DataFrame(table.slice(1_001))], rechunk=False),
    "pandas of arrow": lambda table: table.to_pandas(types_mapper=pandas.ArrowDtype),
    "duckdb": lambda frame: duckdb.sql("SELECT * FROM frame"),
    "result": lambda frame: alluvium.memory().sql("SELECT * FROM frame"),
    "table of a result": lambda frame: alluvium.memory().sql("SELECT * FROM frame").table(),
    "generator": lambda table: (batch for batch in table.to_batches(max_chunksize=500)),
    "other types": lambda table: table.cast(
        pyarrow.schema(
            [
                (field.name, {"string": pyarrow.large_string(), "binary": pyarrow.large_binary()}.get(str(field.type), field.type))
                for field in table.schema
            ]
        )
    ),
    "other order": lambda table: table.select(list(reversed(table.column_names))),
}


def rows(table: Any) -> list[Any]:
    return [tuple(row.values()) for row in pyarrow.table(table).sort_by("id").to_pylist()]


@pytest.mark.parametrize("way", WAYS_IN)
def test_all_types_are_inserted(db: alluvium.Database, way: str) -> None:
    db.sql(DDL)
    assert db.insert("t", WAYS_IN[way](TABLE)) == COUNT
    assert rows(db.sql("SELECT * FROM t").arrow()) == rows(TABLE)


@pytest.mark.parametrize("way", [way for way in WAYS_IN if way != "generator"])
def test_all_types_are_read_from_variables(db: alluvium.Database, way: str) -> None:
    frame = WAYS_IN[way](TABLE)
    assert frame is not None
    names = ", ".join(f'"{name}"' for name in TABLE.column_names)
    assert rows(db.sql(f"SELECT {names} FROM frame").arrow()) == rows(TABLE)


WAYS_OUT: dict[str, Callable[[alluvium.Result], pyarrow.Table]] = {
    "arrow": lambda result: result.arrow(),
    "reader": lambda result: result.reader().read_all(),
    "table": lambda result: result.table().arrow(),
    "batches": lambda result: pyarrow.concat_tables([batch.arrow() for batch in result.batches()]),
    "stream": lambda result: pyarrow.table(result),
    "pl": lambda result: result.pl().to_arrow(),
    "polars": lambda result: polars.DataFrame(result).to_arrow(),
    "duckdb": lambda result: duckdb.sql("SELECT * FROM result").to_arrow_table(),
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_all_types_come_out(db: alluvium.Database, way: str) -> None:
    db.sql(DDL)
    db.insert("t", TABLE)
    assert rows(WAYS_OUT[way](db.sql("SELECT * FROM t"))) == rows(TABLE)


def test_pandas_gets_what_pyarrow_makes(db: alluvium.Database) -> None:
    db.sql(DDL)
    db.insert("t", TABLE)
    sql = "SELECT id, bool, small, double, text, date, timestamp, instant FROM t ORDER BY id"
    expected = TABLE.select(["id", "bool", "small", "double", "text", "date", "timestamp", "instant"]).to_pandas(date_as_object=False)
    pandas.testing.assert_frame_equal(db.sql(sql).df(), expected, check_dtype=False)
    assert str(db.sql(sql).df()["date"].dtype).startswith("datetime64")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT small % 10 AS g, count(*) AS n, sum(int) AS s, min(text) AS m FROM frame GROUP BY 1",
        "SELECT a.id, b.text FROM frame a JOIN frame b ON a.id = b.id + 1 WHERE a.tiny > 100",
        "SELECT id, row_number() OVER (PARTITION BY small % 5 ORDER BY id) AS r FROM frame",
        "SELECT date_trunc('month', timestamp) AS d, count(date) AS n FROM frame GROUP BY 1",
        "SELECT sum(\"decimal\") AS s, avg(double) > 100 AS a, max(unsigned) AS u FROM frame",
        "SELECT upper(text) AS u, length(text) AS l FROM frame WHERE text LIKE 'éé%'",
        "SELECT bool, count(DISTINCT tiny) AS n FROM frame GROUP BY bool",
        "SELECT nested.a AS a, items[1] AS l FROM frame WHERE nested.a > 2990",
        "SELECT id FROM frame EXCEPT SELECT small FROM frame",
    ],
)
def test_answers_are_those_of_duckdb(db: alluvium.Database, sql: str) -> None:
    frame = TABLE
    answer, expected = db.sql(sql).fetchall(), duckdb.sql(sql).fetchall()
    assert frame is TABLE
    assert sorted(answer, key=repr) == sorted(expected, key=repr)


def test_groups_are_those_of_polars(db: alluvium.Database) -> None:
    frame = polars.DataFrame(TABLE)
    answer = db.sql("SELECT bool, count(*) AS n, coalesce(sum(int), 0) AS s, max(date) AS d FROM frame GROUP BY bool").pl()
    expected = frame.group_by("bool").agg(n=polars.len(), s=polars.col("int").sum(), d=polars.col("date").max())
    assert sorted(answer.rows(), key=repr) == sorted(expected.rows(), key=repr)


ENCODED: dict[str, pyarrow.Array] = {
    "dictionary": pyarrow.array(["x", None, "y", "x"]).dictionary_encode(),
    "dictionary with small indices": pyarrow.array(["x", None, "y", "x"]).cast(pyarrow.dictionary(pyarrow.int8(), pyarrow.string())),
    "dictionary with NULL in it": pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1, 2, 0]), pyarrow.array(["x", None, "y"])),
    "large": pyarrow.array(["x", None, "y", "x"], pyarrow.large_string()),
    "view": pyarrow.array(["x", None, "y", "x"], pyarrow.string_view()),
    "sliced": pyarrow.array(["z", "x", None, "y", "x", "z"]).slice(1, 4),
    "runs": pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([1, 2, 3, 4]), pyarrow.array(["x", None, "y", "x"])),
    "sliced view": pyarrow.array(["z", "x", None, "y", "x", "a text that is longer than twelve bytes"], pyarrow.string_view()).slice(1, 4),
}


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize("how", ["insert", "scan"])
def test_encodings_of_texts_are_texts(db: alluvium.Database, encoding: str, how: str) -> None:
    frame = pyarrow.table({"a": ENCODED[encoding]})
    db.sql("CREATE TABLE t (a VARCHAR)")
    if how == "insert":
        db.insert("t", frame)
    else:
        db.sql("INSERT INTO t SELECT a FROM frame")
    assert sorted(db.sql("SELECT a FROM t").fetchall(), key=str) == sorted(
        [("x",), (None,), ("y",), ("x",)], key=str
    )


NULLS: dict[str, Any] = {
    "pyarrow": lambda: pyarrow.table({"a": pyarrow.nulls(2)}),
    "polars": lambda: polars.DataFrame({"a": [None, None]}),
    "pandas": lambda: pandas.DataFrame({"a": [None, None]}),
    "typed": lambda: pyarrow.table({"a": pyarrow.nulls(2, pyarrow.int64())}),
}


@pytest.mark.parametrize("library", NULLS)
@pytest.mark.parametrize("kind", ["BIGINT", "VARCHAR", "DATE", "BIGINT[]", "STRUCT(a INT)", "DECIMAL(5,2)", "TIMESTAMPTZ", "BYTEA", "BOOLEAN"])
def test_columns_of_nulls_fit_every_type(db: alluvium.Database, library: str, kind: str) -> None:
    db.sql(f"CREATE TABLE t (a {kind})")
    if library == "typed" and kind != "BIGINT":
        pytest.skip("one type is enough")
    assert db.insert("t", NULLS[library]()) == 2
    assert db.sql("SELECT a FROM t").fetchall() == [(None,), (None,)]


@pytest.mark.parametrize("library", NULLS)
def test_columns_of_nulls_are_read(db: alluvium.Database, library: str) -> None:
    frame = NULLS[library]()
    assert db.sql("SELECT a FROM frame").fetchall() == [(None,), (None,)]
    assert frame is not None


@pytest.mark.parametrize("values", [[[], []], [[None], []], [{"x": None}, None]], ids=repr)
def test_nulls_within_lists_and_structs_are_read(db: alluvium.Database, values: Any) -> None:
    frame = polars.DataFrame({"a": values})
    assert db.sql("SELECT a FROM frame").fetchall() == [(value,) for value in frame["a"].to_list()]


@pytest.mark.parametrize("make", [lambda table: table, polars.DataFrame, lambda table: table.to_pandas(), lambda table: table.to_reader()])
def test_zero_rows_are_read_and_inserted(db: alluvium.Database, make: Callable[[Any], Any]) -> None:
    frame = make(TABLE.slice(0, 0).select(["id", "text"]))
    assert frame is not None
    result = db.sql("SELECT * FROM frame")
    assert (result.columns, result.fetchall()) == (["id", "text"], [])
    db.sql("CREATE TABLE t (id BIGINT, text VARCHAR)")
    assert db.insert("t", make(TABLE.slice(0, 0).select(["id", "text"]))) == 0


@pytest.mark.parametrize(
    ("kind", "frame", "said"),
    [
        ("SMALLINT", polars.DataFrame({"a": [1, 70_000]}), "70000"),
        ("BIGINT", polars.DataFrame({"a": [1.5]}), "1.5"),
        ("BIGINT", polars.DataFrame({"a": [float("nan")]}), "(?i)nan"),
        ("BIGINT", polars.DataFrame({"a": ["x"]}), "'x'"),
        ("BIGINT", pyarrow.table({"a": [D("1.5")]}), "1.5"),
        ("DECIMAL(5,2)", polars.DataFrame({"a": [D("1000.00")]}), "1000.00"),
        ("REAL", polars.DataFrame({"a": [1e300]}), "1e\\+?300"),
        ("DATE", polars.DataFrame({"a": [dt.datetime(2020, 1, 1, 5)]}), "2020-01-01"),
        ("DATE", polars.DataFrame({"a": [5]}), "BIGINT"),
        ("BIGINT", polars.DataFrame({"a": [dt.date(2020, 1, 1)]}), "DATE"),
        ("BIGINT", polars.DataFrame({"a": [[1]]}), r"BIGINT\[\]"),
        ("VARCHAR", polars.DataFrame({"a": [b"\xff"]}), "a"),
        ("STRUCT(x INT)", polars.DataFrame({"a": [{"y": 1}]}), "a"),
    ],
)
def test_columns_that_lose_something_are_refused(db: alluvium.Database, kind: str, frame: Any, said: str) -> None:
    db.sql(f"CREATE TABLE t (a {kind})")
    with pytest.raises(alluvium.DataError, match=said):
        db.insert("t", frame)
    assert db.sql("SELECT a FROM t").fetchall() == []


@pytest.mark.parametrize(
    ("kind", "frame", "values"),
    [
        ("BIGINT", polars.DataFrame({"a": [1, None]}, schema={"a": polars.Int8}), [1, None]),
        ("BIGINT", polars.DataFrame({"a": [1.0, None]}), [1, None]),
        ("DOUBLE", polars.DataFrame({"a": [1, None]}), [1.0, None]),
        ("DECIMAL(10,2)", polars.DataFrame({"a": [1, None]}), [D("1.00"), None]),
        ("TIMESTAMP", polars.DataFrame({"a": [dt.date(2020, 1, 1)]}), [dt.datetime(2020, 1, 1)]),
        ("TIMESTAMP", pyarrow.table({"a": pyarrow.array([1_000], pyarrow.timestamp("ns"))}), [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
        ("DATE", pyarrow.table({"a": ["2020-01-01"]}), [dt.date(2020, 1, 1)]),
        ("BIGINT[]", polars.DataFrame({"a": [[1, 2]]}, schema={"a": polars.Array(polars.Int8, 2)}), [[1, 2]]),
        ("STRUCT(b VARCHAR, a BIGINT)", polars.DataFrame({"a": [{"a": 1, "b": "x"}]}), [{"b": "x", "a": 1}]),
        ("VARCHAR", pandas.DataFrame({"a": pandas.Categorical(["x", None])}), ["x", None]),
    ],
)
def test_columns_of_other_types_are_converted(db: alluvium.Database, kind: str, frame: Any, values: list[Any]) -> None:
    db.sql(f"CREATE TABLE t (a {kind})")
    db.insert("t", frame)
    held = [row[0] for row in db.sql("SELECT a FROM t").fetchall()]
    assert sorted(held, key=repr) == sorted(values, key=repr)


def test_a_requested_schema_is_given(db: alluvium.Database) -> None:
    result = db.sql("SELECT 1 AS a, 'x' AS b")
    assert pyarrow.schema(result).names == ["a", "b"]
    schema = pyarrow.schema([("a", pyarrow.int64()), ("b", pyarrow.large_string())])
    assert pyarrow.RecordBatchReader.from_stream(db.sql("SELECT 1 AS a, 'x' AS b"), schema=schema).read_all().to_pylist() == [{"a": 1, "b": "x"}]


def test_memory_of_a_table_stays_after_the_database(db: alluvium.Database) -> None:
    with alluvium.memory() as other:
        taken = other.sql("SELECT range AS a FROM range(10000)").table()
        arrow = taken.arrow()
    del other
    assert arrow["a"].to_pylist() == taken.column("a") == list(range(10_000))
