"""Work on a thread of its own."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from . import _exit

if TYPE_CHECKING:
    from ._database import Database

_Task = TypeVar("_Task", bound="Task")


class Task:
    """Work for a database on a thread of its own, until it is done or stopped.

    As a context manager it is stopped at the end of the block.
    """

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._condition = threading.Condition()
        self._is_stopping = False
        self._is_closing = False
        self._is_done = False
        self._error: BaseException | None = None
        self._traceback: TracebackType | None = None
        self._thread = threading.Thread(target=self._main, name=f"alluvium {name}", daemon=True)

    @property
    def database(self) -> Database:
        """The database it works for."""
        return self._database

    @property
    def error(self) -> BaseException | None:
        """What has ended it, if that was an error."""
        return self._error

    @property
    def is_done(self) -> bool:
        """Whether it has ended, for whatever reason."""
        return self._is_done

    def stop(self, timeout: float | None = None) -> None:
        """Stops it, and waits until it has ended what it is doing. Raises the error that has ended it, if there was one.

        After ``timeout`` seconds it raises ``TimeoutError``, and the task stops later.
        """
        self._ask_to_stop()
        self._join(timeout)
        self._raise()

    def _ask_to_stop(self, *, closes: bool = False) -> None:
        """Lets it stop once it has ended what it is doing. Does not wait.

        If its database ``closes``, it begins nothing more that needs the database.
        """
        with self._condition:
            self._is_stopping = True
            self._is_closing = self._is_closing or closes
            self._condition.notify_all()

    def _settle(self, timeout: float) -> None:
        """Waits until it does not use its database any more, for at most ``timeout`` seconds. It knows that this closes."""
        if threading.current_thread() is self._thread:
            return
        with self._condition:
            self._condition.wait_for(self._is_settled, timeout)
        if self._is_done:
            # The thread itself has only to return.
            self._thread.join(timeout)

    def __enter__(self: _Task) -> _Task:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        except BaseException:
            # The error of the block comes first.
            if error is None:
                raise

    def _start(self) -> None:
        _exit.add_task(self)
        try:
            self._thread.start()
        except BaseException:
            _exit.remove_task(self)
            raise

    def _run(self) -> None:
        """The work."""
        raise NotImplementedError

    def _is_settled(self) -> bool:
        """Whether a task whose database closes does not use it any more."""
        return self._is_done

    def _main(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self._error, self._traceback = error, error.__traceback__
        finally:
            with self._condition:
                self._is_done = True
                self._condition.notify_all()
            _exit.remove_task(self)

    def _join(self, timeout: float | None) -> None:
        """Waits until it has ended, if it is another thread that asks."""
        if threading.current_thread() is self._thread:
            return
        with self._condition:
            if not self._condition.wait_for(lambda: self._is_done, timeout):
                raise TimeoutError(f"{self!r} has not ended within {timeout:g} s")

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error.with_traceback(self._traceback)

    def _state(self) -> str:
        if self._error is not None:
            return f"failed: {type(self._error).__name__}"
        if self._is_done:
            return "ended"
        return "stopping" if self._is_stopping else "running"


def remaining(until: float | None) -> float | None:
    """Returns the seconds until a time of the monotonic clock, at least 0; None if there is no end."""
    return None if until is None else max(0.0, until - time.monotonic())
