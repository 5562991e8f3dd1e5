"""Random rows come back equal, and random changes keep views equal to a recomputation."""

import datetime as dt
import decimal
from typing import Any

import duckdb
import hypothesis
import hypothesis.strategies as some
import polars
import pyarrow
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import alluvium

TEXTS = some.text(some.characters(exclude_categories=["Cs"]), max_size=30)
TYPES: dict[str, tuple[str, pyarrow.DataType, some.SearchStrategy[Any]]] = {
    "bool": ("BOOLEAN", pyarrow.bool_(), some.booleans()),
    "tiny": ("TINYINT", pyarrow.int8(), some.integers(-(2**7), 2**7 - 1)),
    "big": ("BIGINT", pyarrow.int64(), some.integers(-(2**63), 2**63 - 1)),
    "unsigned": ("BIGINT UNSIGNED", pyarrow.uint64(), some.integers(0, 2**64 - 1)),
    "real": ("REAL", pyarrow.float32(), some.floats(width=32, allow_nan=False)),
    "double": ("DOUBLE", pyarrow.float64(), some.floats(allow_nan=False)),
    "exact": ("DECIMAL(38,5)", pyarrow.decimal128(38, 5), some.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: decimal.Decimal((n < 0, tuple(map(int, str(abs(n)))), -5)))),
    "text": ("VARCHAR", pyarrow.string(), TEXTS),
    "bytes": ("BYTEA", pyarrow.binary(), some.binary(max_size=30)),
    "day": ("DATE", pyarrow.date32(), some.dates()),
    "clock": ("TIME", pyarrow.time64("us"), some.times().map(lambda time: time.replace(fold=0))),
    "moment": ("TIMESTAMP", pyarrow.timestamp("us"), some.datetimes().map(lambda moment: moment.replace(fold=0))),
    "instant": ("TIMESTAMPTZ", pyarrow.timestamp("us", "UTC"), some.datetimes().map(lambda moment: moment.replace(tzinfo=dt.timezone.utc, fold=0))),
    "items": ("BIGINT[]", pyarrow.list_(pyarrow.int64()), some.lists(some.none() | some.integers(-5, 5), max_size=4)),
    "nested": (
        "STRUCT(a VARCHAR, b DATE[])",
        pyarrow.struct([("a", pyarrow.string()), ("b", pyarrow.list_(pyarrow.date32()))]),
        some.fixed_dictionaries({"a": some.none() | TEXTS, "b": some.none() | some.lists(some.none() | some.dates(), max_size=3)}),
    ),
}


@some.composite
def tables(draw: some.DrawFn) -> pyarrow.Table:
    """Tables of some of these columns, in some chunks, sliced."""
    names = draw(some.lists(some.sampled_from(list(TYPES)), min_size=1, max_size=6, unique=True))
    chunks = draw(some.lists(some.integers(0, 12), min_size=1, max_size=4))
    batches = []
    for length in chunks:
        columns = {}
        for name in names:
            _, kind, values = TYPES[name]
            rows = draw(some.lists(some.none() | values, min_size=length + 3, max_size=length + 3))
            columns[name] = pyarrow.array(rows, kind)
        start = draw(some.integers(0, 3))
        batches.append(pyarrow.record_batch(columns).slice(start, length))
    return pyarrow.Table.from_batches(batches)


def bag(rows: Any) -> list[str]:
    return sorted(repr(row).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc") for row in rows)


@hypothesis.given(tables(), some.sampled_from(["pyarrow", "polars", "duckdb", "rows", "columns", "scan"]))
@hypothesis.settings(max_examples=60)
def test_rows_come_back(table: pyarrow.Table, way: str) -> None:
    rows = [tuple(row.values()) for row in table.to_pylist()]
    columns = ", ".join(f'"{name}" {TYPES[name][0]}' for name in table.column_names)
    with alluvium.memory() as db:
        db.sql(f"CREATE TABLE t ({columns})")
        if way == "scan":
            db.sql('INSERT INTO t SELECT * FROM "table"')
        else:
            given: Any = table
            if way == "polars":
                given = polars.DataFrame(table)
            elif way == "duckdb":
                given = duckdb.sql('SELECT * FROM "table"')
            elif way == "rows":
                given = rows
            elif way == "columns":
                given = table.to_pydict()
            assert db.insert("t", given) == table.num_rows
        assert bag(db.sql("SELECT * FROM t").fetchall()) == bag(rows)
        result = db.sql("SELECT * FROM t").arrow()
        assert result.schema.types == table.schema.types
        assert bag(tuple(row.values()) for row in result.to_pylist()) == bag(rows)
        assert bag(polars.DataFrame(db.sql("SELECT * FROM t")).rows()) == bag(polars.DataFrame(table).rows())
        answer = db.sql("SELECT * FROM t")
        assert bag(duckdb.sql("SELECT * FROM answer").fetchall()) == bag(duckdb.sql('SELECT * FROM "table"').fetchall())
        assert answer is not None


@hypothesis.given(some.data())
@hypothesis.settings(max_examples=100)
def test_parameters_come_back(data: some.DataObject) -> None:
    name = data.draw(some.sampled_from([name for name in TYPES if name != "real"]))
    value = data.draw(TYPES[name][2])
    with alluvium.memory() as db:
        assert repr(db.sql("SELECT $1 AS a", value).fetchall()) == repr([(value,)])


VIEWS = {
    "groups": "SELECT g, count(*) AS n, sum(x) AS s, min(x) AS low, max(d) AS high FROM t GROUP BY g",
    "joined": "SELECT t.k, u.v FROM t JOIN u ON t.g = u.g WHERE t.x > 0",
    "missing": "SELECT t.k, u.v FROM t LEFT JOIN u ON t.g = u.g AND t.k < u.v",
    "distinct_days": "SELECT DISTINCT d FROM t WHERE d IS NOT NULL",
    "absent": "SELECT k FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.g = t.g)",
}
KEYS = some.integers(0, 20)
NAMES = some.none() | some.sampled_from("abcd")
VALUES = some.tuples(KEYS, NAMES, some.none() | some.integers(-100, 100), some.none() | some.dates(dt.date(2020, 1, 1), dt.date(2020, 1, 5)))


class Changes(RuleBasedStateMachine):
    """Tables are changed in all ways; DuckDB computes each view anew from the rows of a model."""

    @initialize(workers=some.integers(1, 3))
    def begin(self, workers: int) -> None:
        self.db = alluvium.memory(workers=workers, memory="32MiB", history=1_000)
        self.db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, g VARCHAR, x BIGINT, d DATE); CREATE TABLE u (g VARCHAR, v BIGINT)")
        for name, sql in VIEWS.items():
            self.db.sql(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
        self.keyed: dict[int, tuple[Any, ...]] = {}
        self.bag: list[tuple[Any, ...]] = []
        self.subscriptions = {name: self.db.subscribe(name) for name in VIEWS}
        self.summed: dict[str, dict[Any, int]] = {name: {} for name in VIEWS}

    @rule(rows=some.lists(VALUES, max_size=10, unique_by=lambda row: row[0]), as_frame=some.booleans())
    def upsert(self, rows: list[tuple[Any, ...]], as_frame: bool) -> None:
        schema = {"k": polars.Int64, "g": polars.String, "x": polars.Int64, "d": polars.Date}
        self.db.upsert("t", polars.DataFrame(rows, schema=schema, orient="row") if as_frame else rows)
        self.keyed.update({row[0]: row for row in rows})

    @rule(row=VALUES)
    def insert(self, row: tuple[Any, ...]) -> None:
        try:
            self.db.insert("t", [row])
        except alluvium.IntegrityError:
            assert row[0] in self.keyed
        else:
            assert row[0] not in self.keyed
            self.keyed[row[0]] = row

    @rule(keys=some.lists(KEYS, max_size=5))
    def delete(self, keys: list[int]) -> None:
        self.db.delete("t", [{"k": key} for key in keys])
        for key in keys:
            self.keyed.pop(key, None)

    @rule(rows=some.lists(some.tuples(NAMES, some.integers(0, 20)), max_size=6))
    def insert_others(self, rows: list[tuple[Any, ...]]) -> None:
        self.db.insert("u", rows)
        self.bag += rows

    @precondition(lambda self: self.bag)
    @rule(data=some.data())
    def delete_other(self, data: some.DataObject) -> None:
        row = data.draw(some.sampled_from(self.bag))
        self.db.delete("u", [row])
        self.bag.remove(row)

    @rule(low=KEYS, more=some.integers(-5, 5))
    def update_by_sql(self, low: int, more: int) -> None:
        changed = self.db.sql("UPDATE t SET x = x + $1 WHERE k >= $2", more, low).rows_changed
        above = [key for key in self.keyed if key >= low]
        assert changed == len(above)
        for key in above:
            _, g, x, d = self.keyed[key]
            self.keyed[key] = (key, g, None if x is None else x + more, d)

    @rule(rows=some.lists(VALUES, max_size=5, unique_by=lambda row: row[0]), commits=some.booleans())
    def transaction(self, rows: list[tuple[Any, ...]], commits: bool) -> None:
        transaction = self.db.transaction()
        transaction.upsert("t", rows)
        transaction.insert("u", [(row[1], row[0]) for row in rows])
        if commits:
            transaction.commit()
            self.keyed.update({row[0]: row for row in rows})
            self.bag += [(row[1], row[0]) for row in rows]
        else:
            transaction.rollback()

    @invariant()
    def views_are_right(self) -> None:
        if not hasattr(self, "db"):
            return
        schema = pyarrow.schema([("k", pyarrow.int64()), ("g", pyarrow.string()), ("x", pyarrow.int64()), ("d", pyarrow.date32())])
        t = pyarrow.Table.from_pylist([dict(zip("kgxd", row)) for row in self.keyed.values()], schema)
        u = pyarrow.Table.from_pylist([dict(zip("gv", row)) for row in self.bag], pyarrow.schema([("g", pyarrow.string()), ("v", pyarrow.int64())]))
        assert t is not u
        self.db.wait(self.db.progress().committed)
        for name, sql in VIEWS.items():
            expected = bag(duckdb.sql(sql).fetchall())
            assert bag(self.db.sql(f"SELECT * FROM {name}").fetchall()) == expected
            summed = self.summed[name]
            while (change := self.subscriptions[name].poll()) is not None:
                for row, weight in change:
                    summed[row] = summed.get(row, 0) + weight
            assert bag(row for row, weight in summed.items() for _ in range(weight)) == expected
            assert all(weight >= 0 for weight in summed.values())

    def teardown(self) -> None:
        if hasattr(self, "db"):
            self.db.close()


Changes.TestCase.settings = hypothesis.settings(max_examples=15, stateful_step_count=15, deadline=None, database=None)
TestChanges = Changes.TestCase
