"""How fast rows enter a table in memory.

The clock stops when a query can read the rows: of Alluvium that is ``insert`` and ``wait``. From a list of tuples DuckDB has no fast way of its own:
its figure is that of a frame of polars made of the list, by the clock. What ``executemany`` takes is a row of its own.
"""

from __future__ import annotations

from data import COLUMNS, KEYED, read_rows
from part import Clock, Measure, Options, Part, alluvium_database, duckdb_connection

# Rows for executemany, which takes DuckDB a fraction of a millisecond each.
MANY = 20_000


def report(clock: Clock, rows: int, counted: tuple[int, int]) -> dict[str, object]:
    figures = {"rate": rows / clock.seconds, "memory": clock.mebibytes}
    return {"figures": figures, "facts": {"rows": counted[0], "sum of amounts": int(counted[1])}}


def source_of(kind: str, options: Options) -> tuple[object, object, int]:
    """Returns rows to warm up with, the rows to insert, and how many those are."""
    frame = read_rows(options, options.tuples if kind == "tuples" else MANY if kind == "many" else None)
    few = frame.head(1_000)
    if kind == "pandas":
        return few.to_pandas(), frame.to_pandas(), len(frame)
    if kind in ("tuples", "many"):
        return few.rows(), frame.rows(), len(frame)
    return few, frame, len(frame)


CHECK = "SELECT COUNT(*), SUM(amount) FROM t"


def alluvium(kind: str, columns: str, options: Options) -> dict[str, object]:
    few, rows, count = source_of(kind, options)
    if kind == "many":
        return alluvium_many(columns, few, rows, options)
    with alluvium_database(options) as db:
        db.sql(f"CREATE TABLE warm ({columns}); CREATE TABLE t ({columns})")
        db.insert("warm", few)
        with Clock() as clock:
            db.insert("t", rows)
            db.wait(db.progress().committed)
        return report(clock, count, db.sql(CHECK).fetchone())


def alluvium_many(columns: str, few: object, rows: object, options: Options) -> dict[str, object]:
    import alluvium.dbapi

    # In one transaction, as DuckDB does it.
    connection = alluvium.dbapi.connect(workers=options.threads)
    cursor = connection.cursor()
    cursor.execute(f"CREATE TABLE warm ({columns})")
    cursor.execute(f"CREATE TABLE t ({columns})")
    connection.commit()
    cursor.executemany("INSERT INTO warm VALUES (?, ?, ?, ?)", few[:100])
    connection.commit()
    with Clock() as clock:
        cursor.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        connection.commit()
    cursor.execute(CHECK)
    return report(clock, len(rows), cursor.fetchone())


def duckdb(kind: str, columns: str, options: Options) -> dict[str, object]:
    import polars

    few, rows, count = source_of(kind, options)
    connection = duckdb_connection(options)
    connection.execute(f"CREATE TABLE warm ({columns})")
    connection.execute(f"CREATE TABLE t ({columns})")

    def insert(into: str, frame: object) -> None:
        if kind == "tuples":
            frame = polars.DataFrame(frame, schema=["id", "amount", "name", "made"], orient="row")
        connection.execute(f"INSERT INTO {into} SELECT * FROM frame")

    def many(into: str, rows: object) -> None:
        connection.begin()
        connection.executemany(f"INSERT INTO {into} VALUES (?, ?, ?, ?)", rows)
        connection.commit()

    enter = many if kind == "many" else insert
    enter("warm", few[:100] if kind == "many" else few)
    with Clock() as clock:
        enter("t", rows)
    return report(clock, count, connection.execute(CHECK).fetchone())


def part(kind: str, label: str, columns: str = COLUMNS) -> Part:
    return Part(
        {
            "rate": Measure(f"insert {label}", "rows/s", more_is_better=True),
            "memory": Measure(f"insert {label}: memory", "MiB"),
        },
        alluvium=lambda options: alluvium(kind, columns, options),
        duckdb=lambda options: duckdb(kind, columns, options),
    )


PARTS = {
    "polars": part("polars", "{rows:,} rows from polars"),
    "keyed": part("polars", "{rows:,} rows from polars, with a primary key", KEYED),
    "pandas": part("pandas", "{rows:,} rows from pandas"),
    "tuples": part("tuples", "{tuples:,} tuples of a list"),
    "many": part("many", f"{MANY:,} tuples by `executemany`"),
}
PARTS["tuples"].remarks.append("DuckDB inserts a list of tuples by way of a polars frame, which is made while the clock runs.")
