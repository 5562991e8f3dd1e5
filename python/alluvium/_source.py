"""Tables that are filled from iterables."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ._task import Task

if TYPE_CHECKING:
    from ._database import Database

# Every key up to here is looked for, and every so manieth after that: the engine may have forgotten older ones.
_NEAR = 10_000
_STRIDE = 1_000


class Source(Task):
    """Fills a table from an iterable, on a thread of its own: :meth:`Database.source` makes one.

    It ends with the iterable, or with the first error of the iterable or of the table.

    >>> import alluvium
    >>> with alluvium.memory() as db:
    ...     _ = db.sql("CREATE TABLE n (n BIGINT)")
    ...     source = db.source("n", ([(10 * ten + one,) for one in range(10)] for ten in range(10)))
    ...     source.wait()
    ...     source.batches, source.rows
    (10, 100)
    """

    def __init__(
        self,
        database: Database,
        table: str,
        iterable: Iterable[Any] | Callable[[], Iterable[Any]],
        *,
        upsert: bool,
        key: str | None,
    ) -> None:
        self._iterable = _checked(iterable)
        super().__init__(database, f"source of {table}")
        self._table = table
        self._upsert = upsert
        self._key = key
        self._rows = 0
        self._batches = 0
        self._epoch: int | None = None
        # Whether the thread is inside of the iterable, which may take as long as it likes.
        self._is_reading = False
        self._start()

    @property
    def table(self) -> str:
        """The table it fills."""
        return self._table

    @property
    def rows(self) -> int:
        """How many rows it has committed."""
        return self._rows

    @property
    def batches(self) -> int:
        """How many batches it has committed, without those that it has skipped."""
        return self._batches

    @property
    def epoch(self) -> int | None:
        """The epoch of the batch that it has committed last."""
        return self._epoch

    def wait(self, timeout: float | None = None) -> None:
        """Waits until the iterable has ended and everything of it is committed. Raises what the iterable or the table has raised.

        After ``timeout`` seconds it raises ``TimeoutError``, and the source goes on.
        """
        self._join(timeout)
        self._raise()

    def __repr__(self) -> str:
        return f"<alluvium.Source of {self._table}: {self._rows:,} rows in {self._batches:,} batches, {self._state()}>"

    def _run(self) -> None:
        committed_before = -1 if self._key is None else _last_committed(self._database, self._key)
        number = 0
        batches = self._read(self._begin)
        try:
            while not self._is_stopping:
                batch = self._read(lambda: next(batches, _END))
                if batch is _END or self._is_closing:
                    return
                key = None if self._key is None else f"{self._key}:{number}"
                if number > committed_before and (key is None or self._database.committed(key) is None):
                    self._commit(batch, key)
                number += 1
        finally:
            if (close := getattr(batches, "close", None)) is not None:
                close()

    def _begin(self) -> Iterator[Any]:
        iterable = self._iterable
        return iter(iterable if isinstance(iterable, Iterable) else iterable())

    def _read(self, read: Callable[[], Any]) -> Any:
        """Runs code of the iterable."""
        with self._condition:
            self._is_reading = True
            self._condition.notify_all()
        try:
            return read()
        finally:
            with self._condition:
                self._is_reading = False

    def _commit(self, batch: Any, key: str | None) -> None:
        transaction = self._database.transaction(key)
        try:
            if self._upsert:
                rows = transaction.upsert(self._table, batch)
            else:
                rows = transaction.insert(self._table, batch)
            self._epoch = transaction.commit()
        except BaseException:
            with contextlib.suppress(Exception):
                transaction.rollback()
            raise
        self._rows += rows
        self._batches += 1

    def _is_settled(self) -> bool:
        # What it reads now it does not commit.
        return self._is_done or self._is_reading


_END = object()


def _checked(iterable: Any) -> Iterable[Any] | Callable[[], Iterable[Any]]:
    is_rows = isinstance(iterable, (dict, str, bytes)) or (
        not hasattr(iterable, "__next__")
        and (hasattr(iterable, "__arrow_c_stream__") or hasattr(iterable, "__arrow_c_array__"))
    )
    kind = type(iterable).__name__
    if is_rows:
        raise TypeError(f"a {kind} is one batch of rows: insert() takes it; a source takes an iterable of such batches")
    if hasattr(iterable, "__aiter__"):
        raise TypeError(f"a {kind} is asynchronous: a source takes an iterable of batches of rows, or a function that returns one")
    if not isinstance(iterable, Iterable) and not callable(iterable):
        raise TypeError(f"a {kind} is no iterable: a source takes an iterable of batches of rows, or a function that returns one")
    return iterable  # type: ignore[no-any-return]


def _last_committed(database: Database, name: str) -> int:
    """The number of the last batch that was committed with a key; -1 if none is known.

    The engine remembers 100,000 keys of all transactions. The first batches of a long source are not among them any more, so it is not enough
    to ask for them.
    """

    def is_committed(number: int) -> bool:
        return database.committed(f"{name}:{number}") is not None

    # Each batch that was committed has an epoch of its own.
    count = database.progress().committed + 1
    near = range(min(count, _NEAR))
    far = range(_NEAR, count, _STRIDE)
    last = next((number for candidates in (reversed(far), reversed(near)) for number in candidates if is_committed(number)), -1)
    while last >= 0 and is_committed(last + 1):
        last += 1
    return last
