"""Instants are of UTC by that name, and times of day have microseconds, in every library."""

import datetime as dt
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pytest

import alluvium

UTC = dt.timezone.utc
MOMENTS = [dt.datetime(2024, 3, 31, 1, 30, 0, 5, tzinfo=UTC), None, dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)]
CLOCKS = [dt.time(1, 2, 3, 4), None, dt.time.max]
INSTANT = pyarrow.timestamp("us", "UTC")
CLOCK = pyarrow.time64("us")


@pytest.fixture
def filled(db: alluvium.Database) -> alluvium.Database:
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, moment TIMESTAMPTZ, clock TIME)")
    db.insert("t", list(zip(range(3), MOMENTS, CLOCKS)))
    return db


@pytest.mark.parametrize(
    "way",
    ["SELECT moment, clock FROM t ORDER BY id", "SELECT moment, clock FROM v ORDER BY id"],
)
def test_pyarrow_has_the_zone_and_the_unit(filled: alluvium.Database, way: str) -> None:
    filled.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
    for table in (filled.sql(way).arrow(), filled.sql(way).reader().read_all(), filled.sql(way).table().arrow(), pyarrow.table(filled.sql(way))):
        assert table.schema.types == [INSTANT, CLOCK]
        assert table["moment"].to_pylist() == MOMENTS
        assert table["clock"].to_pylist() == CLOCKS
    assert pyarrow.schema(filled.sql(way)).types == [INSTANT, CLOCK]


def test_polars_and_pandas_have_the_zone(filled: alluvium.Database) -> None:
    sql = "SELECT moment, clock FROM t ORDER BY id"
    frame = filled.sql(sql).pl()
    assert frame.schema["moment"] == polars.Datetime("us", "UTC")
    assert (frame["moment"].to_list(), frame["clock"].to_list()) == (MOMENTS, CLOCKS)
    assert str(frame["moment"].dtype) == str(polars.Series([MOMENTS[0]]).dtype)
    of_pandas = filled.sql(sql).df()
    assert str(of_pandas["moment"].dtype) == "datetime64[us, UTC]"
    assert of_pandas["moment"][0] == pandas.Timestamp(MOMENTS[0])
    # They can be computed with, as with instants from elsewhere.
    assert (of_pandas["moment"] - pandas.Timestamp("2024-01-01", tz="UTC")).notna().sum() == 2
    assert frame.filter(polars.col("moment") > dt.datetime(2000, 1, 1, tzinfo=UTC)).height == 1


def test_types_are_those_of_duckdb(filled: alluvium.Database) -> None:
    sql = "SELECT TIMESTAMPTZ '2024-01-01 00:00:00+02' AS a, TIME '01:02:03.000004' AS b, TIMESTAMP '2024-01-01 00:00:00' AS c, DATE '2024-01-01' AS d"
    with duckdb.connect() as other:
        other.execute("SET TimeZone = 'UTC'")
        expected = other.sql(sql).to_arrow_table()
        assert filled.sql(sql).arrow().schema.types == expected.schema.types
        assert filled.sql(sql).arrow().to_pylist() == expected.to_pylist()
        assert filled.sql(sql).pl().schema == other.sql(sql).pl().schema
        assert filled.sql(sql).df()["a"].dtype == other.sql(sql).df()["a"].dtype


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("[moment]", pyarrow.list_(INSTANT)),
        ("[[clock]]", pyarrow.list_(pyarrow.list_(CLOCK))),
        ("{'a': moment, 'b': {'c': clock, 'd': id}}", pyarrow.struct([("a", INSTANT), ("b", pyarrow.struct([("c", CLOCK), ("d", pyarrow.int64())]))])),
        ("MAP {'k': moment}", pyarrow.map_(pyarrow.string(), INSTANT)),
        ("MAP {'k': [{'a': clock}]}", pyarrow.map_(pyarrow.string(), pyarrow.list_(pyarrow.struct([("a", CLOCK)])))),
    ],
)
def test_nested_ones_have_them_too(filled: alluvium.Database, sql: str, expected: pyarrow.DataType) -> None:
    query = f"SELECT {sql} AS a FROM t ORDER BY id"
    values = [row[0] for row in filled.sql(query).fetchall()]
    table = filled.sql(query).arrow()
    assert same_type(table.schema.field("a").type, expected)
    assert table["a"].to_pylist(maps_as_pydicts="strict") == values


def same_type(one: pyarrow.DataType, other: pyarrow.DataType) -> bool:
    """Whether types are equal, but for names of items and what may be NULL."""
    inner = [[each.field(number).type for number in range(each.num_fields)] for each in (one, other)]
    return one.id == other.id and (all(map(same_type, *inner)) if inner[0] else one == other)


def test_changes_and_rows_by_key_have_them(filled: alluvium.Database) -> None:
    with filled.subscribe("t") as changes:
        assert next(changes).rows.arrow().schema.types[1:] == [INSTANT, CLOCK]
    assert filled.view("t").range([0], [2]).arrow().schema.types[1:] == [INSTANT, CLOCK]
    assert filled.view("t").get(0) == (0, MOMENTS[0], CLOCKS[0])


def test_functions_get_them() -> None:
    seen = []

    def later(moment: Any, clock: Any) -> Any:
        seen.extend([pyarrow.array(moment).type, pyarrow.array(clock).type])
        return pyarrow.array(moment)

    function = alluvium.function(arguments=["TIMESTAMPTZ", "TIME"], returns="TIMESTAMPTZ", vectorized=True)(later)
    with alluvium.memory(functions=[function]) as db:
        db.sql("CREATE TABLE t (a TIMESTAMPTZ, b TIME)")
        db.insert("t", list(zip(MOMENTS, CLOCKS)))
        assert {row[0] for row in db.sql("SELECT later(a, b) AS a FROM t").fetchall()} == set(MOMENTS)
    assert {str(kind) for kind in seen} == {str(INSTANT), str(CLOCK)}


FRAMES: dict[str, Any] = {
    "pyarrow": lambda zone, unit: pyarrow.table({"id": [0, 1, 2], "moment": pyarrow.array(MOMENTS, pyarrow.timestamp(unit, zone)), "clock": pyarrow.array(CLOCKS, CLOCK)}),
    "polars": lambda zone, unit: polars.DataFrame({"id": [0, 1, 2], "moment": polars.Series(MOMENTS, dtype=polars.Datetime(unit, "UTC")).dt.convert_time_zone(zone), "clock": CLOCKS}),
    "pandas": lambda zone, unit: pandas.DataFrame({"id": [0, 1, 2], "moment": pandas.Series(MOMENTS, dtype=f"datetime64[{unit}, {zone}]"), "clock": CLOCKS}),
}


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns"])
@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("way", ["insert", "scan"])
@pytest.mark.engine("a server reads no variables of this process")
def test_instants_of_any_zone_and_unit_come_in(db: alluvium.Database, library: str, zone: str, unit: str, way: str) -> None:
    frame = FRAMES[library](zone, unit)
    db.sql("CREATE TABLE t (id BIGINT, moment TIMESTAMPTZ, clock TIME)")
    if way == "insert":
        assert db.insert("t", frame) == 3
    else:
        assert db.sql("INSERT INTO t SELECT id, moment, clock FROM frame").rows_changed == 3
        assert db.sql("SELECT count(*) FROM t JOIN frame USING (moment)").fetchall() == [(2,)]
    found = db.sql("SELECT moment, clock FROM t ORDER BY id")
    assert found.fetchall() == list(zip(MOMENTS, CLOCKS))
    # And out again, and in.
    again = db.sql("SELECT * FROM t").pl()
    db.sql("CREATE TABLE u AS SELECT * FROM again")
    assert db.sql("SELECT * FROM u").types == ["BIGINT", "TIMESTAMP WITH TIME ZONE", "TIME"]
    assert db.sql("SELECT count(*) FROM t JOIN u ON t.moment = u.moment AND t.clock = u.clock").fetchall() == [(2,)]
    assert again.height == 3


@pytest.mark.engine("a server reads no variables of this process")
def test_duckdb_reads_what_comes_out(filled: alluvium.Database) -> None:
    answer = filled.sql("SELECT moment, clock FROM t ORDER BY id").table()
    with duckdb.connect() as other:
        other.execute("SET TimeZone = 'UTC'")
        found = other.sql("SELECT moment, clock FROM answer")
        assert [str(kind) for kind in found.types] == ["TIMESTAMP WITH TIME ZONE", "TIME"]
        assert [moment and moment.astimezone(UTC) for moment, _ in found.fetchall()] == MOMENTS
        back = other.sql("SELECT * FROM answer")
        assert filled.sql("SELECT count(*) FROM back WHERE moment IS NOT NULL").fetchall() == [(2,)]
    assert len(answer) == 3
