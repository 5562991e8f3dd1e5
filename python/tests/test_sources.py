"""Tables that are filled from iterables."""

import gc
import pathlib
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import alluvium
from alluvium import _source

Until = Callable[[Callable[[], object]], None]


@pytest.fixture
def numbers(db: alluvium.Database) -> alluvium.Database:
    db.sql("CREATE TABLE n (n BIGINT)")
    return db


def held(db: alluvium.Database) -> list[int]:
    return sorted(row[0] for row in db.sql("SELECT n FROM n").fetchall())


def test_each_item_is_a_transaction(numbers: alluvium.Database) -> None:
    with numbers.subscribe("n") as changes:
        assert next(changes).is_snapshot
        source = numbers.source("n", [[(1,), (2,)], [(3,)]])
        source.wait()
        assert sorted(next(changes)) == [((1,), 1), ((2,), 1)]
        assert sorted(next(changes)) == [((3,), 1)]
    assert (source.batches, source.rows, source.is_done, source.error) == (2, 3, True, None)
    assert held(numbers) == [1, 2, 3]


@pytest.mark.parametrize(
    "batch",
    [
        [(1,), (2,)],
        [{"n": 1}, {"n": 2}],
        {"n": [1, 2]},
    ],
    ids=["tuples", "dicts", "columns"],
)
def test_an_item_is_rows_of_any_kind(numbers: alluvium.Database, batch: Any) -> None:
    numbers.source("n", [batch]).wait()
    assert held(numbers) == [1, 2]


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_an_item_may_be_a_frame(numbers: alluvium.Database, library: str) -> None:
    module = pytest.importorskip(library)
    frame = {"polars": "DataFrame", "pandas": "DataFrame", "pyarrow": "table"}[library]
    numbers.source("n", (getattr(module, frame)({"n": [number]}) for number in range(3))).wait()
    assert held(numbers) == [0, 1, 2]


def test_a_reader_of_batches_is_an_iterable(numbers: alluvium.Database) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    reader = pyarrow.table({"n": list(range(6))}).to_reader(max_chunksize=2)
    source = numbers.source("n", reader)
    source.wait()
    assert source.batches == 3
    assert held(numbers) == list(range(6))


def test_a_function_returns_the_iterable(numbers: alluvium.Database) -> None:
    threads = []

    def batches() -> Iterator[list[tuple[int]]]:
        threads.append(threading.current_thread())
        yield [(1,)]

    numbers.source("n", batches).wait()
    assert held(numbers) == [1]
    assert threads[0] is not threading.current_thread()


def test_an_iterable_may_be_empty(numbers: alluvium.Database) -> None:
    source = numbers.source("n", [])
    source.wait()
    assert (source.batches, source.rows, source.epoch) == (0, 0, None)


def test_the_epoch_is_that_of_the_last_batch(numbers: alluvium.Database) -> None:
    source = numbers.source("n", [[(1,)], [(2,)]])
    source.wait()
    assert source.epoch == numbers.progress().committed


def test_upsert_takes_the_place_of_rows(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
    db.source("t", [[(1, "a"), (2, "b")], [(1, "c")]], upsert=True).wait()
    assert sorted(db.sql("SELECT * FROM t").fetchall()) == [(1, "c"), (2, "b")]


def test_what_the_iterable_raises_is_raised(numbers: alluvium.Database) -> None:
    def batches() -> Iterator[list[tuple[int]]]:
        yield [(1,)]
        raise ZeroDivisionError("enough")

    source = numbers.source("n", batches())
    for call in (source.wait, source.stop):
        with pytest.raises(ZeroDivisionError, match="enough"):
            call()
    assert isinstance(source.error, ZeroDivisionError)
    assert source.is_done
    assert "failed: ZeroDivisionError" in repr(source)
    assert held(numbers) == [1]


def test_what_the_table_refuses_is_raised(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
    source = db.source("t", [[(1,)], [(2,), (1,)], [(3,)]])
    with pytest.raises(alluvium.IntegrityError):
        source.wait()
    # Nothing of the batch that has failed, and nothing after it.
    assert db.sql("SELECT * FROM t").fetchall() == [(1,)]
    assert (source.batches, source.rows) == (1, 1)


@pytest.mark.parametrize("item", [None, 7, "text"])
def test_an_item_that_is_no_rows_is_refused(numbers: alluvium.Database, item: Any) -> None:
    source = numbers.source("n", [item, [(1,)]])
    with pytest.raises(alluvium.InterfaceError, match=type(item).__name__):
        source.wait()
    assert held(numbers) == []


def test_a_table_that_is_not_there_is_an_error(db: alluvium.Database) -> None:
    with pytest.raises(alluvium.ProgrammingError, match="nowhere"):
        db.source("nowhere", [[(1,)]]).wait()


@pytest.mark.parametrize(
    ("iterable", "message"),
    [
        (7, "is no iterable"),
        (None, "is no iterable"),
        ({"n": [1]}, "is one batch of rows: insert"),
        ("n", "is one batch of rows"),
    ],
)
def test_what_is_no_iterable_is_refused(numbers: alluvium.Database, iterable: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        numbers.source("n", iterable)


def test_a_frame_is_no_iterable(numbers: alluvium.Database) -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match="a DataFrame is one batch of rows: insert"):
        numbers.source("n", polars.DataFrame({"n": [1]}))


def test_an_asynchronous_iterable_is_refused(numbers: alluvium.Database) -> None:
    class Asynchronous:
        def __aiter__(self) -> Any:
            raise NotImplementedError

    with pytest.raises(TypeError, match="is asynchronous"):
        numbers.source("n", Asynchronous())  # type: ignore[arg-type]


def endless() -> Iterator[list[tuple[int]]]:
    number = 0
    while True:
        yield [(number,)]
        number += 1


def test_a_source_can_be_stopped(numbers: alluvium.Database, until: Until) -> None:
    source = numbers.source("n", endless)
    until(lambda: source.batches >= 3)
    assert not source.is_done
    source.stop()
    assert source.is_done and source.error is None
    assert held(numbers) == list(range(source.batches))
    source.wait()


def test_an_iterator_that_is_stopped_is_closed(numbers: alluvium.Database, until: Until) -> None:
    closed = threading.Event()

    def batches() -> Iterator[list[tuple[int]]]:
        try:
            yield from endless()
        finally:
            closed.set()

    iterator = batches()
    source = numbers.source("n", iterator)
    until(lambda: source.batches >= 1)
    source.stop()
    assert closed.is_set()


def test_the_item_at_work_is_committed_when_it_stops(numbers: alluvium.Database, until: Until) -> None:
    items: queue.Queue[list[tuple[int]]] = queue.Queue()
    source = numbers.source("n", iter(items.get, None))
    with pytest.raises(TimeoutError, match="has not ended within"):
        source.stop(timeout=0.01)
    items.put([(7,)])
    source.stop()
    assert held(numbers) == [7]


def test_wait_may_end_before(numbers: alluvium.Database) -> None:
    items: queue.Queue[Any] = queue.Queue()
    source = numbers.source("n", iter(items.get, None))
    with pytest.raises(TimeoutError):
        source.wait(timeout=0.01)
    items.put([(1,)])
    items.put(None)
    source.wait()
    assert held(numbers) == [1]


def test_a_source_is_stopped_at_the_end_of_its_block(numbers: alluvium.Database, until: Until) -> None:
    with numbers.source("n", endless) as source:
        until(lambda: source.batches >= 1)
    assert source.is_done


def test_a_block_raises_the_error_of_its_source(numbers: alluvium.Database, until: Until) -> None:
    with pytest.raises(alluvium.Error), numbers.source("n", [[("no number",)]]) as source:
        until(lambda: source.is_done)


def test_the_error_of_a_block_comes_first(numbers: alluvium.Database, until: Until) -> None:
    with pytest.raises(KeyError), numbers.source("n", [[("no number",)]]) as source:
        until(lambda: source.is_done)
        raise KeyError


def test_closing_a_database_stops_its_sources(until: Until) -> None:
    with alluvium.memory() as db:
        db.sql("CREATE TABLE n (n BIGINT)")
        source = db.source("n", endless)
        until(lambda: source.batches >= 1)
    assert source.is_done and source.error is None


def test_closing_a_database_does_not_wait_for_an_iterable() -> None:
    items: queue.Queue[Any] = queue.Queue()
    with alluvium.memory() as db:
        db.sql("CREATE TABLE n (n BIGINT)")
        source = db.source("n", iter(items.get, None))
    assert db.is_closed and not source.is_done
    items.put([(1,)])
    source.stop()
    assert source.error is None and source.batches == 0


def test_a_source_keeps_its_database() -> None:
    items: queue.Queue[Any] = queue.Queue()
    db = alluvium.memory()
    db.sql("CREATE TABLE n (n BIGINT)")
    source = db.source("n", iter(items.get, None))
    del db
    gc.collect()
    items.put([(1,)])
    items.put(None)
    source.wait()
    assert held(source.database) == [1]
    source.database.close()


@pytest.mark.engine("transactions over a connection have no keys")
def test_a_key_commits_each_batch_once(numbers: alluvium.Database) -> None:
    batches = [[(1,)], [(2,)], [(3,)]]
    numbers.source("n", batches, key="feed").wait()
    again = numbers.source("n", [*batches, [(4,)]], key="feed")
    again.wait()
    assert (again.batches, again.rows) == (1, 1)
    assert held(numbers) == [1, 2, 3, 4]
    assert [numbers.committed(f"feed:{number}") is not None for number in range(5)] == [True] * 4 + [False]


@pytest.mark.engine("transactions over a connection have no keys")
def test_keys_are_apart(numbers: alluvium.Database) -> None:
    numbers.source("n", [[(1,)]], key="one").wait()
    numbers.source("n", [[(1,)]], key="two").wait()
    assert held(numbers) == [1, 1]


def test_without_a_key_batches_come_again(numbers: alluvium.Database) -> None:
    numbers.source("n", [[(1,)]]).wait()
    numbers.source("n", [[(1,)]]).wait()
    assert held(numbers) == [1, 1]


@pytest.mark.engine("transactions over a connection have no keys")
def test_a_source_with_a_key_resumes_after_a_failure(numbers: alluvium.Database) -> None:
    def batches(count: int) -> Iterator[list[tuple[int]]]:
        for number in range(count):
            yield [(number,)]
        raise ConnectionError

    for count in (3, 5, 4):
        with pytest.raises(ConnectionError):
            numbers.source("n", batches(count), key="feed").wait()
    assert held(numbers) == list(range(5))


def test_a_source_with_a_key_resumes_after_a_restart(tmp_path: pathlib.Path) -> None:
    batches = [[(number,)] for number in range(6)]
    for count in (2, 4, 3, 6):
        with alluvium.open(tmp_path / "state") as db:
            db.sql("CREATE TABLE IF NOT EXISTS n (n BIGINT)")
            db.source("n", batches[:count], key="feed").wait()
    with alluvium.open(tmp_path / "state") as db:
        assert held(db) == list(range(6))


class Keys:
    """A database that remembers some keys."""

    def __init__(self, name: str, numbers: range, epochs: int) -> None:
        self.keys = {f"{name}:{number}" for number in numbers}
        self.epochs = epochs

    def committed(self, key: str) -> int | None:
        return 1 if key in self.keys else None

    def progress(self) -> Any:
        return type("Progress", (), {"committed": self.epochs})


@pytest.mark.parametrize(
    ("remembered", "epochs", "last"),
    [
        (range(0), 0, -1),
        (range(0), 50_000, -1),
        (range(1), 1, 0),
        (range(5), 5, 4),
        (range(300, 500), 2_000, 499),
        (range(20_000, 120_000), 300_000, 119_999),
        (range(98_500, 100_017), 1_000_000, 100_016),
    ],
)
def test_keys_that_are_forgotten_are_not_needed(remembered: range, epochs: int, last: int) -> None:
    assert _source._last_committed(Keys("feed", remembered, epochs), "feed") == last  # type: ignore[arg-type]


def test_sources_have_names(numbers: alluvium.Database) -> None:
    source = numbers.source("n", [[(1,)]])
    source.wait()
    assert repr(source) == "<alluvium.Source of n: 1 rows in 1 batches, ended>"
    assert source.table == "n"
