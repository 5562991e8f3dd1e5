"""How fast ``SELECT *`` gives all rows of a table: as a frame of polars, and as a list of tuples."""

from __future__ import annotations

from data import COLUMNS, read_rows
from part import Clock, Measure, Options, Part, alluvium_database, duckdb_connection

SELECT = "SELECT * FROM {}"


def report(kind: str, clock: Clock, answer: object) -> dict[str, object]:
    total = answer["amount"].sum() if kind == "polars" else sum(row[1] for row in answer)
    figures = {"time": clock.seconds * 1e3 / len(answer) * 1e6, "memory": clock.mebibytes}
    return {"figures": figures, "facts": {"rows": len(answer), "sum of amounts": int(total)}}


def alluvium(kind: str, options: Options) -> dict[str, object]:
    frame = read_rows(options, options.tuples if kind == "tuples" else None)
    with alluvium_database(options) as db:
        db.sql(f"CREATE TABLE warm ({COLUMNS}); CREATE TABLE t ({COLUMNS})")
        db.insert("warm", frame.head(1_000))
        db.insert("t", frame)
        db.wait(db.progress().committed)
        del frame

        def read(name: str) -> object:
            answer = db.sql(SELECT.format(name))
            return answer.pl() if kind == "polars" else answer.fetchall()

        read("warm")
        with Clock() as clock:
            answer = read("t")
        return report(kind, clock, answer)


def duckdb(kind: str, options: Options) -> dict[str, object]:
    frame = read_rows(options, options.tuples if kind == "tuples" else None)
    connection = duckdb_connection(options)
    connection.execute("CREATE TABLE warm AS SELECT * FROM frame LIMIT 1000")
    connection.execute("CREATE TABLE t AS SELECT * FROM frame")
    del frame

    def read(name: str) -> object:
        if kind == "polars":
            return connection.sql(SELECT.format(name)).pl()
        return connection.execute(SELECT.format(name)).fetchall()

    read("warm")
    with Clock() as clock:
        answer = read("t")
    return report(kind, clock, answer)


def part(kind: str, label: str) -> Part:
    return Part(
        {
            "time": Measure(label, "ms per million rows"),
            "memory": Measure(f"{label}: memory", "MiB"),
        },
        alluvium=lambda options: alluvium(kind, options),
        duckdb=lambda options: duckdb(kind, options),
    )


PARTS = {
    "polars": part("polars", "`SELECT *` of {rows:,} rows to polars"),
    "tuples": part("tuples", "`SELECT *` of {tuples:,} rows, `fetchall`"),
}
