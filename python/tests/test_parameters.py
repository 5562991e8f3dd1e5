"""Parameters have the types of their values, also in expressions."""

import datetime as dt
import decimal
import math
from typing import Any

import duckdb
import hypothesis
import hypothesis.strategies as some
import pytest

import alluvium

D = decimal.Decimal
UTC = dt.timezone.utc
DAY = dt.timedelta(days=1)


def same(one: Any, other: Any) -> bool:
    """Whether values are equal, where floats are nearly so."""
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, (float, D)) and isinstance(other, (float, D)):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT $1 + 1", [D("1.5")]),
        ("SELECT 1 + $1", [D("1.5")]),
        ("SELECT $1 - 1, $1 * 2, $1 % 2", [D("5.5")]),
        ("SELECT $1 / 4", [D("1.5")]),
        ("SELECT -$1, +$1, abs($1)", [D("1.5")]),
        ("SELECT $1 + 1", [1]),
        ("SELECT $1 + 1", [1.5]),
        ("SELECT $1 / 2", [3.0]),
        ("SELECT $1 + 1", [None]),
        ("SELECT $1 + 1", [2**63]),
        ("SELECT $1 + 1", [2**70]),
        ("SELECT $1 + 1", [D("12345678901234567890123456789012345")]),
        ("SELECT $1 + $2", [D("1.5"), 2]),
        ("SELECT $1 + $2", [D("1.5"), 2.5]),
        ("SELECT $1 + $2", [1, 2]),
        ("SELECT $1 + $2", [1, None]),
        ("SELECT $1 + $1", [D("1E+3")]),
        ("SELECT $1 > 1, $1 = 1.5, $1 <> 2, $1 BETWEEN 1 AND 2, $1 IN (1, 1.5)", [D("1.5")]),
        ("SELECT CASE WHEN $1 > 1 THEN $1 ELSE 0 END, coalesce($1, 1), greatest($1, 1)", [D("1.5")]),
        ("SELECT sum(x * $1), sum($1), max($1) FROM (VALUES (1), (2)) v(x)", [D("1.5")]),
        ("SELECT x FROM (VALUES (1), (2)) v(x) WHERE x > $1", [D("1.5")]),
        ("SELECT x FROM (VALUES (1), (2)) v(x) WHERE x = $1", [1.5]),
        ("SELECT x FROM (VALUES (1), (2)) v(x) WHERE x = $1", [2.0]),
        ("SELECT CAST(x AS DECIMAL(10, 2)) * $1 FROM (VALUES (2)) v(x)", [D("1.555")]),
        ("SELECT CAST(x AS DECIMAL(10, 2)) = $1 FROM (VALUES (2)) v(x)", [D("2.001")]),
        ("SELECT CAST(x AS SMALLINT) + $1 FROM (VALUES (2)) v(x)", [100_000]),
        ("SELECT CAST(x AS SMALLINT) < $1 FROM (VALUES (2)) v(x)", [100_000]),
        ("VALUES ($1), (2)", [D("1.5")]),
        ("SELECT $1 UNION ALL SELECT 2", [D("1.5")]),
        ("SELECT $1 + 1 FROM (SELECT $2 AS y) WHERE y > 1", [D("1.5"), D("2.5")]),
        ("SELECT (SELECT max(x) + $1 FROM (VALUES (1), (2)) v(x))", [D("0.5")]),
        ("SELECT x + $1 AS y FROM (VALUES (1), (2)) v(x) ORDER BY y LIMIT $2", [D("0.5"), 1]),
        ("SELECT [$1, 2], {'a': $1 + 1}", [D("1.5")]),
        ("SELECT $1 + 1, 1 + $1, $1 - 1, $1 - DATE '2024-01-01'", [dt.date(2024, 1, 31)]),
        ("SELECT DATE '2024-01-31' - $1", [dt.date(2024, 1, 1)]),
        ("SELECT DATE '2024-01-31' - $1, DATE '2024-01-31' + $1", [2]),
        ("SELECT $1 + INTERVAL '1 day', $1 - INTERVAL '1 month'", [dt.date(2024, 1, 31)]),
        ("SELECT $1 + INTERVAL '1 day', $1 - INTERVAL '1 month'", [dt.datetime(2024, 1, 31, 12)]),
        ("SELECT $1 + INTERVAL '1 day'", [dt.datetime(2024, 1, 31, 12, tzinfo=UTC)]),
        ("SELECT $1 + INTERVAL '1 hour'", [dt.datetime(2024, 1, 31, 12, tzinfo=dt.timezone(dt.timedelta(hours=5)))]),
        ("SELECT $1 + INTERVAL '1 hour'", [dt.time(3, 4)]),
        ("SELECT $1 - $2", [dt.datetime(2024, 1, 2), dt.datetime(2024, 1, 1)]),
        ("SELECT $1 - $2", [dt.date(2024, 1, 2), dt.date(2024, 1, 1)]),
        ("SELECT TIMESTAMP '2024-01-05' - $1", [dt.datetime(2024, 1, 1)]),
        ("SELECT $1 < $2, $1 = $2", [dt.datetime(2024, 1, 2, tzinfo=UTC), dt.datetime(2024, 1, 1, tzinfo=UTC)]),
        ("SELECT DATE '2024-01-05' = $1, DATE '2024-01-05' < $1", [dt.datetime(2024, 1, 5, 12)]),
        ("SELECT DATE '2024-01-05' = $1, TIMESTAMP '2024-01-05' = $1", [dt.date(2024, 1, 5)]),
        ("SELECT date_trunc('day', $1), extract(hour FROM $1)", [dt.datetime(2024, 1, 2, 3)]),
        ("SELECT DATE '2024-01-01' + $1, TIMESTAMP '2024-01-01' - $1", [DAY]),
        ("SELECT $1 + $2", [DAY, dt.timedelta(hours=1)]),
        ("SELECT $1 * 2, -$1", [DAY]),
        ("SELECT $1 || $2", ["a", "b"]),
        ("SELECT $1 || 'x', upper($1), $1 = 'a'", ["a"]),
        ("SELECT $1 = $2, $1 < $2", ["a", "b"]),
        ("SELECT octet_length($1), $1 = $2", [b"\0a", b"\0a"]),
        ("SELECT $1 || $2", [b"\0a", b"b"]),
        ("SELECT NOT $1, $1 AND FALSE, $1 = TRUE", [True]),
        ("SELECT $1 AND TRUE, $1 IS NULL, coalesce($1, 5)", [None]),
        ("SELECT $1[1], len($1), list_contains($1, 2), 1 = ANY($1)", [[1, 2]]),
        ("SELECT $1 || $2", [[1], [2]]),
        ("SELECT unnest($1)", [[1, 2]]),
        ("SELECT $1['a'], ($1).b[2]", [{"a": 1, "b": [1, 2]}]),
        ("SELECT $1 = $2", [{"a": 1}, {"a": 1}]),
    ],
)
def test_expressions_of_parameters_are_those_of_duckdb(db: alluvium.Database, sql: str, values: list[Any]) -> None:
    expected = duckdb.execute(sql, values).fetchall()
    assert same(db.sql(sql, *values).fetchall(), expected)
    # Once more, when a plan may have been kept.
    assert same(db.sql(sql, *values).fetchall(), expected)


@pytest.mark.parametrize(
    ("sql", "values", "expected"),
    [
        ("SELECT $1[2], cardinality($1), map_keys($1)", [{1: "a", 2: "b"}], ("b", 2, [1, 2])),
        ("SELECT $1[$2]", [{dt.date(2024, 1, 1): D("1.5")}, dt.date(2024, 1, 1)], (D("1.5"),)),
        ("SELECT list_transform($1, x -> x + 1)", [[1, 2]], ([2, 3],)),
        ("SELECT d = $1, d > $1 FROM (VALUES (DATE '2024-01-05')) v(d)", ["2024-01-05"], (True, False)),
        ("SELECT d = $1, $2 + 1 FROM (VALUES (DATE '2024-01-05')) v(d)", ["2024-01-05", D("1.5")], (True, D("2.5"))),
        ("SELECT $1 + 1", ["5"], (6,)),
        ("SELECT CAST($1 AS BIGINT), $1::VARCHAR", [D("1.5")], (2, "1.5")),
        ("SELECT x + $1 FROM (VALUES (1.25)) v(x)", [1], (D("2.25"),)),
    ],
)
def test_expressions_of_parameters(db: alluvium.Database, sql: str, values: list[Any], expected: tuple[Any, ...]) -> None:
    for _ in range(3):
        assert same(db.sql(sql, *values).fetchone(), expected)


def test_the_types_of_parameters_may_change(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v DECIMAL(10, 2)); INSERT INTO t VALUES (1, 1.50), (2, 2.50)")
    for _ in range(3):
        assert db.sql("SELECT v FROM t WHERE k = $1", 1).fetchall() == [(D("1.50"),)]
        assert db.sql("SELECT v FROM t WHERE k = $1", 1.5).fetchall() == []
        assert db.sql("SELECT v FROM t WHERE k = $1", D("2.0")).fetchall() == [(D("2.50"),)]
        assert db.sql("SELECT v FROM t WHERE k = $1", "2").fetchall() == [(D("2.50"),)]
        assert db.sql("SELECT v * $1 AS w FROM t WHERE k = $2", D("1.555"), 2).fetchone() == (D("3.8875"),)
        assert db.sql("SELECT v * $1 AS w FROM t WHERE k = $2", D("1.550"), 2).fetchone() == (D("3.875"),)


def test_changes_compute_with_the_types_of_parameters(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v DOUBLE, d DATE); INSERT INTO t VALUES (1, 1, '2024-01-01'), (2, 2, '2024-01-02')")
    assert db.sql("UPDATE t SET v = k + $1, d = d + $2 WHERE k > $3", D("0.5"), 1, 1.5).rows_changed == 1
    assert db.sql("DELETE FROM t WHERE k < $1 AND d + 1 > $2", 1.5, dt.datetime(2024, 1, 1, 12)).rows_changed == 1
    assert db.sql("SELECT * FROM t").fetchall() == [(2, 2.5, dt.date(2024, 1, 3))]


@pytest.mark.parametrize("sql", ["INSERT INTO t VALUES ($1)", "UPDATE t SET k = $1"])
@pytest.mark.parametrize("value", [1.5, D("1.5"), 2**63])
def test_what_is_assigned_has_to_fit(db: alluvium.Database, sql: str, value: Any) -> None:
    db.sql("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1)")
    with pytest.raises(alluvium.ProgrammingError, match="does not fit type BIGINT"):
        db.sql(sql, value)
    assert db.sql("SELECT * FROM t").fetchall() == [(1,)]


NUMBERS = some.one_of(
    some.none(),
    some.integers(-(10**4), 10**4),
    some.floats(-1e6, 1e6).filter(lambda number: number == 0 or abs(number) > 1e-3),
    some.decimals(-(10**4), 10**4, places=3),
)


@hypothesis.given(NUMBERS, NUMBERS, some.sampled_from(["+", "-", "*", "<", "=", ">="]), some.booleans())
@hypothesis.settings(max_examples=150)
def test_numbers_meet_as_in_duckdb(one: Any, other: Any, operator: str, is_column: bool) -> None:
    sql, values = f"SELECT $1 {operator} $2", [one, other]
    if is_column:
        sql, values = f"SELECT x {operator} $1 FROM (VALUES (7), (-3)) v(x)", [other]
    assert same(DB.sql(sql, *values).fetchall(), duckdb.execute(sql, values).fetchall())


DB = alluvium.memory()
