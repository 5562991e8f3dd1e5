"""Nexmark's q4, q9 and q18 in Pathway."""

from __future__ import annotations

import datetime

import pathway as pw

from data import microseconds
from part import Clock

# In Pathway `id` is the pointer to a row, and no column may be called so.
ID = "auction_id"


def q4(auction: pw.Table, bid: pw.Table) -> pw.Table:
    bids = (
        auction.join(bid, auction.auction_id == bid.auction)
        .select(
            auction.auction_id, auction.category, bid.price, at=bid.date_time, opened=auction.date_time, expires=auction.expires
        )
        .filter((pw.this.at >= pw.this.opened) & (pw.this.at <= pw.this.expires))
    )
    highest = bids.groupby(pw.this.auction_id, pw.this.category).reduce(pw.this.category, final=pw.reducers.max(pw.this.price))
    return highest.groupby(pw.this.category).reduce(pw.this.category, average=pw.reducers.avg(pw.this.final))


def q9(auction: pw.Table, bid: pw.Table) -> pw.Table:
    bids = (
        auction.join(bid, auction.auction_id == bid.auction)
        .select(
            *[auction[column] for column in auction.column_names()],
            bid.auction,
            bid.bidder,
            bid.price,
            bid_date_time=bid.date_time,
            bid_extra=bid.extra,
        )
        .filter((pw.this.bid_date_time >= pw.this.date_time) & (pw.this.bid_date_time <= pw.this.expires))
    )
    best = bids.groupby(pw.this.auction_id).reduce(bid=pw.reducers.argmax(pw.make_tuple(pw.this.price, -pw.this.bid_date_time)))
    return bids.ix(best.bid)


def q18(auction: pw.Table | None, bid: pw.Table) -> pw.Table:
    last = bid.groupby(pw.this.auction, pw.this.bidder).reduce(bid=pw.reducers.argmax(pw.this.date_time))
    return bid.ix(last.bid)


QUERIES = {"q4": q4, "q9": q9, "q18": q18}


class Stream(pw.io.python.ConnectorSubject):
    """Hands the batches of a stream to Pathway, and commits after each."""

    def __init__(self, batches: list[list[dict[str, object]]]) -> None:
        super().__init__()
        self.batches = batches

    def run(self) -> None:
        for batch in self.batches:
            for row in batch:
                self.next(**row)
            self.commit()


def rows_of(rows: object) -> list[dict[str, object]]:
    """Returns the rows of a table of pyarrow as dicts, with times as integers."""

    def plain(value: object) -> object:
        return microseconds(value) if isinstance(value, datetime.datetime) else value

    return [{ID if name == "id" else name: plain(value) for name, value in row.items()} for row in rows.to_pylist()]


def schema_of(stream: str, row: dict[str, object]) -> type[pw.Schema]:
    columns = {name: pw.column_definition(dtype=type(value)) for name, value in row.items()}
    return pw.schema_builder(columns, name=stream, properties=pw.SchemaProperties(append_only=True))


def run(name: str, received: bool, batches: list[dict[str, object]]) -> tuple[Clock, list[str], list[tuple[object, ...]], int]:
    """Runs a query over batches; returns the clock, and the columns and rows of the answer if its changes are received."""
    streams = {stream: [rows_of(batch[stream]) for batch in batches] for stream in batches[0]}
    # Warm-up: the first batch, in a graph of its own.
    execute(name, False, {stream: rows[:1] for stream, rows in streams.items()})
    return execute(name, received, streams)


def execute(
    name: str, received: bool, streams: dict[str, list[list[dict[str, object]]]]
) -> tuple[Clock, list[str], list[tuple[object, ...]], int]:
    pw.internals.parse_graph.G.clear()
    inputs = {
        stream: pw.io.python.read(Stream(rows), schema=schema_of(stream, rows[0][0]), autocommit_duration_ms=None)
        for stream, rows in streams.items()
    }
    taken: list[tuple[object, dict[str, object], bool]] = []
    columns: list[str] = []
    if name == "none":
        for table in inputs.values():
            pw.io.null.write(table)
    else:
        answer = QUERIES[name](inputs.get("auction"), inputs["bid"])
        columns = list(answer.column_names())
        if received:

            def on_change(key: object, row: dict[str, object], time: int, is_addition: bool) -> None:
                taken.append((key, row, is_addition))

            pw.io.subscribe(answer, on_change=on_change)
        else:
            pw.io.null.write(answer)
    with Clock() as clock:
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    contents: dict[object, int] = {}
    for key, row, is_addition in taken:
        values = tuple(row[column] for column in columns)
        contents[key, values] = contents.get((key, values), 0) + (1 if is_addition else -1)
    rows = [values for (_, values), copies in contents.items() if copies for _ in range(copies)]
    return clock, ["id" if column == ID else column for column in columns], rows, len(taken)
