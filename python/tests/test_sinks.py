"""Functions that are called with changes."""

import subprocess
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import alluvium

Until = Callable[[Callable[[], object]], None]


@pytest.fixture
def numbers(db: alluvium.Database) -> alluvium.Database:
    db.sql("CREATE TABLE n (n BIGINT)")
    return db


def committed(db: alluvium.Database) -> int:
    return db.progress().committed


def test_a_sink_gets_a_snapshot_and_then_changes(numbers: alluvium.Database) -> None:
    numbers.insert("n", [(1,)])
    seen: list[tuple[bool, list[Any]]] = []
    with numbers.sink("n", lambda change: seen.append((change.is_snapshot, sorted(change)))) as sink:
        sink.wait_for(committed(numbers))
        numbers.insert("n", [(2,)])
        sink.wait_for(committed(numbers))
        numbers.sql("DELETE FROM n WHERE n = 1")
        sink.wait_for(committed(numbers))
    assert seen == [(True, [((1,), 1)]), (False, [((2,), 1)]), (False, [((1,), -1)])]


def test_a_sink_calls_on_a_thread_of_its_own(numbers: alluvium.Database) -> None:
    threads = []
    with numbers.sink("n", lambda change: threads.append(threading.current_thread())) as sink:
        sink.wait_for(committed(numbers))
    assert threads[0] is not threading.current_thread()
    assert threads[0].daemon


def test_changes_add_up_to_the_view(db: alluvium.Database) -> None:
    db.sql(
        """
        CREATE TABLE bid (auction BIGINT, price BIGINT);
        CREATE MATERIALIZED VIEW best AS SELECT auction, max(price) AS price FROM bid GROUP BY auction
        """
    )
    held: Counter[Any] = Counter()

    def add(change: alluvium.Change) -> None:
        for row, weight in change:
            held[row] += weight

    with db.sink("best", add) as sink:
        for price in range(50):
            db.insert("bid", [(price % 3, price)])
        sink.wait_for(committed(db))
    assert sorted(+held) == sorted(db.sql("SELECT * FROM best").fetchall()) == [(0, 48), (1, 49), (2, 47)]
    assert set(held.values()) <= {0, 1}


def test_the_epoch_is_that_of_the_last_change(numbers: alluvium.Database) -> None:
    epochs = []
    with numbers.sink("n", lambda change: epochs.append(change.epoch)) as sink:
        numbers.insert("n", [(1,)])
        sink.wait_for(committed(numbers))
        assert sink.epoch == epochs[-1] == committed(numbers)


def test_an_epoch_that_changes_nothing_is_passed(numbers: alluvium.Database) -> None:
    numbers.sql("CREATE TABLE other (a BIGINT)")
    calls: list[alluvium.Change] = []
    with numbers.sink("n", calls.append) as sink:
        for number in range(3):
            numbers.insert("other", [(number,)])
        sink.wait_for(committed(numbers))
    assert len(calls) == 1


def test_waiting_for_the_past_returns_at_once(numbers: alluvium.Database) -> None:
    with numbers.sink("n", lambda change: None) as sink:
        sink.wait_for(committed(numbers))
        sink.wait_for(0, timeout=0)


def test_waiting_for_the_future_may_end_before(numbers: alluvium.Database) -> None:
    with numbers.sink("n", lambda change: None) as sink, pytest.raises(TimeoutError, match="has not taken epoch"):
        sink.wait_for(committed(numbers) + 1_000, timeout=0.01)


def test_a_sink_can_wait_for_an_epoch_to_come(numbers: alluvium.Database) -> None:
    seen: list[Any] = []
    with numbers.sink("n", seen.extend) as sink:
        epoch = committed(numbers) + 1
        waiting = threading.Thread(target=sink.wait_for, args=(epoch,))
        waiting.start()
        numbers.insert("n", [(1,)])
        waiting.join(60)
        assert not waiting.is_alive()
        assert seen == [((1,), 1)]


def test_a_sink_goes_on_after_an_epoch(numbers: alluvium.Database) -> None:
    numbers.insert("n", [(1,)])
    after = committed(numbers)
    numbers.insert("n", [(2,)])
    seen: list[Any] = []
    with numbers.sink("n", lambda change: seen.append((change.is_snapshot, list(change))), after=after) as sink:
        sink.wait_for(committed(numbers))
    assert seen == [(False, [((2,), 1)])]


def test_an_error_stops_a_sink(numbers: alluvium.Database, until: Until) -> None:
    calls = []

    def fail(change: alluvium.Change) -> None:
        calls.append(change.epoch)
        if not change.is_snapshot:
            raise ZeroDivisionError("enough")

    sink = numbers.sink("n", fail)
    until(lambda: sink.epoch is not None)
    before = sink.epoch
    numbers.insert("n", [(1,)])
    until(lambda: sink.is_done)
    numbers.insert("n", [(2,)])
    assert len(calls) == 2
    # The change is not taken, and a later sink can go on with it.
    assert sink.epoch == before
    assert isinstance(sink.error, ZeroDivisionError)
    with pytest.raises(ZeroDivisionError, match="enough"):
        sink.wait_for(committed(numbers))
    with pytest.raises(ZeroDivisionError, match="enough"):
        sink.stop()
    assert "failed: ZeroDivisionError" in repr(sink)


def test_who_waits_gets_the_error(numbers: alluvium.Database) -> None:
    def fail(change: alluvium.Change) -> None:
        raise ZeroDivisionError

    sink = numbers.sink("n", fail)
    with pytest.raises(ZeroDivisionError):
        sink.wait_for(committed(numbers) + 1)


@pytest.mark.engine("a server is not waited for")
def test_a_stopped_sink_is_not_called(numbers: alluvium.Database) -> None:
    calls: list[Any] = []
    sink = numbers.sink("n", calls.append)
    sink.wait_for(committed(numbers))
    sink.stop()
    count = len(calls)
    numbers.insert("n", [(1,)])
    numbers.wait(committed(numbers))
    assert sink.is_done and len(calls) == count
    with pytest.raises(alluvium.InterfaceError, match="has ended before epoch"):
        sink.wait_for(committed(numbers))
    sink.stop()


def test_a_sink_may_stop_itself(numbers: alluvium.Database, until: Until) -> None:
    sinks: list[alluvium.Sink] = []
    started = threading.Event()

    def stop(change: alluvium.Change) -> None:
        started.wait(60)
        sinks[0].stop()

    sinks.append(numbers.sink("n", stop))
    started.set()
    until(lambda: sinks[0].is_done)
    assert sinks[0].error is None


def test_a_sink_may_not_wait_for_itself(numbers: alluvium.Database, until: Until) -> None:
    sinks: list[alluvium.Sink] = []
    started = threading.Event()

    def wait(change: alluvium.Change) -> None:
        started.wait(60)
        sinks[0].wait_for(10_000)

    sinks.append(numbers.sink("n", wait))
    started.set()
    until(lambda: sinks[0].is_done)
    with pytest.raises(alluvium.InterfaceError, match="cannot wait for itself"):
        sinks[0].stop()


def test_a_sink_may_write(numbers: alluvium.Database) -> None:
    numbers.sql("CREATE TABLE copy (n BIGINT)")

    def copy(change: alluvium.Change) -> None:
        numbers.insert("copy", [row for row, weight in change if weight > 0])

    with numbers.sink("n", copy) as sink:
        numbers.insert("n", [(1,), (2,)])
        sink.wait_for(committed(numbers))
    assert sorted(numbers.sql("SELECT * FROM copy").fetchall()) == [(1,), (2,)]


def test_a_sink_ends_with_its_relation(db: alluvium.Database, until: Until) -> None:
    db.sql("CREATE TABLE n (n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT n FROM n")
    sink = db.sink("v", lambda change: None)
    sink.wait_for(committed(db))
    db.sql("DROP MATERIALIZED VIEW v")
    until(lambda: sink.is_done)
    assert sink.error is None


def test_an_interrupt_is_not_for_sinks(numbers: alluvium.Database) -> None:
    seen: list[Any] = []
    with numbers.sink("n", seen.extend) as sink:
        sink.wait_for(committed(numbers))
        for number in range(5):
            numbers.interrupt()
            numbers.insert("n", [(number,)])
        sink.wait_for(committed(numbers))
    assert sorted(row for row, _ in seen) == [(number,) for number in range(5)]


def test_closing_a_database_stops_its_sinks() -> None:
    with alluvium.memory() as db:
        db.sql("CREATE TABLE n (n BIGINT)")
        sink = db.sink("n", lambda change: None)
        live = db.live("n")
    assert sink.is_done and sink.error is None
    assert live.is_done and live.error is None


def test_closing_waits_for_the_call_at_work() -> None:
    entered, ended = threading.Event(), threading.Event()

    def slow(change: alluvium.Change) -> None:
        entered.set()
        threading.Event().wait(0.05)
        ended.set()

    with alluvium.memory() as db:
        db.sql("CREATE TABLE n (n BIGINT)")
        db.sink("n", slow)
        assert entered.wait(60)
    assert ended.is_set()


@pytest.mark.parametrize("policy", ["block", "disconnect", pytest.param("resync", marks=pytest.mark.engine("a server has limits of its own"))])
def test_a_sink_has_a_policy(numbers: alluvium.Database, policy: Any) -> None:
    seen: list[Any] = []
    with numbers.sink("n", seen.extend, policy=policy) as sink:
        numbers.insert("n", [(1,)])
        sink.wait_for(committed(numbers))
    assert seen == [((1,), 1)]


def test_a_relation_that_is_not_there_is_an_error(db: alluvium.Database) -> None:
    with pytest.raises(alluvium.ProgrammingError, match="nowhere"):
        db.sink("nowhere", print)


def test_what_cannot_be_called_is_refused(numbers: alluvium.Database) -> None:
    with pytest.raises(TypeError, match="cannot be called"):
        numbers.sink("n", 7)  # type: ignore[arg-type]


def test_sinks_have_names(numbers: alluvium.Database) -> None:
    with numbers.sink("n", lambda change: None) as sink:
        sink.wait_for(committed(numbers))
        assert repr(sink) == f"<alluvium.Sink of n: epoch {sink.epoch}, running>"
        assert sink.relation == "n"
    assert repr(sink).endswith("ended>")


def test_the_interpreter_ends_with_sources_and_sinks_at_work() -> None:
    program = textwrap.dedent(
        """
        import atexit

        # What was registered last runs first.
        atexit.register(lambda: print(db.is_closed, source.is_done, sink.is_done, live.is_done))
        import itertools, queue, alluvium

        db = alluvium.memory()
        db.sql("CREATE TABLE n (n BIGINT); CREATE TABLE m (m BIGINT)")
        source = db.source("n", ([(number,)] for number in itertools.count()))
        blocked = db.source("m", iter(queue.Queue().get, None))
        sink = db.sink("n", lambda change: db.sql("SELECT count(*) FROM n").fetchall())
        live = db.live("n")
        db.insert("m", [(1,)])
        sink.wait_for(db.progress().committed)
        print("ends")
        """
    )
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ends\nTrue True True True\n", "")


def test_a_forked_process_ends() -> None:
    program = textwrap.dedent(
        """
        import itertools, os, sys, alluvium

        db = alluvium.memory()
        db.sql("CREATE TABLE n (n BIGINT)")
        source = db.source("n", ([(number,)] for number in itertools.count()))
        child = os.fork()
        if child == 0:
            # Threads are not there to be waited for.
            assert not alluvium._exit._tasks
            try:
                db.insert("n", [(1,)])
            except alluvium.InterfaceError:
                sys.exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "7\n", "")
