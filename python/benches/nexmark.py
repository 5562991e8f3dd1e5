"""Nexmark's q4, q9 and q18 from Python, over batches of 10,000 events.

- *Maintained*: the answer is kept up to date after each batch, and nobody reads it. Alluvium: a materialized view over tables that keep no rows, which get
  a frame for each stream and batch. Pathway: the same query over two connectors, which get the rows of the batches one by one, as its
  connectors take them, and commit after each batch; the answer goes to ``pw.io.null``. DuckDB computes the answer again after each batch.
- *Received*: another thread receives each change of the answer as Python tuples (Alluvium) or a callback gets it (Pathway). Their sums are the
  answer, which is compared with DuckDB's over all events.
- *Fed alone*: the same without a query, which is the share of the interface. DuckDB keeps the rows then; the others keep nothing.

Of columns that the query leaves open between equal bids, which are the bidder and the text, nothing is compared. What is only
*maintained* by Pathway cannot be read, so its answer is checked where it is *received*. Events are counted in all three streams, but persons, which
these queries do not read, are not inserted. Pathway gets rows as dicts that are made before the clock starts, with times as integers
(microseconds), and its clock is that of ``pw.run``: starting and ending takes some tenths of a second, which counts if there are few events.
"""

from __future__ import annotations

import hashlib
import pathlib
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable

from data import microseconds, read_batches
from part import Clock, Measure, Options, Part, alluvium_database, duckdb_connection

QUERIES = pathlib.Path(__file__).parents[2] / "nexmark" / "queries"

# The columns of the answers that the query determines, and what makes them comparable.
COMPARED: dict[str, dict[str, Callable[[object], object]]] = {
    "q4": {"category": int, "average": lambda value: round(float(value), 4)},
    "q9": {"id": int, "price": int, "bid_date_time": lambda value: value if isinstance(value, int) else microseconds(value)},
    "q18": {"auction": int, "bidder": int, "date_time": lambda value: value if isinstance(value, int) else microseconds(value)},
}

STREAMS = {"q4": ["auction", "bid"], "q9": ["auction", "bid"], "q18": ["bid"], "none": ["auction", "bid"]}


def tables() -> str:
    """Returns the statements that create the tables, which keep no rows, without the columns that no query here reads."""
    sql = (QUERIES / "tables.sql").read_text()
    sql, changed = re.subn(r"extra VARCHAR NOT NULL,\s*--[^\n]*\n\s*p_time TIMESTAMP NOT NULL", "extra VARCHAR NOT NULL", sql)
    assert changed == 1, "tables.sql has changed"
    return sql


def query(name: str) -> str:
    return (QUERIES / f"{name}.sql").read_text()


def facts(name: str, columns: list[str], rows: Iterable[tuple[object, ...]]) -> dict[str, object]:
    """Returns what engines must agree on: the number of rows, and a hash of the columns that are determined."""
    taken = [(columns.index(column), convert) for column, convert in COMPARED[name].items()]
    comparable = sorted(tuple(convert(row[index]) for index, convert in taken) for row in rows)
    return {"rows": len(comparable), "hash": hashlib.sha256(repr(comparable).encode()).hexdigest()[:16]}


def report(clock: Clock, options: Options, agreed: dict[str, object], changes: int = 0) -> dict[str, object]:
    figures = {"rate": options.events / clock.seconds, "memory": clock.mebibytes}
    return {"figures": figures, "facts": agreed, "changes": changes}


def alluvium(name: str, received: bool, options: Options) -> dict[str, object]:
    import polars

    streams = STREAMS[name]
    batches = [{stream: polars.from_arrow(rows) for stream, rows in batch.items() if stream in streams} for batch in read_batches(options)]
    taken: list[tuple[tuple[object, ...], int]] = []
    agreed: dict[str, object] = {}
    with alluvium_database(options) as warm:
        feed(warm, name, batches[:1])
    with alluvium_database(options) as db:
        create(db, name)
        done = threading.Event()
        thread = None
        if received:
            subscription = db.subscribe(name)

            def receive() -> None:
                while True:
                    # All epochs are complete when this is set, so that a change which is not there by then does not come.
                    last = done.is_set()
                    change = subscription.poll() if last else subscription.next(timeout=0.02)
                    if change is not None:
                        taken.extend(change)
                    elif last:
                        return

            thread = threading.Thread(target=receive)
            thread.start()
        with Clock() as clock:
            insert(db, batches)
            done.set()
            if thread:
                thread.join()
        if name != "none":
            answer = db.sql(f"SELECT * FROM {name}")
            agreed = facts(name, answer.columns, answer.fetchall())
            if received:
                contents = Counter()
                for row, weight in taken:
                    contents[row] += weight
                assert facts(name, answer.columns, contents.elements()) == agreed, "changes do not add up to the view"
    return report(clock, options, agreed, len(taken))


def create(db: object, name: str) -> None:
    db.sql(tables())
    if name != "none":
        db.sql(query(name).replace("CREATE VIEW", "CREATE MATERIALIZED VIEW"))


def insert(db: object, batches: list[dict[str, object]]) -> None:
    """Commits a transaction for each batch, and waits until all are complete."""
    for batch in batches:
        with db.transaction() as transaction:
            for stream, rows in batch.items():
                transaction.insert(stream, rows)
    db.wait(db.progress().committed)


def feed(db: object, name: str, batches: list[dict[str, object]]) -> None:
    create(db, name)
    insert(db, batches)


def duckdb(name: str, options: Options) -> dict[str, object]:
    streams = STREAMS[name]
    batches = [{stream: rows for stream, rows in batch.items() if stream in streams} for batch in read_batches(options)]

    def start() -> object:
        connection = duckdb_connection(options)
        connection.execute(re.sub(r"\) WITH \([^)]*\)", ")", tables()))
        if name != "none":
            connection.execute(query(name).replace("CREATE LOCAL VIEW", "CREATE VIEW"))
        return connection

    def insert(connection: object, batches: list[dict[str, object]]) -> None:
        for batch in batches:
            connection.begin()
            for stream, rows in batch.items():  # noqa: PERF102 (DuckDB finds rows by their name)
                connection.execute(f"INSERT INTO {stream} SELECT * FROM rows")
            connection.commit()
            if name != "none":
                connection.execute(f"CREATE OR REPLACE TABLE answer AS SELECT * FROM {name}")

    insert(start(), batches[:1])
    connection = start()
    with Clock() as clock:
        insert(connection, batches)
    agreed: dict[str, object] = {}
    if name != "none":
        answer = connection.execute("SELECT * FROM answer")
        columns = [column[0] for column in answer.description]
        agreed = facts(name, columns, answer.fetchall())
    return report(clock, options, agreed)


def pathway(name: str, received: bool, options: Options) -> dict[str, object]:
    import nexmark_pathway

    streams = STREAMS[name]
    batches = [{stream: rows for stream, rows in batch.items() if stream in streams} for batch in read_batches(options)]
    clock, columns, contents, changes = nexmark_pathway.run(name, received, batches)
    agreed = facts(name, columns, contents) if received else {}
    return report(clock, options, agreed, changes)


def part(name: str, received: bool = False) -> Part:
    label = "Nexmark, fed alone" if name == "none" else f"Nexmark {name}, {'received' if received else 'maintained'}"
    return Part(
        {
            "rate": Measure(label, "events/s", more_is_better=True),
            "memory": Measure(f"{label}: memory", "MiB"),
        },
        alluvium=lambda options: alluvium(name, received, options),
        duckdb=None if received else lambda options: duckdb(name, options),
        pathway=lambda options: pathway(name, received, options),
    )


PARTS = {"feed": part("none")}
for each in ("q4", "q9", "q18"):
    PARTS[each] = part(each)
    PARTS[f"{each}.received"] = part(each, received=True)
PARTS["q4"].remarks.append("DuckDB computes each answer again after each batch of 10,000 events.")
