"""Values of Python become values of columns, or an error says which one does not."""

import datetime as dt
import decimal
import uuid
from typing import Any

import numpy
import pandas
import pytest

import alluvium

D = decimal.Decimal
UTC = dt.timezone.utc


def stored(db: alluvium.Database, kind: str, value: Any) -> Any:
    """What a column of this type has for a value."""
    db.sql(f"CREATE TABLE stored (id BIGINT, a {kind})")
    assert db.insert("stored", [(1, value)]) == 1
    return db.sql("SELECT a FROM stored").fetchall()[0][0]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("BOOLEAN", "true", True),
        ("BOOLEAN", numpy.bool_(True), True),
        ("TINYINT", "5", 5),
        ("TINYINT", " -5 ", -5),
        ("TINYINT", 5.0, 5),
        ("TINYINT", D("5.000"), 5),
        ("SMALLINT", numpy.int16(-7), -7),
        ("BIGINT", numpy.int64(2**62), 2**62),
        ("BIGINT", numpy.float64(3.0), 3),
        ("BIGINT", 1e18, 10**18),
        ("BIGINT", "9223372036854775807", 2**63 - 1),
        ("BIGINT", pandas.NA, None),
        ("REAL", 0.1, 0.10000000149011612),
        ("REAL", numpy.float32(0.5), 0.5),
        ("DOUBLE", 2**53 + 1, 2.0**53),
        ("DOUBLE", D("1.5"), 1.5),
        ("DOUBLE", "1e5", 1e5),
        ("DOUBLE", 7, 7.0),
        ("DECIMAL(10,2)", D("1.005"), D("1.01")),
        ("DECIMAL(10,2)", D("-1.005"), D("-1.01")),
        ("DECIMAL(10,2)", "1.005", D("1.01")),
        ("DECIMAL(10,2)", 1.005, D("1.01")),
        ("DECIMAL(10,2)", D("1E-5"), D("0.00")),
        ("DECIMAL(10,2)", 5, D("5.00")),
        ("DECIMAL(38,0)", 10**37, D(10**37)),
        ("DECIMAL(38,0)", D("1E+30"), D(10**30)),
        ("VARCHAR", uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        ("VARCHAR", numpy.str_("x"), "x"),
        ("BLOB", bytearray(b"ab"), b"ab"),
        ("BLOB", memoryview(b"abcd")[1:3], b"bc"),
        ("DATE", dt.datetime(2020, 1, 1), dt.date(2020, 1, 1)),
        ("DATE", "2020-02-29", dt.date(2020, 2, 29)),
        ("DATE", pandas.Timestamp("2020-01-01"), dt.date(2020, 1, 1)),
        ("DATE", pandas.NaT, None),
        ("DATE", numpy.datetime64("2020-01-01"), dt.date(2020, 1, 1)),
        ("TIME", "12:34:56.789", dt.time(12, 34, 56, 789_000)),
        ("TIMESTAMP", dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)),
        ("TIMESTAMP", "2020-01-01 10:00", dt.datetime(2020, 1, 1, 10)),
        ("TIMESTAMP", "2020-01-01T10:00:00.123456", dt.datetime(2020, 1, 1, 10, 0, 0, 123_456)),
        ("TIMESTAMP", pandas.Timestamp("2020-01-01 10:00"), dt.datetime(2020, 1, 1, 10)),
        ("TIMESTAMP", numpy.datetime64("2020-01-01T10:00", "us"), dt.datetime(2020, 1, 1, 10)),
        ("TIMESTAMPTZ", "2020-01-01 10:00:00+02:00", dt.datetime(2020, 1, 1, 8, tzinfo=UTC)),
        ("TIMESTAMPTZ", dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=UTC)),
        ("BIGINT[]", (1, 2), [1, 2]),
        ("BIGINT[]", range(3), [0, 1, 2]),
        ("BIGINT[]", numpy.array([1, 2]), [1, 2]),
        ("STRUCT(a INT, b VARCHAR)", {"b": "x"}, {"a": None, "b": "x"}),
        ("STRUCT(a INT, b VARCHAR)", {}, {"a": None, "b": None}),
        ("STRUCT(a INT, b VARCHAR)", (1, "x"), {"a": 1, "b": "x"}),
        ("MAP(VARCHAR, BIGINT)", [("x", 1), ("y", None)], {"x": 1, "y": None}),
    ],
)
def test_values_that_mean_one_of_the_type_are_taken(db: alluvium.Database, kind: str, value: Any, expected: Any) -> None:
    held = stored(db, kind, value)
    assert held == expected
    assert type(held) is type(expected)


def test_a_nan_is_a_number(db: alluvium.Database) -> None:
    for value in (float("nan"), numpy.float64("nan"), D("NaN")):
        held = stored(db, "DOUBLE", value)
        assert held != held
        db.sql("DROP TABLE stored")


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("BOOLEAN", 1, "1 is no BOOLEAN"),
        ("BOOLEAN", "x", "'x' is no BOOLEAN"),
        ("TINYINT", 128, "128 is beyond the range of TINYINT"),
        ("TINYINT", -129, "-129 is beyond the range of TINYINT"),
        ("SMALLINT", 2**15, "32768 is beyond the range of SMALLINT"),
        ("INTEGER", -(2**31) - 1, "-2147483649 is beyond the range of INTEGER"),
        ("BIGINT", 2**63, "9223372036854775808 is beyond the range of BIGINT"),
        ("BIGINT", 2**70, "1180591620717411303424 is beyond the range of BIGINT"),
        ("BIGINT", 1e19, "1e+19 is beyond the range of BIGINT"),
        ("BIGINT", True, "True is no BIGINT"),
        ("BIGINT", 1.5, "1.5 is no BIGINT: it has a fraction"),
        ("BIGINT", D("1.5"), "Decimal('1.5') is no BIGINT"),
        ("BIGINT", float("nan"), "nan is no BIGINT: it is not finite"),
        ("BIGINT", "one", "'one' is no BIGINT"),
        ("BIGINT", b"1", "b'1' is no BIGINT"),
        ("BIGINT", {}, "{} is no BIGINT"),
        ("BIGINT", dt.date(2020, 1, 1), "datetime.date(2020, 1, 1) is no BIGINT"),
        ("BIGINT", object, "<class 'object'> is no BIGINT"),
        ("INT UNSIGNED", -1, "-1 is beyond the range of UINTEGER"),
        ("BIGINT UNSIGNED", 2**64, "18446744073709551616 is beyond the range of UBIGINT"),
        ("REAL", 1e39, "1e+39 is beyond the range of FLOAT"),
        ("DOUBLE", 10**400, "is beyond the range of DOUBLE"),
        ("DECIMAL(38,0)", D("1" + "0" * 38), "is beyond the range of DECIMAL(38,0)"),
        ("DECIMAL(38,38)", 1, "1 is beyond the range of DECIMAL(38,38)"),
        ("DECIMAL(10,2)", D("99999999.999"), "Decimal('99999999.999') is beyond the range of DECIMAL(10,2)"),
        ("DECIMAL(10,2)", D("Infinity"), "Decimal('Infinity') is no DECIMAL(10,2): it is not finite"),
        ("VARCHAR", 5, "5 is no VARCHAR"),
        ("VARCHAR", b"x", "b'x' is no VARCHAR"),
        ("VARCHAR", "\ud800", "half of a surrogate pair"),
        ("BLOB", "x", "'x' is no BLOB: a text becomes bytes with .encode()"),
        ("DATE", 5, "5 is no DATE"),
        ("DATE", "2020-02-30", "'2020-02-30' is no DATE"),
        ("DATE", dt.datetime(2020, 1, 1, 1), "it has a time of day"),
        ("DATE", dt.datetime(2020, 1, 1, tzinfo=UTC), "it has a time zone"),
        ("TIME", dt.time(1, tzinfo=UTC), "it has a time zone"),
        ("TIME", "25:00", "'25:00' is no TIME"),
        ("TIMESTAMP", dt.datetime(2020, 1, 1, tzinfo=UTC), "it has a time zone, and the column has none"),
        ("TIMESTAMP", 5, "5 is no TIMESTAMP"),
        ("TIMESTAMPTZ", "nope", "'nope' is no TIMESTAMP WITH TIME ZONE"),
        ("BIGINT[]", "[1]", "'[1]' is no BIGINT[]"),
        ("BIGINT[]", {1}, "{1} is no BIGINT[]"),
        ("BIGINT[]", [1, "x"], "'x' is no BIGINT"),
        ("STRUCT(a INT, b VARCHAR)", {"a": 1, "c": 1}, "it has no field 'c'"),
        ("STRUCT(a INT, b VARCHAR)", 5, "5 is no STRUCT"),
        ("MAP(VARCHAR, BIGINT)", {1: 1}, "1 is no VARCHAR"),
        ("MAP(VARCHAR, BIGINT)", {None: 1}, "None is not allowed"),
    ],
)
def test_a_value_that_does_not_fit_is_named(db: alluvium.Database, kind: str, value: Any, said: str) -> None:
    db.sql(f"CREATE TABLE t (id BIGINT, a {kind})")
    with pytest.raises(alluvium.DataError) as raised:
        db.insert("t", [(1, None), (2, None), (3, value)])
    message = str(raised.value)
    assert said in message
    assert 'column "a' in message and "row 2" in message
    assert db.sql("SELECT * FROM t").fetchall() == []


def test_the_field_of_a_struct_is_named(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a STRUCT(b STRUCT(c TINYINT)[]))")
    with pytest.raises(alluvium.DataError, match=r'column "a\.b\.c", row 1: 128 is beyond the range of TINYINT'):
        db.insert("t", [({"b": [{"c": 1}]},), ({"b": [None, {"c": 128}]},)])


def test_a_long_value_is_shown_in_part(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a BIGINT)")
    with pytest.raises(alluvium.DataError) as raised:
        db.insert("t", [("x" * 1_000_000,)])
    assert len(str(raised.value)) < 200


def test_what_a_class_raises_comes_out(db: alluvium.Database) -> None:
    class Fails(dict):  # type: ignore[type-arg]
        def __init__(self) -> None:
            super().__init__(x=1)

        def __repr__(self) -> str:
            raise ZeroDivisionError

    db.sql("CREATE TABLE t (a BIGINT)")
    with pytest.raises(alluvium.DataError, match="a value of Fails is no BIGINT"):
        db.insert("t", [(Fails(),)])


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, '"NULL"'),
        (True, "BOOLEAN"),
        (1, "BIGINT"),
        (-(2**63), "BIGINT"),
        (2**63, "UBIGINT"),
        (2**64 - 1, "UBIGINT"),
        (2**64, "DECIMAL(38,0)"),
        (-(2**63) - 1, "DECIMAL(38,0)"),
        (1.5, "DOUBLE"),
        (D("1.50"), "DECIMAL(3,2)"),
        ("x", "VARCHAR"),
        (b"x", "BLOB"),
        (dt.date(2020, 1, 1), "DATE"),
        (dt.time(1, 2, 3, 4), "TIME"),
        (dt.datetime(2020, 1, 1), "TIMESTAMP"),
        (dt.datetime(2020, 1, 1, tzinfo=UTC), "TIMESTAMP WITH TIME ZONE"),
        (dt.timedelta(days=1, microseconds=5), "INTERVAL"),
        ([], '"NULL"[]'),
        ([1, None], "BIGINT[]"),
        ([[1], [], None], "BIGINT[][]"),
        ({"a": 1, "b": "x"}, "STRUCT(a BIGINT, b VARCHAR)"),
        ({"a": [{"b": D("0.1")}]}, "STRUCT(a STRUCT(b DECIMAL(1,1))[])"),
        ([{"a": 1, "b": None}, {"a": None, "b": "x"}], "STRUCT(a BIGINT, b VARCHAR)[]"),
        ({1: "x", 2: None}, "MAP(BIGINT, VARCHAR)"),
        ([{}, {dt.date(2020, 1, 1): [1]}, {}], "MAP(DATE, BIGINT[])[]"),
    ],
)
def test_the_type_of_a_parameter_is_that_of_its_value(db: alluvium.Database, value: Any, kind: str) -> None:
    result = db.sql("SELECT $1 AS a", value)
    assert result.types == [kind]
    held = result.fetchall()[0][0]
    assert held == value
    assert type(held) is type(value) or isinstance(held, D)


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, [1, "x"], {1: 2, "x": 3}, {"x": 3, 1: 2}, {None: 1}, 10**38, D("1e40"), lambda: 1, alluvium], ids=repr)
def test_a_parameter_of_no_type_is_refused(db: alluvium.Database, value: Any) -> None:
    with pytest.raises(alluvium.DataError, match="parameter"):
        db.sql("SELECT $1 AS a", value)


def test_a_list_within_itself_is_refused(db: alluvium.Database) -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(alluvium.DataError):
        db.sql("SELECT $1 AS a", endless)
    db.sql("CREATE TABLE t (a BIGINT[])")
    with pytest.raises(alluvium.DataError):
        db.insert("t", [(endless,)])
