"""What ends with the interpreter.

Threads that run while the interpreter ends can crash it. So tasks are stopped first, then databases are closed, and after that no thread of
this package is inside of an engine.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING
from weakref import WeakSet

from . import _alluvium

if TYPE_CHECKING:
    from ._database import Database
    from ._task import Task

# For how long tasks are waited for that are at work, in seconds.
_PATIENCE = 2.0

_databases: WeakSet[Database] = WeakSet()
_tasks: set[Task] = set()


def add_database(database: Database) -> None:
    """Adds a database to those that are closed when the interpreter ends."""
    _databases.add(database)


def add_task(task: Task) -> None:
    """Adds a task to those that are stopped before."""
    _tasks.add(task)


def remove_task(task: Task) -> None:
    """Removes a task that has ended."""
    _tasks.discard(task)


def stop_tasks_of(database: Database) -> None:
    """Stops all tasks of a database, and waits until they do not use it any more."""
    _stop([task for task in list(_tasks) if task.database is database])


def _stop(tasks: Iterable[Task]) -> None:
    tasks = list(tasks)
    for task in tasks:
        task._ask_to_stop(closes=True)
    until = time.monotonic() + _PATIENCE
    for task in tasks:
        task._settle(max(0.0, until - time.monotonic()))


def _end() -> None:
    _alluvium._end()
    _stop(list(_tasks))
    for database in list(_databases):
        with contextlib.suppress(Exception):
            database.close()
    _alluvium._ended()


def _forget() -> None:
    # The threads of the parent are not in a forked process.
    _databases.clear()
    _tasks.clear()
    _alluvium._forked()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
