"""Tasks that take the changes of a relation."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from ._errors import InterfaceError, InterruptedError
from ._task import Task, remaining

if TYPE_CHECKING:
    from ._alluvium import Change, Subscription
    from ._database import Database

# How often a task that has nothing to do looks whether it has been asked to stop, in seconds.
_INTERVAL = 0.2


class Follower(Task):
    """Takes the changes of a relation, one after the other, on a thread of its own."""

    def __init__(self, database: Database, name: str, relation: str, subscription: Subscription) -> None:
        super().__init__(database, name)
        self._relation = relation
        self._subscription = subscription
        self._epoch: int | None = None
        # All changes up to this epoch have been taken.
        self._passed = -1
        # Somebody waits for this epoch.
        self._wanted = -1

    @property
    def relation(self) -> str:
        """The relation that it follows."""
        return self._relation

    @property
    def epoch(self) -> int | None:
        """The epoch of the last change that it has taken."""
        return self._epoch

    def wait_for(self, epoch: int, timeout: float | None = None) -> None:
        """Waits until all changes up to an epoch have been taken, also if that epoch has not changed the relation.

        Raises the error that has ended it. After ``timeout`` seconds it raises ``TimeoutError``.
        """
        if threading.current_thread() is self._thread:
            raise InterfaceError(f"{self!r} cannot wait for itself")
        until = None if timeout is None else time.monotonic() + timeout
        with self._condition:
            while self._passed < epoch:
                if self._is_done:
                    self._raise()
                    raise InterfaceError(f"{self!r} has ended before epoch {epoch}")
                self._wanted = max(self._wanted, epoch)
                if not self._condition.wait(remaining(until)) and remaining(until) == 0.0:
                    raise TimeoutError(f"{self!r} has not taken epoch {epoch} within {timeout:g} s")

    def _run(self) -> None:
        with self._subscription as changes:
            while not self._is_stopping:
                try:
                    change = self._catch_up(changes) if self._passed < self._wanted else None
                    if change is None:
                        change = changes.next(timeout=self._pause())
                except InterruptedError:
                    # It was meant for other calls.
                    continue
                if change is not None:
                    self._take(change)
                    self._pass(change.epoch)
                    self._epoch = change.epoch
                elif changes.is_over:
                    return
                self._rest()

    def _catch_up(self, changes: Subscription) -> Change | None:
        """Returns a change up to the epoch that somebody waits for. If there is none, and there will be none, all have been taken."""
        wanted = self._wanted
        if self._database.is_remote:
            # The subscription is told how far it has come.
            change = changes.poll()
            passed = changes._passed()
            if change is None and passed is not None:
                self._pass(passed)
            return change
        complete = self._database.progress().complete
        if complete is None or complete < wanted:
            return None
        # Then the changes up to it are in the subscription, if there are any.
        self._database.wait(wanted)
        change = changes.poll()
        if change is None:
            self._pass(wanted)
        return change

    def _pass(self, epoch: int) -> None:
        with self._condition:
            self._passed = max(self._passed, epoch)
            self._condition.notify_all()

    def _take(self, change: Change) -> None:
        """Takes a change."""
        raise NotImplementedError

    def _rest(self) -> None:
        """Is called after each change, and now and then when there is none."""

    def _pause(self) -> float:
        """For how long to wait for a change."""
        return _INTERVAL if self._passed >= self._wanted else _INTERVAL / 10
