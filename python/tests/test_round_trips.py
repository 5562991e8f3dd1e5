"""What is inserted comes back as it was."""

import datetime as dt
import decimal
import math
import pathlib
from typing import Any

import pytest

import alluvium

D = decimal.Decimal
UTC = dt.timezone.utc
VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 0, 127],
    "SMALLINT": [-(2**15), 2**15 - 1],
    "INTEGER": [-(2**31), 2**31 - 1],
    "BIGINT": [-(2**63), 2**63 - 1],
    "TINYINT UNSIGNED": [0, 255],
    "SMALLINT UNSIGNED": [0, 2**16 - 1],
    "INT UNSIGNED": [0, 2**32 - 1],
    "BIGINT UNSIGNED": [0, 2**64 - 1],
    "REAL": [0.5, -0.0, math.inf, -math.inf, 3.4028234663852886e38, 1.401298464324817e-45],
    "DOUBLE": [0.1, -0.0, math.inf, -math.inf, 1.7976931348623157e308, 5e-324],
    "DECIMAL(1,0)": [D(-9), D(9)],
    "DECIMAL(18,2)": [D("-9999999999999999.99"), D("0.01")],
    "DECIMAL(38,0)": [D("9" * 38), D("-" + "9" * 38)],
    "DECIMAL(38,38)": [D("0." + "9" * 38), D("-1E-38"), D("0E-38")],
    "DECIMAL(38,10)": [D("9" * 28 + "." + "9" * 10)],
    "VARCHAR": ["", "a", "é𝄞", "\0", " \n\t", "x" * (1 << 20), "'; DROP TABLE t; --"],
    "BLOB": [b"", b"\0\xff", bytes(range(256)), b"y" * (1 << 20)],
    "DATE": [dt.date.min, dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date.max],
    "TIME": [dt.time.min, dt.time(12, 0, 0, 1), dt.time.max],
    "TIMESTAMP": [dt.datetime.min, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime.max],
    "TIMESTAMPTZ": [moment.replace(tzinfo=UTC) for moment in (dt.datetime.min, dt.datetime(2020, 3, 29, 1), dt.datetime.max)],
    "BIGINT[]": [[], [1, None, 2**63 - 1], [None]],
    "VARCHAR[][]": [[], [[], None, ["", None, "x"]]],
    "DECIMAL(38,2)[]": [[D("1.00"), None, D("-" + "9" * 36 + ".99")]],
    "STRUCT(a INT, b VARCHAR)": [{"a": 1, "b": "x"}, {"a": None, "b": None}],
    "STRUCT(l STRUCT(m BIGINT[], d DATE)[])": [{"l": None}, {"l": [{"m": [1, None], "d": dt.date(2020, 1, 1)}, None]}],
    "MAP(VARCHAR, BIGINT)": [{}, {"x": 1, "": None}],
    "MAP(BIGINT, STRUCT(a INT[], b VARCHAR))": [{1: {"a": [1], "b": "x"}, 2: None}],
    "MAP(VARCHAR, MAP(VARCHAR, BIGINT))": [{"a": {}, "b": {"c": 1}}],
}


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("way", ["tuples", "dicts", "columns", "parameters"])
def test_values_come_back(db: alluvium.Database, kind: str, way: str) -> None:
    # Postgres's protocol has no texts with a zero.
    values = [*(value for value in VALUES[kind] if not (db.is_remote and value == "\0")), None]
    db.sql(f"CREATE TABLE t (id BIGINT PRIMARY KEY, a {kind})")
    if way == "tuples":
        db.insert("t", enumerate(values))
    elif way == "dicts":
        db.insert("t", [{"a": value, "id": number} for number, value in enumerate(values)])
    elif way == "columns":
        db.insert("t", {"a": values, "id": range(len(values))})
    elif "MAP(VARCHAR" in kind:
        pytest.skip("a dict whose keys are texts is a struct as a parameter")
    else:
        for number, value in enumerate(values):
            db.sql("INSERT INTO t VALUES ($1, $2)", number, value)
    result = db.sql("SELECT a FROM t ORDER BY id").fetchall()
    assert same([row[0] for row in result], values)
    # Point reads and changes give the same.
    assert same([db.view("t").get(number) for number in range(len(values))], list(enumerate(values)))
    with db.subscribe("t") as changes:
        assert same(sorted(next(changes).rows, key=lambda row: row[0]), list(enumerate(values)))


def test_all_types_survive_in_a_state_directory(tmp_path: pathlib.Path) -> None:
    names = {kind: f"c{number}" for number, kind in enumerate(VALUES)}
    rows = [
        {name: VALUES[kind][number % len(VALUES[kind])] for kind, name in names.items()} | {"id": number} for number in range(8)
    ] + [{"id": 8}]
    with alluvium.open(tmp_path / "state") as db:
        columns = ", ".join(f"{name} {kind}" for kind, name in names.items())
        db.sql(f"CREATE TABLE t (id BIGINT PRIMARY KEY, {columns}); CREATE MATERIALIZED VIEW v AS SELECT * FROM t WHERE id >= 0")
        db.insert("t", rows)
        before = db.sql("SELECT * FROM v ORDER BY id").fetchall()
    assert same(before, [tuple(row.get(name) for name in ("id", *names.values())) for row in rows])
    with alluvium.open(tmp_path / "state") as db:
        assert same(db.sql("SELECT * FROM t ORDER BY id").fetchall(), before)
        assert same(db.sql("SELECT * FROM v ORDER BY id").fetchall(), before)


def test_a_nan_comes_back_as_one(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a DOUBLE, b REAL)")
    db.insert("t", [(math.nan, math.nan)])
    assert all(math.isnan(value) for value in db.sql("SELECT * FROM t").fetchall()[0])


@pytest.mark.parametrize("hours", [-12, 0, 5.5, 14])
def test_an_instant_comes_back_in_utc(db: alluvium.Database, hours: float) -> None:
    moment = dt.datetime(2020, 3, 29, 1, 30, tzinfo=dt.timezone(dt.timedelta(hours=hours)))
    db.sql("CREATE TABLE t (a TIMESTAMPTZ)")
    db.insert("t", [(moment,)])
    held = db.sql("SELECT a FROM t").fetchall()[0][0]
    assert held == moment
    assert held.tzinfo is UTC


def test_a_row_of_many_columns_comes_back(db: alluvium.Database) -> None:
    names = [f"c{number}" for number in range(500)]
    db.sql(f"CREATE TABLE t ({', '.join(f'{name} BIGINT' for name in names)})")
    db.insert("t", [tuple(range(500))])
    assert db.sql("SELECT * FROM t").fetchall() == [tuple(range(500))]
