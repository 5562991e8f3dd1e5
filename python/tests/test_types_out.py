"""Values of SQL become values of Python."""

import datetime as dt
import decimal
import math
from typing import Any

import pyarrow
import pytest

import alluvium

D = decimal.Decimal
UTC = dt.timezone.utc


@pytest.mark.parametrize(
    ("sql", "kind", "expected"),
    [
        ("TRUE", "BOOLEAN", True),
        ("NULL", '"NULL"', None),
        ("CAST(-128 AS TINYINT)", "TINYINT", -128),
        ("CAST(32767 AS SMALLINT)", "SMALLINT", 32_767),
        ("CAST(-2147483648 AS INTEGER)", "INTEGER", -(2**31)),
        ("9223372036854775807", "BIGINT", 2**63 - 1),
        ("CAST(18446744073709551615 AS BIGINT UNSIGNED)", "UBIGINT", 2**64 - 1),
        ("CAST(0.1 AS REAL)", "FLOAT", 0.10000000149011612),
        ("1.5e0", "DOUBLE", 1.5),
        ("CAST('infinity' AS DOUBLE)", "DOUBLE", math.inf),
        ("1.15", "DECIMAL(3,2)", D("1.15")),
        ("CAST(1 AS DECIMAL(38, 37))", "DECIMAL(38,37)", D("1." + "0" * 37)),
        ("CAST('-0.00000000000000000000000000000000000001' AS DECIMAL(38, 38))", "DECIMAL(38,38)", D("-1E-38")),
        ("'é𝄞'", "VARCHAR", "é𝄞"),
        ("''", "VARCHAR", ""),
        ("CAST('ab' AS BYTEA)", "BLOB", b"ab"),
        ("DATE '0001-01-01'", "DATE", dt.date.min),
        ("DATE '9999-12-31'", "DATE", dt.date.max),
        ("TIME '23:59:59.999999'", "TIME", dt.time.max),
        ("TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP", dt.datetime.min),
        ("TIMESTAMP '9999-12-31 23:59:59.999999'", "TIMESTAMP", dt.datetime.max),
        ("CAST('2020-07-01 00:00+02' AS TIMESTAMPTZ)", "TIMESTAMP WITH TIME ZONE", dt.datetime(2020, 6, 30, 22, tzinfo=UTC)),
        ("INTERVAL '1 day 2 hours'", "INTERVAL", dt.timedelta(days=1, hours=2)),
        ("INTERVAL '1 month'", "INTERVAL", dt.timedelta(days=30)),
        ("TIMESTAMP '2020-01-01' - TIMESTAMP '2020-01-02'", "INTERVAL", dt.timedelta(days=-1)),
        ("[1, NULL]", "BIGINT[]", [1, None]),
        ("[['x'], NULL]", "VARCHAR[][]", [["x"], None]),
        ("CAST([1, 2] AS BIGINT[2])", "BIGINT[2]", [1, 2]),
        ("{'a': 1, 'b': [DATE '2020-01-01']}", "STRUCT(a BIGINT, b DATE[])", {"a": 1, "b": [dt.date(2020, 1, 1)]}),
        ("MAP {'k': 1, 'l': NULL}", "MAP(VARCHAR, BIGINT)", {"k": 1, "l": None}),
        ("arrow_cast('a', 'Dictionary(Int32, Utf8)')", "VARCHAR", "a"),
        ("arrow_cast(1.5, 'Float16')", "FLOAT", 1.5),
        ("arrow_cast('x', 'LargeUtf8')", "VARCHAR", "x"),
        ("arrow_cast('2020-01-01', 'Timestamp(s, None)')", "TIMESTAMP", dt.datetime(2020, 1, 1)),
        ("arrow_cast('2020-01-01', 'Timestamp(ns, None)')", "TIMESTAMP", dt.datetime(2020, 1, 1)),
        ("arrow_cast(5, 'Duration(s)')", "INTERVAL", dt.timedelta(seconds=5)),
    ],
)
def test_values_are_those_of_python(db: alluvium.Database, sql: str, kind: str, expected: Any) -> None:
    result = db.sql(f"SELECT {sql} AS a")
    assert result.types == [kind]
    held = result.fetchall()[0][0]
    assert held == expected
    assert type(held) is type(expected)


def test_floats_keep_their_signs_and_nans(db: alluvium.Database) -> None:
    zero, nan = db.sql("SELECT -0e0 AS zero, CAST('nan' AS DOUBLE) AS nan").fetchall()[0]
    assert math.copysign(1, zero) == -1
    assert math.isnan(nan)


def test_decimals_are_exact_in_any_context(db: alluvium.Database) -> None:
    with decimal.localcontext() as context:
        context.prec = 3
        assert db.sql("SELECT 12345678901234567890.123456789 AS a").fetchone() == (D("12345678901234567890.123456789"),)


@pytest.mark.parametrize("sql", ["DATE '10000-01-01'", "DATE '0001-01-01' - INTERVAL '1 day'", "TIMESTAMP '9999-12-31' + INTERVAL '1 day'"])
def test_what_python_cannot_hold_is_an_error_and_arrow(db: alluvium.Database, sql: str) -> None:
    with pytest.raises(alluvium.DataError, match="beyond what datetime"):
        db.sql(f"SELECT {sql} AS a").fetchall()
    assert db.sql(f"SELECT {sql} AS a").arrow().num_rows == 1


@pytest.mark.parametrize("zone", ["Europe/Berlin", "+05:30", "UTC", "America/St_Johns"])
@pytest.mark.engine("a server reads no variables of this process")
def test_instants_of_any_zone_are_read_in_utc(db: alluvium.Database, zone: str) -> None:
    moment = dt.datetime(2020, 7, 1, 12, tzinfo=UTC)
    frame = pyarrow.table({"a": pyarrow.array([moment], pyarrow.timestamp("us", zone))})
    held = db.sql("SELECT a FROM frame").fetchall()[0][0]
    assert held == moment == frame["a"][0].as_py()
    assert held.tzinfo is UTC


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pyarrow.array([1, None], pyarrow.uint8()), [1, None]),
        (pyarrow.array([2**64 - 1], pyarrow.uint64()), [2**64 - 1]),
        (pyarrow.array([b"ab", None], pyarrow.binary(2)), [b"ab", None]),
        (pyarrow.array([b"ab"], pyarrow.large_binary()), [b"ab"]),
        (pyarrow.array(["ab", None], pyarrow.string_view()), ["ab", None]),
        (pyarrow.array([[1], None], pyarrow.large_list(pyarrow.int8())), [[1], None]),
        (pyarrow.array([[1, 2]], pyarrow.list_(pyarrow.int8(), 2)), [[1, 2]]),
        (pyarrow.array([dt.date(2020, 1, 1)], pyarrow.date64()), [dt.datetime(2020, 1, 1)]),
        (pyarrow.array([dt.time(1, 2, 3)], pyarrow.time32("s")), [dt.time(1, 2, 3)]),
        (pyarrow.array([[1], None], pyarrow.list_view(pyarrow.int64())), [[1], None]),
        (pyarrow.array([D(1), None], pyarrow.decimal32(5, 1)), [D("1.0"), None]),
        (pyarrow.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (pyarrow.nulls(2), [None, None]),
        (pyarrow.array([[("k", 1)]], pyarrow.map_(pyarrow.string(), pyarrow.int64())), [{"k": 1}]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pyarrow.Array) else "",
)
@pytest.mark.engine("a server reads no variables of this process")
def test_types_of_arrow_that_sql_has_no_names_for_are_read(db: alluvium.Database, array: pyarrow.Array, expected: list[Any]) -> None:
    frame = pyarrow.table({"a": array})
    assert [row[0] for row in db.sql("SELECT a FROM frame").fetchall()] == expected


@pytest.mark.parametrize("kind", [pyarrow.duration("us"), pyarrow.month_day_nano_interval(), pyarrow.decimal256(50, 0)], ids=str)
@pytest.mark.engine("a server reads no variables of this process")
def test_types_that_columns_cannot_have_are_refused_by_name(db: alluvium.Database, kind: pyarrow.DataType) -> None:
    frame = pyarrow.table({"a": pyarrow.nulls(1, kind)})
    with pytest.raises(alluvium.NotSupportedError, match='column "a" of type (INTERVAL|DECIMAL)'):
        db.sql("SELECT a FROM frame")


@pytest.mark.engine("a server reads no variables of this process")
def test_nanoseconds_are_cut_off(db: alluvium.Database) -> None:
    frame = pyarrow.table({"a": pyarrow.array([0, 1_999], pyarrow.timestamp("ns"))})
    assert db.sql("SELECT a FROM frame").fetchall() == [(dt.datetime(1970, 1, 1),), (dt.datetime(1970, 1, 1, 0, 0, 0, 1),)]


def test_columns_may_have_one_name(db: alluvium.Database) -> None:
    result = db.sql("SELECT 1 AS a, 2 AS a")
    assert result.columns == ["a", "a"]
    assert result.fetchall() == [(1, 2)]
    assert db.sql("SELECT 1 AS a, 2 AS a").arrow().column_names == ["a", "a"]
