"""How fast one row is read by its key, from a table of up to a million rows and from a view of 100,000 groups.

Alluvium reads with ``db.view(name).get(key)``, which sees everything that was committed before; ``stale()`` does not wait for that. DuckDB has no
materialized views: its table of groups is filled once and indexed. Its statement is parsed once and then executed with each key.
"""

from __future__ import annotations

import random

from data import KEYED, SEED, read_rows
from part import Clock, Measure, Options, Part, alluvium_database, duckdb_connection

GROUPS = 100_000
GROUPED = f"SELECT amount % {GROUPS} AS part, COUNT(*) AS rows, SUM(amount) AS total FROM t GROUP BY amount % {GROUPS}"

# DuckDB reads a tenth as many rows.
SHARE = 10
WARM = 1_000


def keys_of(kind: str, options: Options) -> list[int]:
    chosen = random.Random(SEED)
    # Every key of the table is there, and of the groups nearly every one.
    keys = options.tuples if kind != "view" else GROUPS
    return [chosen.randrange(keys) for _ in range(options.reads)]


def report(clock: Clock, reads: int, some: list[tuple[object, ...] | None]) -> dict[str, object]:
    values = [int(row[1]) for row in some if row is not None]
    figures = {"time": clock.seconds / reads * 1e6, "rate": reads / clock.seconds}
    return {"figures": figures, "facts": {"rows found": len(values), "sum of the second column": sum(values)}}


def alluvium(kind: str, options: Options) -> dict[str, object]:
    keys = keys_of(kind, options)
    with alluvium_database(options) as db:
        db.sql(f"CREATE TABLE t ({KEYED}); CREATE MATERIALIZED VIEW v AS {GROUPED}")
        db.insert("t", read_rows(options, options.tuples))
        db.wait(db.progress().committed)
        view = db.view("v" if kind == "view" else "t")
        get = view.stale().get if kind == "stale" else view.get
        some = [get(key) for key in keys[:WARM]]
        with Clock() as clock:
            for key in keys:
                get(key)
        return report(clock, len(keys), some)


def duckdb(kind: str, options: Options) -> dict[str, object]:
    keys = keys_of(kind, options)
    frame = read_rows(options, options.tuples)  # noqa: F841 (DuckDB finds it by its name)
    connection = duckdb_connection(options)
    connection.execute(f"CREATE TABLE t ({KEYED})")
    connection.execute("INSERT INTO t SELECT * FROM frame")
    connection.execute("CREATE TABLE v (part BIGINT PRIMARY KEY, rows BIGINT, total HUGEINT)")
    connection.execute(f"INSERT INTO v {GROUPED}")
    column, name = ("part", "v") if kind == "view" else ("id", "t")
    [statement] = connection.extract_statements(f"SELECT * FROM {name} WHERE {column} = ?")
    some = [connection.execute(statement, [key]).fetchone() for key in keys[:WARM]]
    keys = keys[: max(1, len(keys) // SHARE)]
    with Clock() as clock:
        for key in keys:
            connection.execute(statement, [key]).fetchone()
    return report(clock, len(keys), some)


def part(kind: str, label: str, *, beside: bool = True) -> Part:
    return Part(
        {
            "time": Measure(f"read a row by key from {label}", "µs"),
        },
        alluvium=lambda options: alluvium(kind, options),
        duckdb=(lambda options: duckdb(kind, options)) if beside else None,
    )


PARTS = {
    "table": part("table", "a table of {tuples:,} rows"),
    "view": part("view", "a materialized `GROUP BY`"),
    "stale": part("stale", "a table, `stale()`", beside=False),
}
