"""How fast changes go from the thread that commits to the thread that receives them, one row in each commit.

The rows enter a table below a view with a sum for each of 100 groups, and the changes of the view are received: a row that goes and a row that comes.
*Sustained* commits one row after the other, without waiting; its memory is how much the process grows by. *Latency* commits every five
milliseconds, and is the time from the call that commits, or that hands a row to Pathway, to the receipt of its change.
"""

from __future__ import annotations

import statistics
import threading
import time

from part import Clock, Measure, Options, Part, alluvium_database

EPOCHS = 1_000
WARM = 100
GROUPS = 100
PAUSE = 0.005


class Receiver:
    """Notes when the change of each commit comes: the view's total says which commit it is of."""

    def __init__(self) -> None:
        self.came: dict[int, float] = {}
        self.expected = WARM - 1
        self.reached = threading.Event()

    def take(self, last: int) -> None:
        self.came[last] = time.perf_counter()
        if last >= self.expected:
            self.reached.set()

    def wait(self, last: int) -> None:
        """Waits for the change of a commit."""
        self.expected = last
        self.reached.clear()
        if last not in self.came and not self.reached.wait(120):
            raise TimeoutError(f"the change of commit {last} has not come")


def commits(commit: object, receiver: Receiver, paced: bool) -> tuple[Clock, dict[int, float]]:
    """Commits all rows; returns the clock of those that count, and when each of them was committed."""
    for number in range(WARM):
        commit(number)
    receiver.wait(WARM - 1)
    sent = {}
    with Clock() as clock:
        for number in range(WARM, WARM + EPOCHS):
            sent[number] = time.perf_counter()
            commit(number)
            if paced:
                time.sleep(PAUSE)
        receiver.wait(WARM + EPOCHS - 1)
    return clock, sent


def report(clock: Clock, sent: dict[int, float], receiver: Receiver) -> dict[str, object]:
    latencies = [(receiver.came[number] - sent[number]) * 1e3 for number in sent if number in receiver.came]
    hundredths = statistics.quantiles(latencies, n=100)
    figures = {
        "rate": EPOCHS / clock.seconds,
        "p50": hundredths[49],
        "p99": hundredths[98],
        "memory": clock.mebibytes,
        # Commits that come together give one change to a view.
        "changes": len(latencies),
    }
    return {"figures": figures, "facts": {}}


def alluvium(paced: bool, options: Options) -> dict[str, object]:
    receiver = Receiver()
    with alluvium_database(options) as db:
        db.sql("CREATE TABLE t (part BIGINT NOT NULL, number BIGINT NOT NULL)")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT part, COUNT(*) AS rows, MAX(number) AS last FROM t GROUP BY part")
        subscription = db.subscribe("v")

        def receive() -> None:
            for change in subscription:
                for (_, _, last), weight in change:
                    if weight > 0:
                        receiver.take(last)

        thread = threading.Thread(target=receive)
        thread.start()
        clock, sent = commits(lambda number: db.insert("t", [(number % GROUPS, number)]), receiver, paced)
    return report(clock, sent, receiver)


def pathway(paced: bool, options: Options) -> dict[str, object]:
    import pathway as pw

    receiver = Receiver()
    measured = []

    class Row(pw.Schema):
        part: int
        number: int

    class Source(pw.io.python.ConnectorSubject):
        def run(self) -> None:
            def commit(number: int) -> None:
                self.next(part=number % GROUPS, number=number)
                self.commit()

            measured.append(commits(commit, receiver, paced))

    def on_change(key: object, row: dict[str, int], time: int, is_addition: bool) -> None:
        if is_addition:
            receiver.take(row["last"])

    rows = pw.io.python.read(Source(), schema=Row, autocommit_duration_ms=None)
    view = rows.groupby(rows.part).reduce(rows.part, rows=pw.reducers.count(), last=pw.reducers.max(rows.number))
    pw.io.subscribe(view, on_change=on_change)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return report(*measured[0], receiver)


def part(paced: bool, measures: dict[str, Measure]) -> Part:
    return Part(
        measures,
        alluvium=lambda options: alluvium(paced, options),
        pathway=lambda options: pathway(paced, options),
    )


PARTS = {
    "sustained": part(
        paced=False,
        measures={
            "rate": Measure(f"{EPOCHS:,} commits of a row, received by another thread: sustained", "commits/s", more_is_better=True),
            "changes": Measure("sustained: commits whose change came on its own", "commits", more_is_better=True),
            "memory": Measure("sustained: memory", "MiB"),
        },
    ),
    "latency": part(
        paced=True,
        measures={
            "p50": Measure("a commit every 5 ms: latency, p50", "ms"),
            "p99": Measure("a commit every 5 ms: latency, p99", "ms"),
        },
    ),
}
PARTS["sustained"].remarks.append("DuckDB has no subscriptions.")
